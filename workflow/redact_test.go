package workflow

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestWorkflowRedacted(t *testing.T) {
	t.Parallel()
	tmpl := &Template{Spec: TemplateSpec{Parameters: []Parameter{
		{Name: "password", Type: ParamSecret}, {Name: "fallback", Type: ParamSecret, Default: "hunter2"}, {Name: "image"},
	}}}
	w := &Workflow{
		Spec: WorkflowSpec{Params: map[string]any{"password": "tops3cret", "image": "debian-12"}},
		Status: Status{Actions: []Action{
			{Kind: KindFileWrite, With: json.RawMessage(`{"path":"/etc/x","content":"whatever"}`)},
			{Kind: KindCloudInit, With: json.RawMessage(`{"metaData":"p=tops3cret q=hunter2"}`)},
			{Kind: KindImageWrite, With: json.RawMessage(`{"image":"debian-12"}`)},
			{Kind: "from.the.future", With: json.RawMessage(`{"token":"abc"}`)},
			{Kind: KindReboot},
		}},
	}
	before, _ := json.Marshal(w)
	for _, tc := range []struct {
		name  string
		tmpl  *Template
		image any
		holds []string
		hides []string
	}{
		{"template known", tmpl, "debian-12", []string{"/etc/x", `"image":"debian-12"`}, []string{"tops3cret", "hunter2", "whatever", "abc"}},
		{"template gone", nil, hardware.Redacted, []string{"/etc/x"}, []string{"tops3cret", "whatever", "abc", "debian-12"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := w.Redacted(tc.tmpl)
			if got.Spec.Params["image"] != tc.image || got.Spec.Params["password"] != hardware.Redacted {
				t.Errorf("params: %v", got.Spec.Params)
			}
			raw, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range tc.hides {
				if strings.Contains(string(raw), s) {
					t.Errorf("%s is shown in %s", s, raw)
				}
			}
			for _, s := range tc.holds {
				if !strings.Contains(string(raw), s) {
					t.Errorf("%s is missing in %s", s, raw)
				}
			}
			if back := got.Spec.Unredacted(w.Spec); !reflect.DeepEqual(back, w.Spec) {
				t.Errorf("sent back: %v", back)
			}
		})
	}
	if after, _ := json.Marshal(w); string(after) != string(before) {
		t.Error("the original was changed")
	}
}

func TestWorkflowRedactedNumbers(t *testing.T) {
	t.Parallel()
	tmpl := &Template{Spec: TemplateSpec{Parameters: []Parameter{{Name: "pin", Type: ParamSecret}, {Name: "code", Type: ParamSecret, Default: float64(7654321)}}}}
	for _, pin := range []any{1234567, int64(1234567), float64(1234567)} {
		w := &Workflow{
			Spec:   WorkflowSpec{Params: map[string]any{"pin": pin}},
			Status: Status{SecretParams: []string{"pin", "code"}, Actions: []Action{{Kind: KindCloudInit, With: json.RawMessage(`{"metaData":"p=1234567 c=7654321"}`)}}},
		}
		if got := string(w.Redacted(tmpl).Status.Actions[0].With); strings.Contains(got, "1234567") || strings.Contains(got, "7654321") || !strings.Contains(got, "p=") {
			t.Errorf("%T: %s", pin, got)
		}
	}
}

// What was secret once stays so, whatever happens to the template.
func TestWorkflowRedactedAfterTheTemplateChanged(t *testing.T) {
	t.Parallel()
	w := &Workflow{
		Spec: WorkflowSpec{Params: map[string]any{"password": "tops3cret", "image": "debian-12"}},
		Status: Status{SecretParams: []string{"password", "fallback"}, Actions: []Action{
			{Kind: KindCloudInit, With: json.RawMessage(`{"metaData":"p=tops3cret q=hunter2 i=debian-12"}`)}, {Kind: KindReboot},
		}},
	}
	for _, tc := range []struct {
		name  string
		tmpl  *Template
		image bool
	}{
		{"both are strings now", &Template{Spec: TemplateSpec{Parameters: []Parameter{{Name: "password"}, {Name: "fallback", Default: "hunter2"}, {Name: "image"}}}}, true},
		{"the default is gone", &Template{Spec: TemplateSpec{Parameters: []Parameter{{Name: "password"}, {Name: "fallback", Type: ParamSecret}, {Name: "image"}}}}, false},
		{"the parameters are gone", &Template{Spec: TemplateSpec{Parameters: []Parameter{{Name: "image"}}}}, false},
		{"the template is gone", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			raw, err := json.Marshal(w.Redacted(tc.tmpl))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []string{"tops3cret", "hunter2"} {
				if strings.Contains(string(raw), s) {
					t.Errorf("%s is shown in %s", s, raw)
				}
			}
			if got := strings.Contains(string(raw), "i=debian-12"); got != tc.image {
				t.Errorf("options are shown: %v, want %v: %s", got, tc.image, raw)
			}
		})
	}
}

func TestTemplateRedacted(t *testing.T) {
	t.Parallel()
	tmpl := &Template{Spec: TemplateSpec{Parameters: []Parameter{{Name: "a", Type: ParamSecret, Default: "x"}, {Name: "b", Default: "y"}, {Name: "c", Type: ParamSecret, Default: ""}}}}
	got := tmpl.Redacted()
	if got.Spec.Parameters[0].Default != hardware.Redacted || got.Spec.Parameters[1].Default != "y" || got.Spec.Parameters[2].Default != "" {
		t.Errorf("got %+v", got.Spec.Parameters)
	}
	if back := got.Unredacted(tmpl); !reflect.DeepEqual(back, tmpl) {
		t.Errorf("sent back: %+v", back)
	}
}
