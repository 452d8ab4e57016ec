package client_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	ctx := t.Context()
	type m = map[string]any
	h, err := d.c.Hardware.Patch(ctx, "m1", 0, m{"metadata": m{"labels": m{"tier": "prod", "rack": nil}}, "spec": m{"notes": "second row", "sshKeys": []string{"ssh-ed25519 AAAA x"}}})
	d.must(err)
	if !reflect.DeepEqual(h.Meta.Labels, map[string]string{"tier": "prod"}) || h.Spec.Notes != "second row" || len(h.Spec.Interfaces) != 1 || h.Spec.UserData != hardware.Redacted {
		t.Errorf("got %+v", h)
	}
	kept, err := d.db.HardwareByName(ctx, "m1")
	d.must(err)
	if !strings.Contains(kept.Spec.UserData, "tops3cret") {
		t.Errorf("the secret was lost: %q", kept.Spec.UserData)
	}
	// a secret can be set and deleted, and what is read-only is left alone
	h, err = d.c.Hardware.Patch(ctx, "m1", h.Meta.Revision, m{"spec": m{"userData": nil, "notes": nil}, "status": m{"state": "retired"}, "facts": m{"arch": "vax"}})
	d.must(err)
	if h.Spec.UserData != "" || h.Spec.Notes != "" || h.Status.State != hardware.StateAvailable || h.Facts != nil {
		t.Errorf("got %+v", h)
	}
	// the same as PUT of the merged document, and nothing where nothing changes
	again, err := d.c.Hardware.Patch(ctx, "m1", 0, m{"spec": m{"notes": nil}})
	if err != nil || again.Meta.Revision != h.Meta.Revision {
		t.Errorf("got revision %d after %d, %v", again.Meta.Revision, h.Meta.Revision, err)
	}
	_, err = d.c.Hardware.Patch(ctx, "m1", h.Meta.Revision-1, m{"spec": m{"notes": "x"}})
	if p := wantProblem(t, err, http.StatusPreconditionFailed, api.CodeConflict, "somebody changed it"); p.Revision != h.Meta.Revision {
		t.Errorf("revision %d, want %d", p.Revision, h.Meta.Revision)
	}
	_, err = d.c.Hardware.Patch(ctx, "m1", 0, m{"metadata": m{"revision": 1}, "spec": m{"notes": "x"}})
	wantProblem(t, err, http.StatusConflict, api.CodeConflict, "somebody changed it")
	tm, err := d.c.Templates.Patch(ctx, "install", 0, m{"spec": m{"description": "a list"}})
	d.must(err)
	if keptT, err := d.db.TemplateByName(ctx, "install"); err != nil || keptT.Spec.Parameters[1].Default != "hunter2" || tm.Spec.Parameters[1].Default != hardware.Redacted {
		t.Errorf("got %+v, %v", keptT, err)
	}
}

func TestPatchRefusals(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	const at = api.Base + "/hardware/m1"
	for _, tc := range []struct {
		name, path, ct, body string
		status               int
		want                 string
	}{
		{"json patch", at, "application/json-patch+json", `[{"op":"remove","path":"/spec"}]`, 415, `merge-patch`},
		{"a list", at, "", `[1]`, 400, `a merge patch is a map, not a list`},
		{"two", at, "application/yaml", "a: b\n---\nc: d\n", 400, `2 documents`},
		{"yaml", at, "application/yaml", "spec: {notes: in yaml}\n", 200, `in yaml`},
		{"merge patch yaml", at, "application/merge-patch+yaml", "spec:\n  position: '7'\n", 200, `"position":"7"`},
		{"unknown nested field", at, "application/merge-patch+json", `{"spec":{"netboot":{"alowPXE":true}}}`, 422, `spec.netboot.alowPXE: is not known here (did you mean allowPXE?) (line 1)`},
		{"wrong in itself", at, "", `{"spec":{"interfaces":[{"mac":"52:54:00:00:00:01","addresses":["10.0.0.0/24"]}]}}`, 422, `spec.interfaces[0].addresses[0]`},
		{"nothing left", at, "", `{"spec":null}`, 422, `spec.interfaces`},
		{"another name", at, "", `{"metadata":{"name":"m2"}}`, 422, `cannot be renamed`},
		{"another kind", at, "", `{"kind":"Subnet"}`, 422, `wanted Hardware`},
		{"nobody", api.Base + "/hardware/m3", "", `{}`, 404, `there is no hardware`},
		{"written once", api.Base + "/workflows/w", "", `{}`, 405, `GET or DELETE`},
	} {
		d.apply("kind: Hardware\nmetadata: {name: m2}\nspec: {interfaces: [{mac: '52:54:00:00:00:02'}]}\n")
		if resp, text := d.raw("PATCH", tc.path, tc.ct, tc.body); resp.StatusCode != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s: got %d %s, want %d …%s…", tc.name, resp.StatusCode, text, tc.status, tc.want)
		}
	}
}

// Patches of different fields at once all arrive.
func TestPatchesAtOnce(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = d.c.Hardware.Patch(t.Context(), "m1", 0, json.RawMessage(`{"metadata":{"labels":{"k`+string(rune('0'+i))+`":"v"}}}`))
		})
	}
	wg.Wait()
	for _, err := range errs {
		d.must(err)
	}
	h, err := d.c.Hardware.Get(t.Context(), "m1")
	if err != nil || len(h.Meta.Labels) != 1+len(errs) {
		t.Errorf("got %v, %v", h.Meta.Labels, err)
	}
}
