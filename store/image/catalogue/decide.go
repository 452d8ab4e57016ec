package catalogue

import (
	"strings"

	"github.com/rackstrap/rackstrap/workflow"
)

// todo is what an image needs.
type todo int

const (
	nothing todo = iota
	getIt        // from its URL
	packIt       // the source is here
	lost         // its uploaded file is not here
	forget       // the machines fetch it by themselves now
)

// decide says what an image needs. has reports whether a file is kept.
func decide(i *workflow.Image, has func(digest string) bool) todo {
	st := i.Current()
	switch {
	case i.Spec.Direct && len(i.Status.Renditions) > 0:
		return forget
	case i.Spec.Direct, st.State == workflow.ImageFailed:
		return nothing
	case st.State == workflow.ImageReady && len(st.Renditions) > 0 && has(st.Renditions[0].Digest):
		return nothing
	case st.State == workflow.ImageConverting && has(st.Source.Digest):
		return packIt
	case i.Spec.URL != "":
		return getIt
	case has(strings.ToLower(i.Spec.Blob)):
		return packIt
	}
	return lost
}

// named are the digests of the files that an image needs.
func named(i *workflow.Image) []string {
	var out []string
	st := i.Current()
	for _, r := range i.Status.Renditions { // also those of before, until the status lets go of them
		out = append(out, r.Digest)
	}
	if st.State == workflow.ImageConverting {
		out = append(out, st.Source.Digest)
	}
	if i.Spec.Blob != "" && st.State != workflow.ImageReady {
		out = append(out, strings.ToLower(i.Spec.Blob))
	}
	return out
}
