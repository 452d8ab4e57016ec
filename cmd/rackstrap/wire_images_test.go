package main

import (
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/image"
	"github.com/rackstrap/rackstrap/workflow"
)

// TestSweepImages: at the start, what neither a record nor a workflow names goes.
func TestSweepImages(t *testing.T) {
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
		_, err := newImages(t.Context(), imagesConfig{}, s.db, blobs, slog.New(slog.DiscardHandler))
		s.must(err)
		all, err := blobs.List()
		s.must(err)
		var got []string
		for _, b := range all {
			got = append(got, b.Digest)
		}
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

func TestImageProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://env.example:3128")
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("NO_PROXY", "near.example")
	for _, tc := range []struct{ config, url, want string }{
		{"", "http://images.example/x", "http://env.example:3128"},
		{"", "https://images.example/x", ""},
		{"", "http://near.example/x", ""},
		{"http://u:p@conf.example:3128", "https://images.example/x", "http://u:p@conf.example:3128"},
		{"http://conf.example:3128", "https://near.example/x", ""},
	} {
		f, err := proxyFunc(tc.config)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f(u)
		if err != nil || (got == nil) != (tc.want == "") || (got != nil && got.String() != tc.want) {
			t.Errorf("%+v: %v, %v", tc, got, err)
		}
	}
	for _, bad := range []string{"proxy:3128", "ftp://proxy", "http://"} {
		if _, err := proxyFunc(bad); err == nil {
			t.Errorf("%q is a proxy", bad)
		}
	}
}

func TestImageCA(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	blobs, err := image.Open(t.TempDir(), image.Options{Reserve: -1})
	s.must(err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := newImages(t.Context(), imagesConfig{CA: file}, s.db, blobs, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "images.ca") {
		t.Errorf("a file that is not there: %v", err)
	}
	s.must(os.WriteFile(file, []byte("no certificate"), 0o600))
	if _, err := newImages(t.Context(), imagesConfig{CA: file}, s.db, blobs, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "holds no PEM certificate") {
		t.Errorf("no certificate: %v", err)
	}
}
