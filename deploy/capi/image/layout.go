package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// binary is the program for one architecture.
type binary struct {
	arch string
	data []byte
}

// The media types of the OCI image format, version 1.1:
// https://github.com/opencontainers/image-spec/blob/v1.1.0/media-types.md
const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// program is where the binary is in the image.
const program = "rackstrap-capi"

// user runs it: nobody's number, the one that the Deployment asks for.
const user = "65532:65532"

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type config struct {
	platform
	Config struct {
		User       string            `json:"User"`
		Entrypoint []string          `json:"Entrypoint"`
		WorkingDir string            `json:"WorkingDir"`
		Labels     map[string]string `json:"Labels"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// blobs are the parts of an image by their digests.
type blobs map[string][]byte

func (b blobs) add(mediaType string, data []byte) descriptor {
	d := digest(data)
	b[d] = data
	return descriptor{MediaType: mediaType, Digest: d, Size: int64(len(data))}
}

func (b blobs) addJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return b.add(mediaType, data), err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// write writes the layout: one image, or one of several architectures.
func write(w io.Writer, name string, binaries []binary) error {
	b := blobs{}
	var images []descriptor
	for _, x := range binaries {
		d, err := b.image(name, x)
		if err != nil {
			return err
		}
		images = append(images, d)
	}
	top := images[0]
	if len(images) > 1 {
		var err error
		if top, err = b.addJSON(mediaIndex, index{2, mediaIndex, images}); err != nil {
			return err
		}
	}
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	// containerd reads the whole name, others the tag
	top.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
	entry, err := json.Marshal(index{2, mediaIndex, []descriptor{top}})
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	err = errors.Join(file(t, "oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)), file(t, "index.json", 0o644, entry))
	for _, d := range slices.Sorted(maps.Keys(b)) {
		err = errors.Join(err, file(t, "blobs/"+strings.Replace(d, ":", "/", 1), 0o644, b[d]))
	}
	return errors.Join(err, t.Close())
}

// image adds the image of one architecture.
func (b blobs) image(name string, x binary) (descriptor, error) {
	var plain, packed bytes.Buffer
	t := tar.NewWriter(&plain)
	if err := errors.Join(file(t, program, 0o755, x.data), t.Close()); err != nil {
		return descriptor{}, err
	}
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		return descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, err
	}
	version := name[strings.LastIndex(name, ":")+1:]
	c := config{platform: platform{x.arch, "linux"}}
	c.Config.User, c.Config.Entrypoint, c.Config.WorkingDir = user, []string{"/" + program}, "/"
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.source":   "https://github.com/rackstrap/rackstrap",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version":  version,
	}
	if r := revision(x.data); r != "" {
		c.Config.Labels["org.opencontainers.image.revision"] = r
	}
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{digest(plain.Bytes())}
	conf, err := b.addJSON(mediaConfig, c)
	if err != nil {
		return descriptor{}, err
	}
	d, err := b.addJSON(mediaManifest, manifest{2, mediaManifest, conf, []descriptor{b.add(mediaLayer, packed.Bytes())}})
	d.Platform = &c.platform
	return d, err
}

// file adds a file that belongs to root and has no age, so that images are the same
// whenever they are made.
func file(t *tar.Writer, name string, mode int64, data []byte) error {
	err := t.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
	if err != nil {
		return err
	}
	_, err = t.Write(data)
	return err
}
