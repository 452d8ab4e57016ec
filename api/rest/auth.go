package rest

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// Tokens keeps the tokens. Errors are as those of Records.
type Tokens interface {
	// CreateToken sets what the record lacks and returns the secret, which is kept
	// nowhere.
	CreateToken(ctx context.Context, t *hardware.Token) (secret string, err error)
	// DeleteToken revokes it, with its sessions: LiveToken does not find it any more.
	DeleteToken(ctx context.Context, name string, rev uint64) error
	TokenByName(ctx context.Context, name string) (*hardware.Token, error)
	ListTokens(ctx context.Context) ([]*hardware.Token, error)
	// LiveToken finds a token by the id in its secret, from memory.
	LiveToken(id string) (hardware.LiveToken, bool)
	// CreateSession makes a session of a token for who asks from an address, until a time,
	// and returns its secret. workflow.ErrNotFound where the token was revoked.
	CreateSession(ctx context.Context, of *hardware.Token, from netip.Addr, until time.Time) (secret string, session *hardware.Token, err error)
	// SessionToken is the token of which a session is, from memory, if it is still there.
	SessionToken(session *hardware.Token) (hardware.LiveToken, bool)
	// UseToken remembers, now and then, that it was used.
	UseToken(ctx context.Context, id string)
}

// forever is longer than any request.
const forever = 1000 * 24 * time.Hour

// Remote is the handler for callers on the network: each shows a token. The document
// and the pages that explain the API are for everybody.
func (a *API) Remote() http.Handler { return http.HandlerFunc(a.serveRemote) }

func (a *API) serveRemote(w http.ResponseWriter, r *http.Request) {
	if public(r.URL.Path) || signsIn(r) {
		a.router.ServeHTTP(w, r)
		return
	}
	s := a.server
	shown, p := s.authenticate(r)
	if p != nil {
		if signsOut(r) {
			setCookie(w, "", -1) // it is good for nothing
		}
		s.unknownCaller(w, r, shown.token, p)
		return
	}
	c := callerOf(shown.token, shown.session.Token)
	if c.session != "" {
		if p := fromOwnPage(r); p != nil {
			s.refused(r, c.Name, p)
			s.fail(w, r, p)
			return
		}
	}
	// streams end with the token, and with the session
	life := forever
	if !c.Expires.IsZero() {
		life = c.Expires.Sub(s.Now())
	}
	ctx, cancel := context.WithTimeout(r.Context(), life)
	defer cancel()
	go func() {
		select {
		case <-shown.token.Revoked:
			cancel()
		case <-shown.session.Revoked: // nil, and never, without one
			cancel()
		case <-ctx.Done():
		}
	}()
	showed(r.Context())
	s.Tokens.UseToken(ctx, shown.token.Token.Status.ID)
	a.serveAs(c, w, r.WithContext(ctx))
}

type knownKey struct{}

// OnCaller has known called, by many requests at once, whenever one of ctx showed a
// good token or session.
func OnCaller(ctx context.Context, known func()) context.Context {
	return context.WithValue(ctx, knownKey{}, known)
}

func showed(ctx context.Context) {
	if known, ok := ctx.Value(knownKey{}).(func()); ok {
		known()
	}
}

// bearer is the token of a request. It is taken from the header only: what is in a
// URL ends up in logs.
func bearer(h http.Header) (string, *api.Problem) {
	const hint = "sign in, or send the header `Authorization: Bearer rst_…`; an administrator makes a token: rackstrap token create NAME --role viewer"
	switch v := h.Values("Authorization"); {
	case len(v) == 0:
		return "", &api.Problem{Status: http.StatusUnauthorized, Code: api.CodeTokenMissing, Detail: "the request has no token", Hint: hint}
	case len(v) > 1:
		return "", &api.Problem{Status: http.StatusUnauthorized, Code: api.CodeTokenMalformed, Detail: "the request has more than one Authorization header", Hint: hint}
	default:
		scheme, token, _ := strings.Cut(strings.TrimSpace(v[0]), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", &api.Problem{Status: http.StatusUnauthorized, Code: api.CodeTokenMalformed, Detail: "the Authorization header is not `Bearer`", Hint: hint}
		}
		return strings.TrimSpace(token), nil
	}
}

// credentials are what a request shows: a token, or a session of one.
type credentials struct{ token, session hardware.LiveToken }

// authenticate finds the token of a request: that of its Authorization header, else that
// of its cookie's session.
func (s *server) authenticate(r *http.Request) (credentials, *api.Problem) {
	if r.Header["Authorization"] == nil {
		secret, p := sessionSecret(r)
		if p != nil {
			return credentials{}, p
		}
		if secret != "" {
			session, of, p := s.session(secret)
			return credentials{token: of, session: session}, p
		}
	}
	secret, p := bearer(r.Header)
	if p != nil {
		return credentials{}, p
	}
	t, p := s.alive(secret)
	return credentials{token: t}, p
}

// alive finds a token by its secret. That one has expired is told only to those who
// have its secret; with it comes the token. A session's secret is none: it is for cookies.
func (s *server) alive(secret string) (hardware.LiveToken, *api.Problem) {
	t, p := s.kept(secret)
	switch {
	case p != nil:
		return t, p
	case t.Token.Spec.SessionOf != "":
		return hardware.LiveToken{}, unknownToken()
	case t.Token.Expired(s.Now()):
		return t, &api.Problem{
			Status: http.StatusUnauthorized, Code: api.CodeTokenExpired,
			Detail: "the token " + strconv.Quote(t.Token.Meta.Name) + " expired at " + t.Token.Spec.Expires.UTC().Format(time.RFC3339),
			Hint:   "ask an administrator for a new one: rackstrap token create NAME --role " + string(t.Token.Spec.Role),
		}
	}
	return t, nil
}

func unknownToken() *api.Problem {
	return &api.Problem{
		Status: http.StatusUnauthorized, Code: api.CodeTokenUnknown, Detail: "the token is not known: it was revoked, or belongs to another installation",
		Hint: "ask an administrator for a new one: rackstrap token create NAME --role viewer",
	}
}

// kept finds what has a secret, a token or a session. It may have expired.
func (s *server) kept(secret string) (hardware.LiveToken, *api.Problem) {
	id, err := hardware.ParseToken(secret)
	if err != nil {
		return hardware.LiveToken{}, &api.Problem{
			Status: http.StatusUnauthorized, Code: api.CodeTokenMalformed, Detail: "the token has not the right form: " + err.Error(),
			Hint: "copy the whole of what `rackstrap token create` printed",
		}
	}
	var t hardware.LiveToken
	known := false
	if s.Tokens != nil {
		t, known = s.Tokens.LiveToken(id)
	}
	if right := t.Hash.Equal(hardware.HashToken(secret)); !known || !right {
		return hardware.LiveToken{}, unknownToken()
	}
	return t, nil
}

// unknownCaller answers whoever has no good token. An address that sends many gets
// a shorter answer, and its further ones are not told of.
func (s *server) unknownCaller(w http.ResponseWriter, r *http.Request, t hardware.LiveToken, p *api.Problem) {
	if p.Code != api.CodeTokenMissing {
		from := clientAddr(r)
		if !s.wrong.allow(from) {
			w.Header().Set("Retry-After", "10")
			s.fail(w, r, &api.Problem{Status: http.StatusTooManyRequests, Code: api.CodeRateLimited, Detail: "too many wrong tokens from this address", Hint: "wait ten seconds, then try with a token that is good"})
			return
		}
		name := ""
		if t.Token != nil {
			name = t.Token.Meta.Name
		}
		s.refusedFrom(from, name, p)
	}
	challenge := `Bearer realm="rackstrap"`
	if p.Code != api.CodeTokenMissing {
		challenge += `, error="invalid_token"` // RFC 6750 section 3.1
	}
	w.Header().Set("WWW-Authenticate", challenge)
	s.fail(w, r, p)
}

// clientAddr is the address of the other end; we believe no X-Forwarded-For.
func clientAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// public reports whether everybody may read the path: what it says is in our public
// repository, and nothing of the installation.
func public(path string) bool {
	return path == "/openapi.json" || path == "/docs" || strings.HasPrefix(path, "/docs/")
}
