package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/workflow"
)

// overtakenTries is how often a change that insists on no revision is made again
// because somebody else was faster.
const overtakenTries = 5

// answer writes the record as it is now.
func (rs *resource[T]) answer(ctx context.Context, w http.ResponseWriter, status int, name string) error {
	v, err := rs.find(ctx, name)
	if err != nil {
		return err
	}
	raw, err := rs.marshal(ctx, v)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+strconv.FormatUint(rs.meta(v).Revision, 10)+`"`)
	return writeJSON(w, status, raw)
}

func (rs *resource[T]) marshal(ctx context.Context, v *T) (json.RawMessage, error) {
	shown, err := rs.show(ctx, v)
	if err != nil {
		return nil, err
	}
	return api.Marshal(rs.kind, shown)
}

func (rs *resource[T]) serveGet(_ *server, w http.ResponseWriter, r *http.Request) error {
	return rs.answer(r.Context(), w, http.StatusOK, chi.URLParam(r, "name"))
}

func (rs *resource[T]) serveCreate(s *server, w http.ResponseWriter, r *http.Request) error {
	n, err := document1(w, r)
	if err != nil {
		return err
	}
	v, err := rs.decode(n, "")
	if err != nil {
		return err
	}
	if err := rs.check(v); err != nil {
		return err
	}
	if err := rs.add(r.Context(), v); err != nil {
		return err
	}
	name := rs.meta(v).Name
	if s.dry {
		return answerDry(w, api.Applied{Kind: rs.kind, Name: name, Result: api.OutcomeCreated})
	}
	w.Header().Set("Location", api.Base+"/"+rs.kind.Path()+"/"+name)
	return rs.answer(r.Context(), w, http.StatusCreated, name)
}

func (rs *resource[T]) serveReplace(s *server, w http.ResponseWriter, r *http.Request) error {
	n, err := document1(w, r)
	if err != nil {
		return err
	}
	v, err := rs.decode(n, chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	if err := rs.check(v); err != nil {
		return err
	}
	return rs.change(s, w, r, func(*T) (*T, error) { return v, nil }, 1)
}

// change writes over the record in the URL what next makes of it, and answers.
func (rs *resource[T]) change(s *server, w http.ResponseWriter, r *http.Request, next func(old *T) (*T, error), tries int) error {
	ctx, name := r.Context(), chi.URLParam(r, "name")
	match, err := ifMatch(r)
	if err != nil {
		return err
	}
	for {
		old, err := rs.find(ctx, name)
		if err != nil {
			return err
		}
		v, err := next(old)
		if err != nil {
			return err
		}
		written, changed, err := rs.replace(ctx, v, old, match)
		if tries--; errors.Is(err, workflow.ErrConflict) && match == 0 && tries > 0 {
			continue
		}
		if err != nil {
			return rs.overtaken(ctx, err, name, rs.meta(old).Revision, match)
		}
		if !s.dry {
			return rs.answer(ctx, w, http.StatusOK, name)
		}
		out := api.Applied{Kind: rs.kind, Name: name, Result: api.OutcomeUnchanged}
		if changed {
			out.Result = api.OutcomeChanged
			if out.Changes, err = rs.changes(ctx, old, written); err != nil {
				return err
			}
		}
		return answerDry(w, out)
	}
}

// servePatch applies a JSON merge patch (RFC 7396) to the record as it is shown, and
// goes on as if the result had been PUT. A patch that names no revision and insists
// on none meets what others write meanwhile.
func (rs *resource[T]) servePatch(s *server, w http.ResponseWriter, r *http.Request) error {
	if t := r.Header.Get("Content-Type"); strings.HasPrefix(t, "application/json-patch") {
		w.Header().Set("Accept-Patch", "application/merge-patch+json, application/yaml")
		return &api.Problem{
			Status: http.StatusUnsupportedMediaType, Code: api.CodeMediaType, Detail: "JSON Patch (RFC 6902) is not read here",
			Hint: "send a JSON merge patch (RFC 7396): `Content-Type: application/merge-patch+json`",
		}
	}
	patch, err := document1(w, r)
	if err != nil {
		return err
	}
	if patch.Type != document.Map {
		return badRequest(`send the fields that change: {"spec": {"notes": "…"}}`, "a merge patch is a map, not %s", patch.Type)
	}
	if errs := checkHead(patch, rs.kind); len(errs) > 0 {
		return rs.invalid(chi.URLParam(r, "name"), errs)
	}
	tries := overtakenTries
	if patch.Get("metadata").Get("revision") != nil {
		tries = 1
	}
	return rs.change(s, w, r, func(old *T) (*T, error) { return rs.patched(r.Context(), old, patch) }, tries)
}

// patched is old with the patch applied, checked.
func (rs *resource[T]) patched(ctx context.Context, old *T, patch *document.Node) (*T, error) {
	n, err := rs.node(ctx, old)
	if err != nil {
		return nil, err
	}
	v, err := rs.decode(document.Merge(n, patch), rs.meta(old).Name)
	if err != nil {
		return nil, err
	}
	return v, rs.check(v)
}

// node is the record as it is shown, as a document.
func (rs *resource[T]) node(ctx context.Context, v *T) (*document.Node, error) {
	raw, err := rs.marshal(ctx, v)
	if err != nil {
		return nil, err
	}
	// it is ours, and within the store's limits
	docs, err := document.JSON(raw, document.Limits{Depth: 1000, Nodes: len(raw) + 1, Text: len(raw) + 1, Documents: 1})
	if err != nil {
		return nil, fmt.Errorf("%s %s as it is shown: %w", rs.kind.Word(), rs.meta(v).Name, err)
	}
	return docs[0].Unplaced(), nil
}

// serveDelete deletes a record that nobody needs. With force one that is needed goes
// too, where that is safe; the answer then names what was skipped.
func (rs *resource[T]) serveDelete(s *server, w http.ResponseWriter, r *http.Request) error {
	ctx, name := r.Context(), chi.URLParam(r, "name")
	match, err := ifMatch(r)
	if err != nil {
		return err
	}
	force, err := boolean(r.URL.Query(), "force")
	if err != nil {
		return err
	}
	old, err := rs.find(ctx, name)
	if err != nil {
		return err
	}
	skipped, err := rs.erase(ctx, old, match, force)
	if err != nil {
		return rs.overtaken(ctx, err, name, rs.meta(old).Revision, match)
	}
	switch {
	case s.dry:
		return answerDry(w, api.Applied{Kind: rs.kind, Name: name, Result: api.OutcomeDeleted, Skipped: skipped})
	case len(skipped) > 0:
		return writeJSON(w, http.StatusOK, api.Deleted{Kind: rs.kind, Name: name, Skipped: skipped})
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// erase removes a record: workflow.ErrInUse while others need it.
func (rs *resource[T]) erase(ctx context.Context, v *T, match uint64, force bool) (skipped []string, err error) {
	name := rs.meta(v).Name
	if match != 0 && match != rs.meta(v).Revision {
		return nil, rs.stale(rs.meta(v), match, true)
	}
	var users []string
	if rs.users != nil {
		if users, err = rs.users(ctx, v); err != nil {
			return nil, err
		}
	}
	switch {
	case force && rs.force != nil:
		return rs.force(ctx, v, match, users)
	case len(users) > 0:
		return nil, inUse(rs.kind, name, users, rs.force != nil)
	}
	return nil, rs.remove(ctx, name, match)
}

// inUse is a record that cannot go, and who needs it.
func inUse(k api.Kind, name string, users []string, forcible bool) error {
	const told = 5
	who := strings.Join(users[:min(len(users), told)], ", ")
	if n := len(users) - told; n > 0 {
		who += fmt.Sprintf(" and %d more", n)
	}
	p := &api.Problem{
		Status: http.StatusConflict, Code: api.CodeInUse,
		Detail: fmt.Sprintf("%s %q is in use by %s", k.Word(), name, who), Hint: "change or delete these first",
	}
	if forcible {
		p.Hint += fmt.Sprintf(", or type: rackstrap %s delete %s --force", k.Word(), name)
	}
	return p
}
