package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

// An image for two architectures is the same bytes each time, and a real tool reads it,
// checks its digests and finds the program and who runs it.
func TestImage(t *testing.T) {
	t.Parallel()
	lab.Require(t, "skopeo")
	binaries := []binary{{"amd64", []byte("one\n")}, {"arm64", []byte("two\n")}}
	const name = "registry.example/rackstrap-capi:v0.1.0"
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := write(b, name, binaries); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two images of the same binaries differ")
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "image.tar")
	if err := os.WriteFile(archive, first.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string]string{"amd64": "one\n", "arm64": "two\n"} {
		out := skopeo(t, "--override-os", "linux", "--override-arch", arch, "inspect", "--config", "oci-archive:"+archive+":v0.1.0")
		var c config
		if err := json.Unmarshal(out, &c); err != nil {
			t.Fatal(err)
		}
		if c.Architecture != arch || c.Config.User != user || len(c.Config.Entrypoint) != 1 || c.Config.Entrypoint[0] != "/"+program {
			t.Errorf("%s: config %s", arch, out)
		}
		to := filepath.Join(dir, arch)
		skopeo(t, "--insecure-policy", "--override-os", "linux", "--override-arch", arch, "copy", "oci-archive:"+archive+":v0.1.0", "dir:"+to)
		var m manifest
		data, err := os.ReadFile(filepath.Join(to, "manifest.json"))
		if err != nil || json.Unmarshal(data, &m) != nil || len(m.Layers) != 1 {
			t.Fatalf("%s: %v %s", arch, err, data)
		}
		got, err := exec.CommandContext(t.Context(), "tar", "-xzOf", filepath.Join(to, m.Layers[0].Digest[len("sha256:"):]), program).Output()
		if err != nil || string(got) != want {
			t.Errorf("%s: the layer has %q: %v", arch, got, err)
		}
	}
}

func skopeo(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "skopeo", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("skopeo %v: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}
