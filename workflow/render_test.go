package workflow

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

func machineM1() *hardware.Hardware {
	mac, _ := hardware.ParseMAC("52:54:00:00:00:01")
	return &hardware.Hardware{Meta: hardware.Meta{Name: "m1", UID: "h1"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: mac}}}}
}

func templateOf(kind Kind, with map[string]any, params ...Parameter) *Template {
	return &Template{Meta: hardware.Meta{Name: "t"}, Spec: TemplateSpec{Parameters: params, Actions: []ActionSpec{{Name: "a", Kind: kind, With: with}}}}
}

func TestTemplateRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		t    *Template
		want string
	}{
		{"unknown kind", templateOf("disk.format", nil), `spec.actions[0].kind: "disk.format" is not known (one of cloudinit,`},
		{"unknown field", templateOf(KindDiskWipe, map[string]any{"disc": "x"}), `unknown field "disc"`},
		{"unknown field beside a parameter", templateOf(KindDiskWipe, map[string]any{"disc": "x", "disk": "${d}"}, Parameter{Name: "d"}), `unknown field "disc"`},
		{"undeclared parameter", templateOf(KindDiskWipe, map[string]any{"disk": "${d}"}), "${d} is not declared"},
		{"bad option", templateOf(KindDiskWipe, map[string]any{"disk": "sda"}), `with.disk: "sda" is no disk`},
		{"open brace", templateOf(KindDiskWipe, map[string]any{"disk": "${d"}), "is not a parameter"},
		{"bad default", templateOf(KindReboot, nil, Parameter{Name: "n", Type: ParamInt, Default: "many"}), "spec.parameters[0].default: many is not a whole number"},
		{"bad type", templateOf(KindReboot, nil, Parameter{Name: "n", Type: "float"}), `"float" is not known`},
		{"twice", templateOf(KindReboot, nil, Parameter{Name: "n"}, Parameter{Name: "n"}), "declared twice"},
		{"relative path", templateOf(KindFileWrite, map[string]any{"path": "etc/../x", "content": ""}), "is not a clean absolute path"},
		{"md5", templateOf(KindImageWrite, map[string]any{"image": "debian", "checksum": "md5:00"}), "is no checksum"},
		{"password in the URL", templateOf(KindImageWrite, map[string]any{"image": "http://u:p@h/x"}), "password in the URL"},
		{"empty", &Template{Meta: hardware.Meta{Name: "t"}}, "spec.actions: is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.t.Validate()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "u:p") {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

func TestRebootMustBeLast(t *testing.T) {
	t.Parallel()
	tm := templateOf(KindReboot, nil)
	tm.Spec.Actions = append(tm.Spec.Actions, ActionSpec{Name: "b", Kind: KindDiskWipe})
	if err := tm.Validate(); err == nil || !strings.Contains(err.Error(), "must be the last action") {
		t.Errorf("got %v", err)
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	tm := templateOf(KindFileWrite, map[string]any{
		"path": "/etc/${what}", "content": "host ${hardware.name} costs $${HOME} ${n}\n", "uid": "${n}",
	}, Parameter{Name: "what"}, Parameter{Name: "n", Type: ParamInt, Default: 7})
	if err := tm.Validate(); err != nil {
		t.Fatal(err)
	}
	actions, err := Render(tm, map[string]any{"what": "motd"}, machineM1())
	if err != nil {
		t.Fatal(err)
	}
	var got FileWrite
	if err := json.Unmarshal(actions[0].With, &got); err != nil {
		t.Fatal(err)
	}
	want := FileWrite{Path: "/etc/motd", Content: "host m1 costs ${HOME} 7\n", UID: 7}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	tm := templateOf(KindFileWrite, map[string]any{"path": "/x", "content": "${text}", "uid": "${n}"}, Parameter{Name: "text"}, Parameter{Name: "n", Type: ParamInt})
	for _, tt := range []struct {
		params map[string]any
		want   string
	}{
		{nil, "spec.params.text: is missing"},
		{map[string]any{"text": "x", "n": "1.5"}, "spec.params.n: 1.5 is not a whole number"},
		{map[string]any{"text": "x", "n": 1, "txet": "y"}, `has no such parameter (it has text, n)`},
		{map[string]any{"text": []any{"x"}, "n": 1}, "spec.params.text: is a []interface {}"},
		{map[string]any{"text": "x", "n": -1}, "cannot be negative"},
	} {
		if _, err := Render(tm, tt.params, machineM1()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: got %v, want it to say %q", tt.params, err, tt.want)
		}
	}
}

// TestRenderedValueIsNotRead shows that a parameter's value is never itself read
// for parameters, whatever it holds.
func TestRenderedValueIsNotRead(t *testing.T) {
	t.Parallel()
	tm := templateOf(KindFileWrite, map[string]any{"path": "/x", "content": "${text}"}, Parameter{Name: "text"})
	in := "${hardware.uid} $${x} \"quote\"\nline: [yaml]"
	actions, err := Render(tm, map[string]any{"text": in}, machineM1())
	if err != nil {
		t.Fatal(err)
	}
	var got FileWrite
	if err := json.Unmarshal(actions[0].With, &got); err != nil || got.Content != in {
		t.Errorf("got %q, %v", got.Content, err)
	}
}

func FuzzSubstitute(f *testing.F) {
	for _, s := range []string{"", "plain", "${a}", "x${a}y", "$${a}", "${", "${a", "$", "${a}${a}", "$$${a}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// with every value empty, what is left is the literal text
		toks, err := tokens(s)
		if err != nil {
			return
		}
		names := map[string]any{}
		lit := ""
		for _, k := range toks {
			if k.param {
				names[k.text] = ""
			} else {
				lit += k.text
			}
		}
		got, err := substituteText(s, names)
		if err != nil || got != lit {
			t.Errorf("%q: got %q, %v; want %q", s, got, err, lit)
		}
	})
}
