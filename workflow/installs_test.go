package workflow

import (
	"encoding/json"
	"testing"
)

// What is shown of the image lets nobody in where it comes from.
func TestImageShown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		image  string
		params map[string]any
		secret []string
		want   string
	}{
		{"debian-12", nil, nil, "debian-12"},
		{"debian-12", map[string]any{"userData": "x"}, []string{"userData"}, "debian-12"},
		{"https://u:p@img.example/a.raw?sig=abc#f", nil, nil, "https://img.example/a.raw"},
		{"https://img.example/a.raw", map[string]any{"image": "https://img.example/a.raw"}, []string{"userData"}, "https://img.example/a.raw"},
		// a part of it, or all of it, may be the secret
		{"https://img.example/k3y/a.raw", map[string]any{"key": "k3y"}, []string{"key"}, ""},
		{"https://img.example/a.raw", map[string]any{"image": "https://img.example/a.raw"}, []string{"image"}, ""},
	} {
		with, err := json.Marshal(ImageWrite{Image: tc.image})
		if err != nil {
			t.Fatal(err)
		}
		w := Workflow{Spec: WorkflowSpec{Params: tc.params}, Status: Status{SecretParams: tc.secret, Actions: []Action{{Kind: KindDiskWipe}, {Kind: KindImageWrite, With: with}}}}
		if got := w.image(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.image, got, tc.want)
		}
	}
	if got := (&Workflow{}).image(); got != "" {
		t.Errorf("no image: %q", got)
	}
}
