package workflow_test

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func TestImageValidate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	const url = "https://images.example/x.qcow2"
	sum := "sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		spec workflow.ImageSpec
		want string // "": valid
	}{
		"url":                  {workflow.ImageSpec{URL: url, Checksum: sum, CA: ca, Format: "qcow2", Arch: "arm64", OS: "debian", OSVersion: "12.8", KubernetesVersion: "v1.31.2+k3s1"}, ""},
		"weak":                 {workflow.ImageSpec{URL: url, Checksum: "md5:d41d8cd98f00b204e9800998ecf8427e"}, ""},
		"list":                 {workflow.ImageSpec{URL: url, Checksum: "https://images.example/SHA256SUMS"}, ""},
		"direct":               {workflow.ImageSpec{URL: url, Direct: true, Checksum: sum}, ""},
		"blob":                 {workflow.ImageSpec{Blob: strings.Repeat("A", 64), Bytes: 5}, ""},
		"nothing":              {workflow.ImageSpec{}, "spec.url: is empty"},
		"both":                 {workflow.ImageSpec{URL: url, Blob: strings.Repeat("a", 64)}, "exclude each other"},
		"file url":             {workflow.ImageSpec{URL: "file:///etc/passwd"}, "is not an http(s) URL"},
		"password":             {workflow.ImageSpec{URL: "https://u:p@x/y"}, "password in the URL"},
		"list by file":         {workflow.ImageSpec{URL: url, Checksum: "file:///x"}, "spec.checksum"},
		"list for direct":      {workflow.ImageSpec{URL: url, Direct: true, Checksum: url}, "only the appliance reads those"},
		"md5":                  {workflow.ImageSpec{URL: url, Checksum: "md5:00"}, "is no checksum"},
		"direct, no URL":       {workflow.ImageSpec{Blob: strings.Repeat("a", 64), Direct: true}, "spec.direct: needs a URL"},
		"direct qcow2":         {workflow.ImageSpec{URL: url, Direct: true, Format: "qcow2"}, "not read by workers"},
		"no CA":                {workflow.ImageSpec{URL: url, CA: "x"}, "spec.ca: holds no PEM certificate"},
		"large CA":             {workflow.ImageSpec{URL: url, CA: ca + strings.Repeat(" ", 64<<10)}, "spec.ca"},
		"format":               {workflow.ImageSpec{URL: url, Format: "vmdk"}, "auto, raw, gz, xz, zst, bz2 or qcow2"},
		"arch":                 {workflow.ImageSpec{URL: url, Arch: "x86"}, "amd64 or arm64"},
		"version with a space": {workflow.ImageSpec{URL: url, OSVersion: "12 8"}, "spec.osVersion"},
	} {
		err := (&workflow.Image{Meta: hardware.Meta{Name: "x"}, Spec: tc.spec}).Validate()
		if (tc.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestImageSource(t *testing.T) {
	t.Parallel()
	i := &workflow.Image{Meta: hardware.Meta{Name: "x"}, Spec: workflow.ImageSpec{URL: "https://images.example/x"}}
	want := func(what, url, wrong string) {
		t.Helper()
		src, err := i.Source()
		if src.URL != url || (wrong == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: %+v, %v", what, src, err)
		}
	}
	want("new", "", "not ready, it is waiting (wait for it: rackstrap image wait x)")
	i.Status = workflow.ImageStatus{State: workflow.ImageFetching, For: i.Spec.Key()}
	want("fetching", "", "it is fetching")
	i.Status.State, i.Status.Message = workflow.ImageFailed, "404"
	want("failed", "", "cannot be used: 404 (when that is mended: rackstrap image fetch x)")
	i.Status.Renditions = []workflow.ImageRendition{{ImageFile: workflow.ImageFile{Format: "zst", Digest: "d1"}}}
	want("failed to be fetched again", "/images/d1", "")
	i.Spec.Description = "for people"
	want("described", "/images/d1", "")
	i.Spec.URL += "2"
	want("another URL, and nobody knows what the old one was for", "", "waiting")
	i.Status.Renditions[0].Arch = "amd64"
	i.Status.Renditions[0].Source, i.Status.DiskBytes = workflow.ImageFile{Digest: "s1"}, 7
	want("another URL: the old one until the new one is here", "/images/d1", "")
	if st := i.Current(); st.State != workflow.ImageWaiting || st.Source.Digest != "" || st.DiskBytes != 7 {
		t.Errorf("replaced: %+v", st)
	}
	i.Spec.Arch = "arm64"
	want("another URL, for another architecture", "", "waiting")
	i.Status.Renditions[0].For, i.Status.For = i.Spec.Key(), i.Spec.Key()
	want("the architecture was corrected", "/images/d1", "")
	i.Spec.Direct = true
	want("direct", i.Spec.URL, "")
}

func TestFindImage(t *testing.T) {
	t.Parallel()
	image := func(name, os, version, kubernetes, arch string) *workflow.Image {
		return &workflow.Image{Meta: hardware.Meta{Name: name}, Spec: workflow.ImageSpec{OS: os, OSVersion: version, KubernetesVersion: kubernetes, Arch: arch}}
	}
	all := []*workflow.Image{
		image("deb12", "debian", "12", "", ""), image("deb12-arm", "debian", "12", "", "arm64"), image("deb13", "Debian", "13", "", "amd64"),
		image("node-31", "flatcar", "4081", "v1.31.2", ""), image("node-32", "flatcar", "4081", "1.32.0", ""), image("odd", "", "", "", ""),
	}
	for _, tc := range []struct {
		q           workflow.ImageQuery
		want, wrong string
	}{
		{workflow.ImageQuery{OS: "debian", OSVersion: "12", Arch: "amd64"}, "deb12", ""},
		{workflow.ImageQuery{OS: "DEBIAN", OSVersion: "13"}, "deb13", ""},
		{workflow.ImageQuery{Arch: "arm64"}, "deb12-arm", ""},
		{workflow.ImageQuery{KubernetesVersion: "1.31.2"}, "node-31", ""},
		{workflow.ImageQuery{KubernetesVersion: "v1.32.0", Arch: "amd64"}, "node-32", ""},
		{workflow.ImageQuery{OS: "debian", OSVersion: "12"}, "", `2 images fit os "debian", version "12": deb12, deb12-arm (name one of them`},
		{workflow.ImageQuery{OS: "debian", OSVersion: "1"}, "", `image for os "debian", version "1": `},
		{workflow.ImageQuery{KubernetesVersion: "1.31"}, "", "kubernetes"},
		{workflow.ImageQuery{}, "", "6 images fit anything: deb12, deb12-arm, deb13, node-31, node-32 and 1 more"},
	} {
		i, err := workflow.FindImage(all, tc.q)
		var several *workflow.AmbiguousImage
		switch {
		case tc.wrong == "" && (err != nil || i.Meta.Name != tc.want):
			t.Errorf("%s: %v", tc.q, err)
		case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong) || (!errors.Is(err, workflow.ErrNotFound) && !errors.As(err, &several))):
			t.Errorf("%s: %v", tc.q, err)
		}
	}
}
