package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/workflow"
)

// TestSweepBlobs: at the start, what neither a record nor a workflow names goes.
func TestSweepBlobs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	blobs, err := image.Open(t.TempDir(), image.Options{Reserve: -1})
	s.must(err)
	var digests []string
	for _, text := range []string{"named", "in a workflow", "left over"} {
		b, err := blobs.Put(t.Context(), strings.NewReader(text), "")
		s.must(err)
		digests = append(digests, b.Digest)
	}
	s.must(s.db.CreateImage(t.Context(), &workflow.Image{Meta: hardware.Meta{Name: "debian"}, Spec: workflow.ImageSpec{Blob: strings.ToUpper(digests[0])}}))
	s.start("by-name", "m1", workflow.KindImageWrite, &workflow.ImageWrite{Image: "debian"})
	s.start("by-url", "m2", workflow.KindImageWrite, &workflow.ImageWrite{Image: "http://10.0.0.1:7080/images/" + digests[1]})
	check := func(want ...string) {
		t.Helper()
		sweepBlobs(t.Context(), s.db, blobs, slog.New(slog.DiscardHandler))
		got, err := blobAdapter{blobs}.List(t.Context())
		s.must(err)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("kept %v, want %v", got, want)
		}
	}
	check(digests[0], digests[1])
	s.end("by-url")
	check(digests[0])
	s.must(s.db.DeleteImage(t.Context(), "debian", 0))
	check()
}
