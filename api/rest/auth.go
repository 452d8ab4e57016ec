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
	// DeleteToken revokes it: LiveToken does not find it any more.
	DeleteToken(ctx context.Context, name string, rev uint64) error
	TokenByName(ctx context.Context, name string) (*hardware.Token, error)
	ListTokens(ctx context.Context) ([]*hardware.Token, error)
	// LiveToken finds a token by the id in its secret, from memory.
	LiveToken(id string) (hardware.LiveToken, bool)
	// UseToken remembers, now and then, that it was used.
	UseToken(ctx context.Context, id string)
}

// forever is longer than any request.
const forever = 1000 * 24 * time.Hour

// Remote is the handler for callers on the network: each shows a token. The document
// and the pages that explain the API are for everybody.
func (a *API) Remote() http.Handler { return http.HandlerFunc(a.serveRemote) }

func (a *API) serveRemote(w http.ResponseWriter, r *http.Request) {
	if public(r.URL.Path) {
		a.router.ServeHTTP(w, r)
		return
	}
	s := a.server
	t, p := s.authenticate(r)
	if p != nil {
		s.unknownCaller(w, r, t, p)
		return
	}
	// streams end with the token
	life := forever
	if end := t.Token.Spec.Expires; !end.IsZero() {
		life = end.Sub(s.Now())
	}
	ctx, cancel := context.WithTimeout(r.Context(), life)
	defer cancel()
	go func() {
		select {
		case <-t.Revoked:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.Tokens.UseToken(ctx, t.Token.Status.ID)
	spec := t.Token.Spec
	c := Caller{Name: t.Token.Meta.Name, Role: spec.Role, OwnerPrefix: spec.OwnerPrefix, Selector: t.Selector, Expires: spec.Expires}
	a.serveAs(c, w, r.WithContext(ctx))
}

// bearer is the token of a request. It is taken from the header only: what is in a
// URL ends up in logs.
func bearer(h http.Header) (string, *api.Problem) {
	const hint = "send the header `Authorization: Bearer rst_…`; an administrator makes a token: rackstrap token create NAME --role viewer"
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

// authenticate finds the token of a request. That one has expired is told only to
// those who have its secret; with it comes the token.
func (s *server) authenticate(r *http.Request) (hardware.LiveToken, *api.Problem) {
	secret, p := bearer(r.Header)
	if p != nil {
		return hardware.LiveToken{}, p
	}
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
		return hardware.LiveToken{}, &api.Problem{
			Status: http.StatusUnauthorized, Code: api.CodeTokenUnknown, Detail: "the token is not known: it was revoked, or belongs to another installation",
			Hint: "ask an administrator for a new one: rackstrap token create NAME --role viewer",
		}
	}
	if t.Token.Expired(s.Now()) {
		return t, &api.Problem{
			Status: http.StatusUnauthorized, Code: api.CodeTokenExpired,
			Detail: "the token " + strconv.Quote(t.Token.Meta.Name) + " expired at " + t.Token.Spec.Expires.UTC().Format(time.RFC3339),
			Hint:   "ask an administrator for a new one: rackstrap token create NAME --role " + string(t.Token.Spec.Role),
		}
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
