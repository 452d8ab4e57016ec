package workflow

import (
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Image is an operating system image in the catalogue: either kept by the
// appliance (Blob) or fetched by the worker from elsewhere (URL).
type Image struct {
	Meta hardware.Meta `json:"metadata"`
	Spec ImageSpec     `json:"spec"`
}

// ImageSpec is what is known of an image.
type ImageSpec struct {
	// URL is where workers fetch it, for an image that the appliance does not keep.
	URL string `json:"url,omitempty"`
	// Checksum of the bytes as they travel: sha256:<hex> or sha512:<hex>.
	Checksum string `json:"checksum,omitempty"`
	// Blob is the sha256 in hex of the file that the appliance keeps; written by
	// the appliance when the file was uploaded.
	Blob string `json:"blob,omitempty"`
	// Bytes is the size of the kept file.
	Bytes int64 `json:"bytes,omitempty"`
	// Format is auto, raw, gz, xz, zst or bz2; auto where empty.
	Format string `json:"format,omitempty"`
	// Arch is the CPU architecture it is for: amd64 (also where empty) or arm64.
	Arch        string `json:"arch,omitempty"`
	Description string `json:"description,omitempty"`
}

// Validate says everything that is wrong with the record by itself, as an
// *hardware.Invalid.
func (i *Image) Validate() error {
	c := hardware.NewChecker("image", i.Meta.Name)
	c.Meta(i.Meta)
	s := &i.Spec
	switch {
	case s.URL == "" && s.Blob == "":
		c.Addf("spec.url", "is empty (give an http(s) URL, or upload a file: `rackstrap image add %s FILE`)", i.Meta.Name)
	case s.URL != "" && s.Blob != "":
		c.Addf("spec.url", "and spec.blob exclude each other")
	case s.URL != "":
		c.Add("spec.url", validURL(s.URL))
	}
	if s.Checksum != "" {
		c.Add("spec.checksum", ValidChecksum(s.Checksum))
	}
	if s.Blob != "" {
		c.Add("spec.blob", ValidChecksum("sha256:"+s.Blob))
	}
	if s.Arch != "" && s.Arch != "amd64" && s.Arch != "arm64" {
		c.Addf("spec.arch", "%q is not known (amd64 or arm64)", s.Arch)
	}
	switch s.Format {
	case "", "auto", "raw", "gz", "xz", "zst", "bz2":
	default:
		c.Addf("spec.format", "%q is not known (auto, raw, gz, xz, zst or bz2)", s.Format)
	}
	return c.Err()
}

// Source is where a worker fetches the image and what it must be: a path below
// the appliance's HTTP base for a kept file, else the URL.
func (i *Image) Source() (url, checksum string) {
	if i.Spec.Blob != "" {
		return "/images/" + strings.ToLower(i.Spec.Blob), "sha256:" + i.Spec.Blob
	}
	return i.Spec.URL, i.Spec.Checksum
}
