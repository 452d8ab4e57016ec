package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// defaultTokenLife is how long a token is good where nothing is said: long enough
// for a program that somebody looks after, and an end to those that are forgotten.
const defaultTokenLife = 365 * 24 * time.Hour

func tokenRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/whoami", Does: "Say who the caller is and what it may do", Role: RoleViewer, Claimer: true, Out: api.WhoAmI{}, handle: (*server).whoami},
		{Method: http.MethodGet, Path: "/tokens", Does: "List every token, without its secret", Role: RoleAdmin, Out: api.List[hardware.Token]{}, Query: []string{"sessions"}, handle: (*server).listTokens},
		{Method: http.MethodPost, Path: "/tokens", Does: "Create a token; the answer is the only place that has its secret", Role: RoleAdmin, In: api.NewToken{}, Out: api.CreatedToken{}, Status: http.StatusCreated, handle: (*server).createToken},
		{Method: http.MethodGet, Path: "/tokens/{name}", Does: "Read a token, without its secret", Role: RoleAdmin, Out: hardware.Token{}, handle: (*server).getToken},
		{Method: http.MethodDelete, Path: "/tokens/{name}", Does: "Revoke a token, at once", Role: RoleAdmin, handle: (*server).deleteToken},
	}
}

func (s *server) whoami(w http.ResponseWriter, r *http.Request) error {
	if err := queryKnown(r.URL.Query()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, whoIs(CallerFrom(r.Context())))
}

func (s *server) listTokens(w http.ResponseWriter, r *http.Request) error {
	if err := queryKnown(r.URL.Query(), "sessions"); err != nil {
		return err
	}
	sessions, err := boolean(r.URL.Query(), "sessions")
	if err != nil {
		return err
	}
	out := api.List[any]{APIVersion: api.Version, Kind: string(api.KindToken) + "List", Items: []any{}}
	if s.Tokens != nil {
		all, err := s.Tokens.ListTokens(r.Context())
		if err != nil {
			return err
		}
		for _, t := range all {
			if t.Spec.SessionOf != "" && !sessions {
				continue
			}
			raw, err := api.Marshal(api.KindToken, t)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, raw)
		}
	}
	return writeJSON(w, http.StatusOK, out)
}

// token reads one by name; its error names those that are like it.
func (s *server) token(ctx context.Context, name string) (*hardware.Token, error) {
	if s.Tokens == nil {
		return nil, notFound(api.KindToken, name, nil)
	}
	t, err := s.Tokens.TokenByName(ctx, name)
	if !errors.Is(err, workflow.ErrNotFound) {
		return t, err
	}
	all, err := s.Tokens.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = o.Meta.Name
	}
	return nil, notFound(api.KindToken, name, names)
}

func (s *server) getToken(w http.ResponseWriter, r *http.Request) error {
	if err := queryKnown(r.URL.Query()); err != nil {
		return err
	}
	t, err := s.token(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	raw, err := api.Marshal(api.KindToken, t)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+strconv.FormatUint(t.Meta.Revision, 10)+`"`)
	return writeJSON(w, http.StatusOK, raw)
}

func (s *server) createToken(w http.ResponseWriter, r *http.Request) error {
	if err := queryKnown(r.URL.Query()); err != nil {
		return err
	}
	var in api.NewToken
	if err := options(w, r, "token", &in); err != nil {
		return err
	}
	t := &hardware.Token{
		Meta: hardware.Meta{Name: in.Metadata.Name, Labels: in.Metadata.Labels},
		Spec: hardware.TokenSpec{Role: in.Spec.Role, OwnerPrefix: in.Spec.OwnerPrefix, Selector: in.Spec.Selector},
	}
	c := hardware.NewChecker("token", hardware.PlainText(t.Meta.Name, 80))
	if in.APIVersion != "" && in.APIVersion != api.Version {
		c.Addf("apiVersion", "%.60q is not known (write %s)", in.APIVersion, api.Version)
	}
	if in.Kind != "" && in.Kind != api.KindToken {
		c.Addf("kind", "is %.60q, wanted %s", in.Kind, api.KindToken)
	}
	var err error
	if t.Spec.Expires, err = tokenEnd(in.Spec.Expires, s.Now()); err != nil {
		c.Add("spec.expires", err)
	}
	if err := c.Err(); err != nil {
		return err
	}
	if err := t.Validate(); err != nil {
		return err
	}
	if s.Tokens == nil {
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Detail: "this daemon keeps no tokens"}
	}
	secret, err := s.Tokens.CreateToken(r.Context(), t)
	if err != nil {
		return err
	}
	out := api.CreatedToken{Token: *t, Secret: secret, Fingerprint: s.fingerprint()}
	raw, err := api.Marshal(api.KindToken, out)
	if err != nil {
		return err
	}
	w.Header().Set("Location", api.Base+"/"+api.KindToken.Path()+"/"+t.Meta.Name)
	return writeJSON(w, http.StatusCreated, raw)
}

func (s *server) deleteToken(w http.ResponseWriter, r *http.Request) error {
	if err := queryKnown(r.URL.Query()); err != nil {
		return err
	}
	match, err := ifMatch(r)
	if err != nil {
		return err
	}
	name := chi.URLParam(r, "name")
	t, err := s.token(r.Context(), name)
	if err != nil {
		return err
	}
	err = s.Tokens.DeleteToken(r.Context(), name, match)
	if errors.Is(err, workflow.ErrConflict) && match != 0 {
		return &api.Problem{
			Status: http.StatusPreconditionFailed, Code: api.CodeConflict, Revision: t.Meta.Revision,
			Detail: fmt.Sprintf("token %q is at revision %d, not %d", name, t.Meta.Revision, match), Hint: "read it again",
		}
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// tokenEnd reads when a token shall end; zero is never.
func tokenEnd(text string, now time.Time) (time.Time, error) {
	const most = 100 * 365 * 24 * time.Hour
	bad := fmt.Errorf("%.40q is no time to end (write it as 90d, 12h, 2027-01-31T00:00:00Z or never)", text)
	switch text {
	case "":
		return now.Add(defaultTokenLife).Truncate(time.Second), nil
	case "never":
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		if !t.After(now) {
			return t, fmt.Errorf("%.40q is over", text)
		}
		return t, nil
	}
	var life time.Duration
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return time.Time{}, bad
		}
		life = time.Duration(n) * 24 * time.Hour
	} else {
		var err error
		if life, err = time.ParseDuration(text); err != nil {
			return time.Time{}, bad
		}
	}
	if life <= 0 || life > most {
		return time.Time{}, fmt.Errorf("%.40q must be more than nothing and at most %dd (or never)", text, most/(24*time.Hour))
	}
	return now.Add(life).Truncate(time.Second), nil
}

func (s *server) fingerprint() string {
	if s.Fingerprint == nil {
		return ""
	}
	return s.Fingerprint()
}
