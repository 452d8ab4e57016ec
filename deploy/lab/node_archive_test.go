package lab

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// readTar returns the files of a tar by name.
func readTar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWriteArchive: every blob is what its name says, the index leads to the program,
// and the same program makes the same archive.
func TestWriteArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "etcd")
	if err := os.WriteFile(program, bytes.Repeat([]byte("etcd"), 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	var archives [2][]byte
	for i := range archives {
		out := filepath.Join(dir, "etcd.tar")
		if err := WriteArchive(out, "registry.example/etcd:1", program); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = b
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of one program differ")
	}
	files := readTar(t, bytes.NewReader(archives[0]))
	blob := func(d descriptor, into any) []byte {
		t.Helper()
		b := files["blobs/sha256/"+d.Digest[len("sha256:"):]]
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(b)); sum != d.Digest || len(b) != d.Size {
			t.Errorf("blob %s has %d bytes with digest %s, want %d", d.Digest, len(b), sum, d.Size)
		}
		if into == nil {
			return b
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
		return b
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["io.containerd.image.name"] != "registry.example/etcd:1" {
		t.Fatalf("index: %+v", index)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	blob(index.Manifests[0], &manifest)
	var config struct {
		Config struct{ Entrypoint []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	blob(manifest.Config, &config)
	z, err := zstd.NewReader(bytes.NewReader(blob(manifest.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	layer, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); config.RootFS.DiffIDs[0] != sum {
		t.Errorf("the layer unpacks to %s, the configuration says %v", sum, config.RootFS.DiffIDs)
	}
	want, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if got := readTar(t, bytes.NewReader(layer))[config.Config.Entrypoint[0][1:]]; !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes in the layer, want %d", config.Config.Entrypoint[0], len(got), len(want))
	}
}
