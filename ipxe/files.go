package ipxe

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// image serves a kept image by its digest. What has that name never changes.
func (h *handler) image(w *sender, r *http.Request) error {
	digest := strings.ToLower(param(r, "digest"))
	if len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		h.observe(r, Observation{Reason: hardware.ReasonBadName, Detail: "image " + digest})
		http.Error(w, "not the sha256 of an image in hexadecimal", http.StatusBadRequest)
		return nil
	}
	f, err := h.backend.Image(r.Context(), digest)
	if err != nil {
		return h.refuse(w, r, "image "+digest, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return h.refuse(w, r, "image "+digest, err)
	}
	if !info.Mode().IsRegular() {
		return h.refuse(w, r, "image "+digest, fmt.Errorf("%s is not a regular file", f.Name()))
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	h.content(w, r, digest, info.ModTime(), f)
	return nil
}

// seed serves one file of an install's seed. The token is a secret and goes into
// no log and no event.
func (h *handler) seed(w *sender, r *http.Request) error {
	file := param(r, "file")
	data, err := h.backend.Seed(r.Context(), param(r, "token"), file)
	if errors.Is(err, fs.ErrNotExist) {
		h.observe(r, Observation{Reason: hardware.ReasonFileNotFound, Detail: "seed file " + file})
		http.Error(w, "no such seed, or its token has expired", http.StatusNotFound)
		return nil
	}
	if err != nil {
		return h.refuse(w, r, "seed file "+file, err)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data) // who went away asks again
	}
	return nil
}
