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

	"github.com/klauspost/compress/zstd"
)

// archiveVersion changes when WriteArchive makes another image of the same program.
const archiveVersion = "1"

// descriptor points at a blob. Source: OCI Image Format Specification, descriptor.md.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// WriteArchive writes a container image of one layer with one static program, which
// `ctr images import` takes: no registry is asked. Source: OCI Image Format
// Specification, image-layout.md and manifest.md.
func WriteArchive(out, ref, program string) error {
	layer, diffID, err := makeLayer(program)
	if err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{
			"Entrypoint": []string{"/usr/local/bin/" + filepath.Base(program)},
			"Env":        []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{diffID}},
	})
	if err != nil {
		return err
	}
	a := archive{w: w}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": a.blob("application/vnd.oci.image.config.v1+json", config),
		"layers": []descriptor{a.blob("application/vnd.oci.image.layer.v1.tar+zstd", layer)},
	})
	if err != nil {
		return err
	}
	d := a.blob("application/vnd.oci.image.manifest.v1+json", manifest)
	d.Annotations = map[string]string{"io.containerd.image.name": ref}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{d}})
	if err != nil {
		return err
	}
	a.file("index.json", index)
	a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if a.err != nil {
		return a.err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}

// makeLayer is the compressed layer with the program below /usr/local/bin, and the
// digest of what it unpacks to.
func makeLayer(program string) (layer []byte, diffID string, err error) {
	f, err := os.Open(program)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, "", err
	}
	h := sha256.New()
	w := tar.NewWriter(io.MultiWriter(z, h))
	for _, dir := range []tar.Header{
		{Name: "tmp/", Mode: 0o1777}, {Name: "usr/", Mode: 0o755}, {Name: "usr/local/", Mode: 0o755}, {Name: "usr/local/bin/", Mode: 0o755},
	} {
		dir.Typeflag = tar.TypeDir
		if err := w.WriteHeader(&dir); err != nil {
			return nil, "", err
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: "usr/local/bin/" + filepath.Base(program), Mode: 0o755, Size: st.Size()}); err != nil {
		return nil, "", err
	}
	if _, err := io.Copy(w, f); err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	if err := z.Close(); err != nil {
		return nil, "", err
	}
	return packed.Bytes(), fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}

// archive writes files until the first error.
type archive struct {
	w   *tar.Writer
	err error
}

func (a *archive) file(name string, b []byte) {
	if a.err != nil {
		return
	}
	if a.err = a.w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b))}); a.err == nil {
		_, a.err = a.w.Write(b)
	}
}

// blob writes content under its digest.
func (a *archive) blob(mediaType string, b []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(b))
	a.file("blobs/sha256/"+sum, b)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(b)}
}
