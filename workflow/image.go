package workflow

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Image is an operating system image in the catalogue: a source, and what the
// appliance made of it for workers (its renditions).
type Image struct {
	Meta   hardware.Meta `json:"metadata"`
	Spec   ImageSpec     `json:"spec"`
	Status ImageStatus   `json:"status,omitzero"`
}

// ImageSpec is what operators write.
type ImageSpec struct {
	// URL is where the appliance fetches the image once, to serve it to workers.
	URL string `json:"url,omitempty"`
	// Direct: the appliance keeps nothing, each worker fetches URL by itself.
	Direct bool `json:"direct,omitempty"`
	// Checksum of the source as it travels: sha256:<hex>, sha512:<hex> or, protecting
	// from accidents only, md5:<hex>; or the http(s) URL of a list of checksums (SHA256SUMS) that names the URL's file.
	Checksum string `json:"checksum,omitempty"`
	// CA are PEM certificates to trust for https, besides the usual ones.
	CA string `json:"ca,omitempty"`
	// Blob is the sha256 in hex of an uploaded source, and Bytes its size; an upload
	// writes them. Blob and URL exclude each other.
	Blob  string `json:"blob,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Format of the source: auto, raw, gz, xz, zst, bz2 or qcow2; auto where empty.
	// With raw its bytes are written as they are, whatever they look like.
	Format string `json:"format,omitempty"`
	// Arch is the CPU architecture it is for: amd64 (also where empty) or arm64.
	Arch string `json:"arch,omitempty"`
	// OS, OSVersion and KubernetesVersion are what FindImage looks for.
	OS                string `json:"os,omitempty"`
	OSVersion         string `json:"osVersion,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Description is for people.
	Description string `json:"description,omitempty"`
}

// ImageState is how far the appliance is with an image.
type ImageState string

// The states of an image.
const (
	ImageWaiting    ImageState = "waiting"    // its turn comes
	ImageFetching   ImageState = "fetching"   // from its URL
	ImageConverting ImageState = "converting" // unpacked, checked, and packed for workers
	ImageReady      ImageState = "ready"
	ImageFailed     ImageState = "failed" // until the spec changes, or somebody asks for it again
)

// Ended reports whether nothing more happens by itself.
func (s ImageState) Ended() bool { return s == ImageReady || s == ImageFailed }

// ImageStatus is what the image manager knows; nobody else writes it.
type ImageStatus struct {
	State ImageState `json:"state,omitempty"`
	// Message says why it failed, or what it waits for.
	Message string `json:"message,omitempty"`
	// For is the key of the spec that this is about; see ImageSpec.Key.
	For string `json:"for,omitempty"`
	// Source is the file that was fetched or uploaded. It is deleted when a rendition
	// was made of it.
	Source ImageFile `json:"source,omitzero"`
	// Checksum is what the source was compared with, if anything.
	Checksum string `json:"checksum,omitempty"`
	// Renditions are what workers can fetch, the best first. While another file is
	// fetched or converted, and where that failed, they are of the one before.
	Renditions []ImageRendition `json:"renditions,omitempty"`
	// DiskBytes is the size of the disk image, unpacked.
	DiskBytes int64 `json:"diskBytes,omitempty"`
	// Fetched is when the source was complete.
	Fetched time.Time `json:"fetched,omitzero"`
}

// ImageFile is a file of an image.
type ImageFile struct {
	Format string `json:"format"`
	// Digest is the sha256 in hex.
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
}

// ImageRendition is a file that workers can fetch, and what it was made of.
type ImageRendition struct {
	ImageFile
	// Source is the file that it was made of, and Checksum what that was compared with.
	// Empty where it was made before they were kept and cannot be told from the status.
	Source   ImageFile `json:"source,omitzero"`
	Checksum string    `json:"checksum,omitempty"`
	// For is the key of the spec that it was made for; see ImageSpec.Key.
	For string `json:"for,omitempty"`
	// Arch is the architecture that the spec had then.
	Arch string `json:"arch,omitempty"`
}

// Of reports whether checksum (sha256:<hex>, sha512:<hex> or md5:<hex>) is one of the file that
// the rendition was made of, or of the rendition itself.
func (r *ImageRendition) Of(checksum string) bool {
	sum := strings.ToLower(checksum)
	return sum != "" && (sum == "sha256:"+r.Source.Digest || sum == strings.ToLower(r.Checksum) || sum == "sha256:"+r.Digest)
}

// ImageProgress is how far the work on an image is; kept in memory only.
type ImageProgress struct {
	State ImageState `json:"state"`
	Done  int64      `json:"done"`            // bytes of the source
	Total int64      `json:"total,omitempty"` // 0 is unknown
	// Message is the last thing that went wrong, and when it is tried again.
	Message string `json:"message,omitempty"`
}

// Key tells sources apart: two specs of one key mean the same bytes.
func (s *ImageSpec) Key() string {
	b, err := json.Marshal([]any{s.URL, s.Direct, s.Checksum, s.CA, strings.ToLower(s.Blob), s.Format})
	if err != nil {
		panic("workflow: strings that JSON does not know: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Architecture is Arch with its default.
func (s *ImageSpec) Architecture() string {
	if s.Arch == "" {
		return "amd64"
	}
	return s.Arch
}

// Current is the status if it is about the spec as it is now, else that of an image
// that waits, and of which the renditions before are still served: an install that
// runs does not break when its image is replaced. Those for another architecture are
// not. A direct image has none.
func (i *Image) Current() ImageStatus {
	if i.Spec.Direct {
		return ImageStatus{}
	}
	st, key := i.Status, i.Spec.Key()
	st.Renditions = slices.DeleteFunc(st.told(), func(r ImageRendition) bool {
		return r.For != key && r.Arch != i.Spec.Architecture()
	})
	if st.For == key {
		return st
	}
	waits := ImageStatus{State: ImageWaiting, Renditions: st.Renditions}
	if len(st.Renditions) > 0 {
		waits.DiskBytes = st.DiskBytes
	}
	return waits
}

// told are the renditions with what the status says of those that do not say it
// themselves: they were made when only the status did. It is of the newest source,
// which is theirs until the next one is here.
func (st *ImageStatus) told() []ImageRendition {
	out := slices.Clone(st.Renditions)
	for k := range out {
		r := &out[k]
		if r.For != "" {
			continue
		}
		if r.For = st.For; st.State != ImageConverting && st.Source.Digest != "" {
			r.Source, r.Checksum = st.Source, st.Checksum
		}
	}
	return out
}

// ImageSource is where a worker fetches an image, and what it must be.
type ImageSource struct {
	// URL is absolute, or a path below the appliance's HTTP base.
	URL      string
	Checksum string
	Format   string
	CA       string
}

// Source is where a worker fetches the image; the error says why it cannot yet, and
// what to type.
func (i *Image) Source() (ImageSource, error) {
	if i.Spec.Direct {
		return ImageSource{URL: i.Spec.URL, Checksum: i.Spec.Checksum, Format: i.Spec.Format, CA: i.Spec.CA}, nil
	}
	st, name := i.Current(), i.Meta.Name
	if len(st.Renditions) > 0 { // also while it is fetched anew, or replaced
		r := st.Renditions[0]
		return ImageSource{URL: "/images/" + r.Digest, Checksum: "sha256:" + r.Digest, Format: r.Format}, nil
	}
	if st.State == ImageFailed {
		again := "rackstrap image fetch " + name
		if i.Spec.URL == "" {
			again = "rackstrap image add " + name + " FILE"
		}
		return ImageSource{}, fmt.Errorf("image %q cannot be used: %s (when that is mended: %s)", name, st.Message, again)
	}
	return ImageSource{}, fmt.Errorf("image %q is not ready, it is %s (wait for it: rackstrap image wait %s)", name, st.State, name)
}

// maxImageCA bounds spec.ca, in bytes.
const maxImageCA = 64 << 10

var imageWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_~-]{0,63}$`)

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
	switch {
	case strings.Contains(s.Checksum, "://"):
		c.Add("spec.checksum", validURL(s.Checksum))
		if s.Direct || s.Blob != "" {
			c.Addf("spec.checksum", "%.120q is a URL, and only the appliance reads those (write sha256:<hex>)", s.Checksum)
		}
	case s.Checksum != "":
		c.Add("spec.checksum", ValidChecksum(s.Checksum))
	}
	if s.Blob != "" {
		c.Add("spec.blob", ValidChecksum("sha256:"+s.Blob))
	}
	if s.Direct && s.URL == "" {
		c.Addf("spec.direct", "needs a URL")
	}
	if s.CA != "" && (len(s.CA) > maxImageCA || !x509.NewCertPool().AppendCertsFromPEM([]byte(s.CA))) {
		c.Addf("spec.ca", "holds no PEM certificate, or is longer than %d bytes (it begins with -----BEGIN CERTIFICATE-----)", maxImageCA)
	}
	if s.Arch != "" && s.Arch != "amd64" && s.Arch != "arm64" {
		c.Addf("spec.arch", "%.40q is not known (amd64 or arm64)", s.Arch)
	}
	switch s.Format {
	case "", "auto", "raw", "gz", "xz", "zst", "bz2":
	case "qcow2":
		if s.Direct {
			c.Addf("spec.format", "qcow2 is not read by workers (leave out direct: the appliance converts it)")
		}
	default:
		c.Addf("spec.format", "%.40q is not known (auto, raw, gz, xz, zst, bz2 or qcow2)", s.Format)
	}
	for field, v := range map[string]string{"spec.os": s.OS, "spec.osVersion": s.OSVersion, "spec.kubernetesVersion": s.KubernetesVersion} {
		if v != "" && !imageWord.MatchString(v) {
			c.Addf(field, "%.70q is no name or version (at most 64 letters, digits and . + _ ~ -)", v)
		}
	}
	return c.Err()
}
