package workflow

import (
	"fmt"
	"strings"
)

// ImageQuery selects images; empty fields select all.
type ImageQuery struct {
	OS, OSVersion, KubernetesVersion, Arch string
}

// Matches reports whether the image is selected. Case does not count, nor the v in
// front of a Kubernetes version; versions are compared as a whole: 12 is not 12.8.
func (q ImageQuery) Matches(i *Image) bool {
	is := func(want, have string) bool { return want == "" || strings.EqualFold(want, have) }
	version := func(v string) string { return strings.TrimPrefix(strings.ToLower(v), "v") }
	return is(q.OS, i.Spec.OS) && is(q.OSVersion, i.Spec.OSVersion) && is(q.Arch, i.Spec.Architecture()) &&
		is(version(q.KubernetesVersion), version(i.Spec.KubernetesVersion))
}

func (q ImageQuery) String() string {
	var parts []string
	for _, p := range [][2]string{{"os", q.OS}, {"version", q.OSVersion}, {"kubernetes", q.KubernetesVersion}, {"arch", q.Arch}} {
		if p[1] != "" {
			parts = append(parts, fmt.Sprintf("%s %.64q", p[0], p[1]))
		}
	}
	if len(parts) == 0 {
		return "anything"
	}
	return strings.Join(parts, ", ")
}

// FindImage finds the one image that matches: an error wrapping ErrNotFound where
// there is none, and an *AmbiguousImage where there are several, for nobody says
// which one is meant.
func FindImage(all []*Image, q ImageQuery) (*Image, error) {
	var found []*Image
	for _, i := range all {
		if q.Matches(i) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("image for %s: %w (see `rackstrap image list -o wide`, and set spec.os, spec.osVersion, spec.kubernetesVersion and spec.arch of the image that is meant)", q, ErrNotFound)
	case 1:
		return found[0], nil
	}
	e := &AmbiguousImage{Query: q}
	for _, i := range found {
		e.Names = append(e.Names, i.Meta.Name)
	}
	return nil, e
}

// AmbiguousImage is a query that fits several images.
type AmbiguousImage struct {
	Query ImageQuery
	Names []string
}

func (e *AmbiguousImage) Error() string {
	names := e.Names
	more := ""
	if len(names) > 5 {
		names, more = names[:5], fmt.Sprintf(" and %d more", len(e.Names)-5)
	}
	return fmt.Sprintf("%d images fit %s: %s%s (name one of them, or ask for more: os, osVersion, kubernetesVersion, arch)", len(e.Names), e.Query, strings.Join(names, ", "), more)
}
