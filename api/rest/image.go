package rest

import (
	"context"
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

// Images keeps the files of images in step with their records.
type Images interface {
	// Room says whether a file of that size fits now: an error that is noRoom.
	Room(ctx context.Context, bytes int64) error
	// Upload keeps what r has until io.EOF as the source of the image: it sets
	// spec.blob and spec.bytes and calls write, which writes the record. checksum
	// (sha256:… or sha512:…) may be empty. Nothing is kept on an error: one
	// that is altered or noRoom, *hardware.Invalid for what is no image, or that of r
	// or write.
	Upload(ctx context.Context, i *workflow.Image, r io.Reader, checksum string, write func(context.Context) error) error
	// Write calls write, which creates, changes or deletes the record of that name.
	// blob, if not empty, is the file that it names: *hardware.Invalid where that is
	// not here.
	Write(ctx context.Context, name, blob string, write func(context.Context) error) error
	// Fetch asks for an image again: *hardware.Invalid where it is not ours to fetch.
	Fetch(ctx context.Context, name string) error
	// Progress is how far the work on the image of that uid is; false where there is
	// none.
	Progress(uid string) (workflow.ImageProgress, bool)
}

// What errors of Images may say of themselves; their text is shown to the caller.
type (
	// altered: the bytes are not those that were announced.
	altered interface {
		error
		Altered() bool
	}
	// noRoom: the disk or the quota is used up.
	noRoom interface {
		error
		NoRoom() bool
	}
)

// blobBody marks a body that is the bytes of a file.
type blobBody struct{ io.Reader }

func imageRoutes() []Route {
	records := recordRoutes(api.KindImage, true, imageListing(), func(s *server) *resource[workflow.Image] { return s.images })
	return append(records, []Route{
		{
			Method: http.MethodPut, Path: "/images/{name}/blob", Does: "Upload the file of an image; the record is made or changed", Role: RoleOperator, In: blobBody{}, Out: api.Image{},
			Query: uploadParameters(), handle: (*server).upload,
		},
		{Method: http.MethodPost, Path: "/images/{name}/fetch", Does: "Fetch an image again", Role: RoleOperator, Out: api.Image{}, handle: (*server).fetchImage},
	}...)
}

func imageResource(d Deps) *resource[workflow.Image] {
	s := d.Records
	write := func(ctx context.Context, i *workflow.Image, put func(context.Context, *workflow.Image) error) error {
		return d.Images.Write(ctx, i.Meta.Name, i.Spec.Blob, func(ctx context.Context) error { return put(ctx, i) })
	}
	return &resource[workflow.Image]{
		kind: api.KindImage, readOnly: []string{"status", "progress"},
		meta:  func(i *workflow.Image) *hardware.Meta { return &i.Meta },
		spec:  func(i *workflow.Image) any { return i.Spec },
		check: (*workflow.Image).Validate,
		keep:  keepAll[workflow.Image],
		show: func(_ context.Context, i *workflow.Image) (any, error) {
			out := api.Image{Image: *i}
			out.Status = i.Current()
			out.Status.For = "" // ours
			for k := range out.Status.Renditions {
				out.Status.Renditions[k].For, out.Status.Renditions[k].Arch = "", ""
			}
			if p, ok := d.Images.Progress(i.Meta.UID); ok {
				out.Progress = &p
			}
			return out, nil
		},
		create: func(ctx context.Context, i *workflow.Image) error { return write(ctx, i, s.CreateImage) },
		update: func(ctx context.Context, i *workflow.Image) error { return write(ctx, i, s.UpdateImage) },
		remove: func(ctx context.Context, name string, rev uint64) error {
			return d.Images.Write(ctx, name, "", func(ctx context.Context) error { return s.DeleteImage(ctx, name, rev) })
		},
		get: s.ImageByName, list: s.ListImages, cursor: s.Cursor,
		users: imageUsers(s),
	}
}

// imageListing filters by what ImageQuery knows.
func imageListing() listing[workflow.Image] {
	by := func(query func(string) workflow.ImageQuery) func(string) (func(*workflow.Image) bool, error) {
		return func(value string) (func(*workflow.Image) bool, error) {
			return query(value).Matches, nil
		}
	}
	return listing[workflow.Image]{filters: map[string]func(string) (func(*workflow.Image) bool, error){
		"os":                by(func(v string) workflow.ImageQuery { return workflow.ImageQuery{OS: v} }),
		"osVersion":         by(func(v string) workflow.ImageQuery { return workflow.ImageQuery{OSVersion: v} }),
		"kubernetesVersion": by(func(v string) workflow.ImageQuery { return workflow.ImageQuery{KubernetesVersion: v} }),
		"arch":              by(func(v string) workflow.ImageQuery { return workflow.ImageQuery{Arch: v} }),
	}}
}

// fetchImage asks for an image again.
func (s *server) fetchImage(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	if _, err := s.images.find(r.Context(), name); err != nil {
		return err
	}
	if err := s.Images.Fetch(r.Context(), name); err != nil {
		return err
	}
	return s.images.answer(r.Context(), w, http.StatusAccepted, name)
}

// upload keeps the body as the image's file. Everything that can be wrong is looked
// for before the first byte is taken, so that nobody waits for nothing.
func (s *server) upload(w http.ResponseWriter, r *http.Request) error {
	name, q := chi.URLParam(r, "name"), r.URL.Query()
	if err := queryKnown(q, uploadParameters()...); err != nil {
		return err
	}
	match, err := ifMatch(r)
	if err != nil {
		return err
	}
	v, old, err := s.uploadTo(r.Context(), name, q, match)
	if err != nil {
		return err
	}
	probe := *v
	probe.Spec.URL, probe.Spec.Direct, probe.Spec.CA = "", false, ""
	probe.Spec.Blob, probe.Spec.Bytes = strings.Repeat("0", 64), 1 // a digest that has the right shape
	if err := probe.Validate(); err != nil {
		return err
	}
	if err := s.Images.Room(r.Context(), max(r.ContentLength, 0)); err != nil {
		return err
	}
	status := http.StatusOK
	err = s.Images.Upload(r.Context(), v, r.Body, v.Spec.Checksum, func(ctx context.Context) error {
		for tries := uploadTries; ; tries-- {
			if old == nil {
				status = http.StatusCreated
				err = s.images.add(ctx, v)
			} else {
				status = http.StatusOK
				_, _, err = s.images.replace(ctx, v, old, match)
			}
			overtaken := errors.Is(err, workflow.ErrConflict) || errors.Is(err, workflow.ErrExists) || errors.Is(err, workflow.ErrNotFound)
			switch {
			case overtaken && old != nil && match != 0:
				return s.images.overtaken(ctx, err, name, old.Meta.Revision, match)
			case !overtaken || tries == 1:
				return err
			}
			// The bytes travelled for hours, maybe: they go into the record as it is now.
			blob, size := v.Spec.Blob, v.Spec.Bytes
			if v, old, err = s.uploadTo(ctx, name, q, match); err != nil {
				return err
			}
			v.Spec.URL, v.Spec.Direct, v.Spec.CA, v.Spec.Blob, v.Spec.Bytes = "", false, "", blob, size
		}
	})
	if err != nil {
		return bodyLeft{err}
	}
	return s.images.answer(r.Context(), w, status, name)
}

// uploadTries is how often the record of an upload is written before somebody else is
// told to be faster.
const uploadTries = 5

// uploadTo makes the record of an upload of the one that is there, nil where there is
// none. match is the revision of If-Match, 0 for none.
func (s *server) uploadTo(ctx context.Context, name string, q url.Values, match uint64) (v, old *workflow.Image, err error) {
	v = &workflow.Image{Meta: hardware.Meta{Name: name}}
	old, err = s.Records.ImageByName(ctx, name)
	switch {
	case errors.Is(err, workflow.ErrNotFound) && match == 0:
		old = nil
	case errors.Is(err, workflow.ErrNotFound):
		_, err = s.images.find(ctx, name)
		return nil, nil, err
	case err != nil:
		return nil, nil, err
	case match != 0 && match != old.Meta.Revision:
		return nil, nil, s.images.stale(&old.Meta, match, true)
	default:
		c := *old
		v = &c
	}
	setImage(v, q)
	return v, old, nil
}

// uploadFields are the parameters of an upload beside the checksum, and the fields
// they are written to.
func uploadFields(s *workflow.ImageSpec) map[string]*string {
	return map[string]*string{
		"format": &s.Format, "arch": &s.Arch, "description": &s.Description,
		"os": &s.OS, "osVersion": &s.OSVersion, "kubernetesVersion": &s.KubernetesVersion,
	}
}

func uploadParameters() []string {
	return []string{"checksum", "format", "arch", "description", "os", "osVersion", "kubernetesVersion"}
}

func setImage(v *workflow.Image, q url.Values) {
	v.Spec.Checksum = q.Get("checksum")
	for key, field := range uploadFields(&v.Spec) {
		if q.Has(key) {
			*field = q.Get(key)
		}
	}
}
