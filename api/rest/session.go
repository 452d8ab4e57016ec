package rest

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// sessionCookie: a browser takes a cookie of such a name from this very host only, over
	// HTTPS, for all paths (RFC 6265bis section 4.1.3.2), so that no neighbour can plant one.
	sessionCookie = "__Host-rackstrap"
	// sessionLife is the longest that a session is good: a working day.
	sessionLife = 12 * time.Hour
	// A token signs in signInBurst times at once, then once each signInEvery: each time is a
	// write and an event, and who may only look must not fill the event log.
	signInBurst = 200
	signInEvery = time.Second
	// maxSignIn bounds a body that anybody may send.
	maxSignIn   = 4 << 10
	sessionPath = "/session"
)

func sessionRoutes() []Route {
	// the events of these are those of the session's record
	return []Route{
		{Method: http.MethodPost, Path: sessionPath, Does: "Sign in: show a token once, and be known by a cookie from then on", In: api.SignIn{}, Out: api.WhoAmI{}, Reads: true, handle: (*server).signIn},
		{Method: http.MethodDelete, Path: sessionPath, Does: "Sign out: end the session of the cookie, at once", Role: RoleViewer, Claimer: true, Reads: true, handle: (*server).signOut},
	}
}

// signIn makes a session of the token in the body. It answers everybody, so it takes
// little from anybody.
func (s *server) signIn(w http.ResponseWriter, r *http.Request) error {
	if p := fromOwnPage(r); p != nil {
		return p
	}
	if r.ContentLength < 0 || r.ContentLength > maxSignIn {
		return &api.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: api.CodeTooLarge,
			Detail: fmt.Sprintf("the body of a sign-in has a Content-Length of at most %d", maxSignIn), Hint: `send {"token": "rst_…"}`,
		}
	}
	var in api.SignIn
	if err := options(w, r, "session", &in); err != nil {
		return err
	}
	if in.Token == "" {
		c := hardware.NewChecker("request", "session")
		c.Addf("token", "is missing (an administrator makes one: rackstrap token create NAME --role viewer)")
		return c.Err()
	}
	t, p := s.alive(in.Token)
	if p != nil {
		s.unknownCaller(w, r, t, p)
		return nil
	}
	if !s.signIns.take(t.Token.Meta.UID) {
		w.Header().Set("Retry-After", "10")
		return &api.Problem{
			Status: http.StatusTooManyRequests, Code: api.CodeRateLimited, Detail: "the token " + t.Token.Meta.Name + " signs in too often",
			Hint: "wait ten seconds, and keep the cookie; a program shows its token in the Authorization header",
		}
	}
	until := s.Now().Add(sessionLife).Truncate(time.Second)
	if end := t.Token.Spec.Expires; !end.IsZero() && end.Before(until) {
		until = end
	}
	ctx := workflow.WithBy(r.Context(), t.Token.Meta.Name)
	secret, made, err := s.Tokens.CreateSession(ctx, t.Token, clientAddr(r), until)
	if errors.Is(err, workflow.ErrNotFound) { // it was revoked meanwhile
		s.unknownCaller(w, r, hardware.LiveToken{}, unknownToken())
		return nil
	}
	if err != nil {
		return err
	}
	showed(ctx)
	s.Tokens.UseToken(ctx, t.Token.Status.ID)
	setCookie(w, secret, 0)
	return writeJSON(w, http.StatusOK, whoIs(callerOf(t, made)))
}

func (s *server) signOut(w http.ResponseWriter, r *http.Request) error {
	c := CallerFrom(r.Context())
	if c.session == "" {
		return badRequest("a token is revoked by an administrator: rackstrap token revoke NAME", "the request shows no cookie of a session")
	}
	// the context ends with the session
	err := s.Tokens.DeleteToken(context.WithoutCancel(r.Context()), c.session, 0)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return err
	}
	setCookie(w, "", -1)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setCookie gives the browser a cookie, or with a negative age takes it away. It has no
// age of its own: it goes with the browser.
func setCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// sessionSecret is the cookie of a request that has no Authorization header. There may be
// one only: which of two a browser sends first is for anybody to choose.
func sessionSecret(r *http.Request) (string, *api.Problem) {
	switch all := r.CookiesNamed(sessionCookie); {
	case len(all) == 0 || len(all) == 1 && all[0].Value == "":
		return "", nil
	case len(all) > 1:
		return "", &api.Problem{Status: http.StatusUnauthorized, Code: api.CodeTokenMalformed, Detail: "the request has more than one cookie " + sessionCookie, Hint: "delete the cookies of this site, then sign in again"}
	default:
		return all[0].Value, nil
	}
}

// session finds the session of a cookie, and its token, which is alive too.
func (s *server) session(secret string) (session, of hardware.LiveToken, p *api.Problem) {
	const again = "sign in again"
	if session, p = s.kept(secret); p == nil && session.Token.Spec.SessionOf == "" {
		session, p = hardware.LiveToken{}, unknownToken() // tokens are shown in the header
	}
	if p == nil {
		var there bool
		if of, there = s.Tokens.SessionToken(session.Token); !there {
			p = unknownToken()
		} else if session.Token.Expired(s.Now()) || of.Token.Expired(s.Now()) {
			p = &api.Problem{Status: http.StatusUnauthorized, Code: api.CodeTokenExpired, Detail: "the session of the token " + of.Token.Meta.Name + " ended at " + session.Token.Spec.Expires.UTC().Format(time.RFC3339)}
		}
	}
	if p != nil {
		p.Hint = again
	}
	return session, of, p
}

// fromOwnPage says why a request that a browser may send with a session's cookie, or to
// get one, is not answered: a page elsewhere made it. What changes something must come
// from a page of ours (Sec-Fetch-Site and Origin, see net/http.CrossOriginProtection),
// with a body of a type that no form has; what reads is refused to other pages too, also
// to those of another port of this host, which are of the same site and get the cookie.
func fromOwnPage(r *http.Request) *api.Problem {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	from := r.Header.Get("Sec-Fetch-Site") // none: a person typed it
	foreign := reads && from != "" && from != "same-origin" && from != "none"
	if foreign || http.NewCrossOriginProtection().Check(r) != nil {
		return &api.Problem{
			Status: http.StatusForbidden, Code: api.CodeForbidden, Detail: "the request was made by a page of another site",
			Hint: "use the appliance's own pages, or show a token in the Authorization header",
		}
	}
	if reads || r.ContentLength == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	_, other := bodyIsYAML(media, nil)
	if err == nil && (other == nil || media == "application/octet-stream") {
		return nil
	}
	return &api.Problem{
		Status: http.StatusUnsupportedMediaType, Code: api.CodeMediaType, Detail: "with the cookie of a session a body needs a Content-Type",
		Hint: "send application/json, application/yaml or application/octet-stream",
	}
}

// callerOf is who shows a token, or a session of it (nil where none).
func callerOf(t hardware.LiveToken, session *hardware.Token) Caller {
	spec := t.Token.Spec
	c := Caller{Name: t.Token.Meta.Name, Role: spec.Role, OwnerPrefix: spec.OwnerPrefix, Selector: t.Selector, Expires: spec.Expires}
	if session != nil {
		c.session, c.Expires = session.Meta.Name, session.Spec.Expires
	}
	return c
}

func whoIs(c Caller) api.WhoAmI {
	return api.WhoAmI{Name: c.Name, Role: c.Role, OwnerPrefix: c.OwnerPrefix, Selector: c.Selector.String(), Expires: c.Expires, Session: c.session != ""}
}

// signsOut reports whether the request wants an end of its session.
func signsOut(r *http.Request) bool {
	return r.Method == http.MethodDelete && r.URL.Path == api.Base+sessionPath
}

// signsIn reports whether the request is one that everybody may make.
func signsIn(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == api.Base+sessionPath
}
