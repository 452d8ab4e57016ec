package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// resource is what is done the same way with every kind of record.
type resource[T any] struct {
	kind api.Kind
	meta func(*T) *hardware.Meta
	// spec is what operators write.
	spec func(*T) any
	// readOnly keys are taken in input and ignored, so that what was read can be
	// sent back.
	readOnly []string
	check    func(*T) error
	// keep fills secrets that read hardware.Redacted from old, which may be nil, and
	// says which ones it could not fill.
	keep func(v, old *T) (*T, []hardware.FieldError)
	// show is the record without secrets.
	show   func(context.Context, *T) (any, error)
	create func(context.Context, *T) error
	update func(context.Context, *T) error // nil: the spec is written once
	remove func(ctx context.Context, name string, rev uint64) error
	get    func(ctx context.Context, name string) (*T, error)
	list   func(context.Context) ([]*T, error)
	// cursor is one that list has reached.
	cursor func(context.Context) (uint64, error)
	// users names the records that need this one; nil: there can be none.
	users func(context.Context, *T) ([]string, error)
	// force removes a record that is used and says what was skipped; nil: that is not
	// safe.
	force func(ctx context.Context, v *T, rev uint64, users []string) (skipped []string, err error)
	// sees reports whether the record exists for the caller of ctx; nil: it does for
	// all who may use the route.
	sees func(ctx context.Context, v *T) (bool, error)
}

// decode makes a record of a document; name, if not empty, is the one in the URL.
func (rs *resource[T]) decode(n *document.Node, name string) (*T, error) {
	v := new(T)
	var errs []hardware.FieldError
	if n.Type == document.Map {
		errs = append(errs, checkHead(n, rs.kind)...)
		for _, k := range append([]string{"apiVersion", "kind"}, rs.readOnly...) {
			n.Cut(k)
		}
	}
	errs = append(errs, document.Decode(n, v)...)
	m := rs.meta(v)
	if name != "" && m.Name == "" {
		m.Name = name
	}
	if name != "" && m.Name != name {
		errs = append(errs, hardware.FieldError{Field: "metadata.name", Detail: fmt.Sprintf("%.80q differs from %q in the URL (a record cannot be renamed)", m.Name, name)})
	}
	if len(errs) > 0 {
		return nil, rs.invalid(m.Name, errs)
	}
	return v, nil
}

// checkHead checks apiVersion and kind, which may be missing.
func checkHead(n *document.Node, k api.Kind) []hardware.FieldError {
	var errs []hardware.FieldError
	if v := n.Get("apiVersion"); v != nil && v.Value != api.Version {
		errs = append(errs, hardware.FieldError{Field: "apiVersion", Detail: fmt.Sprintf("%.60q is not known (write %s)", v.Value, api.Version)})
	}
	if v := n.Get("kind"); v != nil && v.Value != string(k) {
		errs = append(errs, hardware.FieldError{Field: "kind", Detail: fmt.Sprintf("is %.60q, wanted %s", v.Value, k)})
	}
	return errs
}

func (rs *resource[T]) invalid(name string, errs []hardware.FieldError) error {
	return &hardware.Invalid{Kind: rs.kind.Word(), Name: hardware.PlainText(name, 80), Errors: errs}
}

// find reads by name what the caller sees; its error names those that are like it.
func (rs *resource[T]) find(ctx context.Context, name string) (*T, error) {
	v, err := rs.get(ctx, name)
	if err == nil {
		var seen bool
		if seen, err = rs.seen(ctx, v); seen {
			return v, nil
		}
	}
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return nil, err
	}
	all, err := rs.all(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = rs.meta(o).Name
	}
	return nil, notFound(rs.kind, name, names)
}

// seen reports whether the caller sees a record.
func (rs *resource[T]) seen(ctx context.Context, v *T) (bool, error) {
	if rs.sees == nil {
		return true, nil
	}
	return rs.sees(ctx, v)
}

// all lists what the caller sees.
func (rs *resource[T]) all(ctx context.Context) ([]*T, error) {
	all, err := rs.list(ctx)
	if err != nil || rs.sees == nil {
		return all, err
	}
	out := make([]*T, 0, len(all))
	for _, v := range all {
		seen, err := rs.sees(ctx, v)
		if err != nil {
			return nil, err
		}
		if seen {
			out = append(out, v)
		}
	}
	return out, nil
}

// same reports whether an operator would see no difference.
func (rs *resource[T]) same(a, b *T) bool {
	text := func(v *T) []byte {
		labels := rs.meta(v).Labels
		if len(labels) == 0 {
			labels = nil
		}
		raw, err := json.Marshal([]any{labels, rs.spec(v)})
		if err != nil {
			return nil
		}
		return raw
	}
	x, y := text(a), text(b)
	return x != nil && bytes.Equal(x, y)
}

// add creates the record; its name is then in v, where the engine chose it.
func (rs *resource[T]) add(ctx context.Context, v *T) error {
	m := rs.meta(v)
	m.UID, m.Revision, m.Created = "", 0, hardware.Meta{}.Created
	kept, lost := rs.keep(v, nil)
	if len(lost) > 0 {
		return rs.invalid(m.Name, lost)
	}
	err := rs.create(ctx, kept)
	m.Name = rs.meta(kept).Name
	return err
}

// replace writes the record over old, unless nothing would change, and returns it as
// it is written. match is the revision of If-Match, 0 for none. workflow.ErrConflict
// where somebody else wrote it meanwhile.
func (rs *resource[T]) replace(ctx context.Context, v, old *T, match uint64) (written *T, changed bool, err error) {
	m, om := rs.meta(v), rs.meta(old)
	if match != 0 && match != om.Revision {
		return nil, false, rs.stale(om, match, true)
	}
	v, lost := rs.keep(v, old)
	if len(lost) > 0 {
		return nil, false, rs.invalid(om.Name, lost)
	}
	if rs.same(v, old) {
		return old, false, nil
	}
	if m.UID != "" && m.UID != om.UID {
		return nil, false, rs.invalid(om.Name, []hardware.FieldError{{Field: "metadata.uid", Detail: fmt.Sprintf("%.60q is another record's (leave it out)", m.UID)}})
	}
	if m.Revision != 0 && m.Revision != om.Revision {
		return nil, false, rs.stale(om, m.Revision, false)
	}
	if rs.update == nil {
		return nil, false, &api.Problem{
			Status: http.StatusConflict, Code: api.CodeConflict, Revision: om.Revision,
			Detail: fmt.Sprintf("%s %q exists with another spec, and that is written once", rs.kind.Word(), om.Name), Hint: "choose another name",
		}
	}
	nm := rs.meta(v)
	nm.UID, nm.Revision, nm.Created = om.UID, om.Revision, om.Created
	if err := rs.update(ctx, v); err != nil {
		return nil, false, err
	}
	return v, true, nil
}

// stale says that a record is not at the revision that was demanded, by If-Match (RFC
// 9110 section 13.1.1) or in the document.
func (rs *resource[T]) stale(now *hardware.Meta, wanted uint64, precondition bool) error {
	p := &api.Problem{
		Status: http.StatusConflict, Code: api.CodeConflict, Revision: now.Revision,
		Detail: fmt.Sprintf("%s %q is at revision %d, not %d: somebody changed it", rs.kind.Word(), now.Name, now.Revision, wanted),
		Hint:   fmt.Sprintf("read it again, then repeat the change: rackstrap %s get %s -o yaml", rs.kind.Word(), now.Name),
	}
	if precondition {
		p.Status = http.StatusPreconditionFailed
	}
	return p
}

// overtaken makes a workflow.ErrConflict, met while writing over revision had, a
// problem that tells the current one.
func (rs *resource[T]) overtaken(ctx context.Context, err error, name string, had, match uint64) error {
	if !errors.Is(err, workflow.ErrConflict) {
		return err
	}
	now, gerr := rs.find(ctx, name)
	if gerr != nil {
		return gerr
	}
	if match != 0 {
		return rs.stale(rs.meta(now), match, true)
	}
	return rs.stale(rs.meta(now), had, false)
}
