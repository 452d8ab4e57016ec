package rest

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// blobBody marks a body that is the bytes of a file.
type blobBody struct{ io.Reader }

func (s *server) version(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, api.VersionInfo{Version: s.Version, Fingerprint: s.fingerprint()})
}

func (s *server) leases(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Records.ListLeases(r.Context())
	if err != nil {
		return err
	}
	if all == nil {
		all = []hardware.Lease{}
	}
	return writeJSON(w, http.StatusOK, api.List[hardware.Lease]{APIVersion: api.Version, Kind: "LeaseList", Items: all})
}

func (s *server) hold(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	var in api.Hold
	if err := options(w, r, "hold", &in); err != nil {
		return err
	}
	h, err := s.hardware.find(r.Context(), name)
	if err != nil {
		return err
	}
	if err := s.Engine.SetHold(r.Context(), h.Meta.UID, in.Hold == nil || *in.Hold); err != nil {
		return err
	}
	return s.hardware.answer(r.Context(), w, http.StatusOK, name)
}

func (s *server) cancel(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	var in api.Cancel
	if err := options(w, r, "cancel", &in); err != nil {
		return err
	}
	if _, err := s.workflows.find(r.Context(), name); err != nil {
		return err
	}
	why := hardware.PlainText(strings.TrimSpace(in.Reason), 200)
	if why == "" {
		why = "cancelled by an operator"
	}
	if _, err := s.Engine.CancelWorkflow(r.Context(), name, why); err != nil {
		return err
	}
	return s.workflows.answer(r.Context(), w, http.StatusOK, name)
}

// upload keeps the body as the image's file. Everything that can be wrong is looked
// for before the first byte is taken, so that nobody waits for nothing.
func (s *server) upload(w http.ResponseWriter, r *http.Request) error {
	name, q := chi.URLParam(r, "name"), r.URL.Query()
	if err := queryKnown(q, "checksum", "format", "arch", "description"); err != nil {
		return err
	}
	match, err := ifMatch(r)
	if err != nil {
		return err
	}
	old, err := s.Records.ImageByName(r.Context(), name)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return err
	}
	v := &workflow.Image{Meta: hardware.Meta{Name: name}}
	status := http.StatusCreated
	if old != nil && err == nil {
		status = http.StatusOK
		c := *old
		v = &c
	} else {
		old = nil
	}
	setImage(v, q, strings.Repeat("0", 64), 1) // a digest that has the right shape
	if err := v.Validate(); err != nil {
		return err
	}
	s.files.sweep(r.Context()) // room that an ended workflow held
	if err := s.keep(r, v, old, match); err != nil {
		return err
	}
	return s.images.answer(r.Context(), w, status, name)
}

// keep takes the body and writes the record that names it. A file that is not
// named in the end is deleted, as is the one that was named before.
func (s *server) keep(r *http.Request, v, old *workflow.Image, match uint64) error {
	defer s.files.sweep(r.Context())
	s.files.naming.RLock()
	defer s.files.naming.RUnlock()
	digest, size, err := s.Blobs.Put(r.Context(), r.Body, r.URL.Query().Get("checksum"))
	if err != nil {
		return err
	}
	setImage(v, r.URL.Query(), strings.TrimPrefix(digest, "sha256:"), size)
	if old == nil {
		return s.images.add(r.Context(), v)
	}
	_, _, err = s.images.replace(r.Context(), v, old, match)
	return err
}

func setImage(v *workflow.Image, q url.Values, digest string, size int64) {
	v.Spec.URL, v.Spec.Blob, v.Spec.Bytes = "", digest, size
	v.Spec.Checksum = q.Get("checksum")
	for key, field := range map[string]*string{"format": &v.Spec.Format, "arch": &v.Spec.Arch, "description": &v.Spec.Description} {
		if q.Has(key) {
			*field = q.Get(key)
		}
	}
}
