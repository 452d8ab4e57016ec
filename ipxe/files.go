package ipxe

import (
	"fmt"
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
	if err := setRate(r, 0); err != nil {
		return h.refuse(w, r, "image "+digest, err)
	}
	h.content(w, r, digest, digest, info.ModTime(), f)
	return nil
}
