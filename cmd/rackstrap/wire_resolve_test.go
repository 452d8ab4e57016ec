package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	sumA   = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	sumC   = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
	sumNew = "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
	sumB   = "sha512:" + sumA + sumA
)

func resolverOf(s *site) resolver {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	return resolver{image: s.db.ImageByName, seeds: seedsOf(s, &now)}
}

// resolve is the resolved options of one action.
func resolve(t *testing.T, r resolver, h *hardware.Hardware, w *workflow.Workflow, kind workflow.Kind, options workflow.Options) (workflow.Options, error) {
	t.Helper()
	with, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := r.resolve(t.Context(), h, w, &workflow.Action{Kind: kind, With: with})
	if err != nil {
		return nil, err
	}
	o, err := workflow.DecodeOptions(kind, raw)
	if err != nil {
		t.Fatalf("the worker cannot read %s: %v", raw, err)
	}
	return o, nil
}

// testCA is a certificate in PEM.
func testCA(t *testing.T) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	defer srv.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
}

func TestResolveImage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, spec := range map[string]workflow.ImageSpec{
		"kept":      {Blob: sumA, Bytes: 7},
		"new":       {URL: "https://images.example/new.raw.xz"},
		"broken":    {URL: "https://images.example/broken.raw.xz"},
		"again":     {URL: "https://images.example/again.qcow2"},
		"refetched": {URL: "https://images.example/refetched.qcow2"},
		"old":       {URL: "https://images.example/old.qcow2"},
		"elsewhere": {URL: "https://images.example/debian.raw.xz", Checksum: sumB, Format: "xz", Direct: true, CA: testCA(t)},
		"unsure":    {URL: "http://images.example/x", Direct: true},
		"arm":       {URL: "http://images.example/arm", Arch: "arm64", Direct: true},
	} {
		i := &workflow.Image{Meta: hardware.Meta{Name: name}, Spec: spec}
		s.must(s.db.CreateImage(t.Context(), i))
		st := workflow.ImageStatus{For: spec.Key(), State: workflow.ImageReady}
		switch name {
		case "kept":
			st.Source = workflow.ImageFile{Format: "qcow2", Digest: sumA}
			st.Renditions = []workflow.ImageRendition{{ImageFile: workflow.ImageFile{Format: "zst", Digest: sumC}}}
		case "again", "refetched": // another file came, and what is served is of the one before
			st.State, st.Source, st.Checksum = workflow.ImageConverting, workflow.ImageFile{Digest: sumNew}, "sha256:"+sumNew
			if name == "refetched" {
				st.State, st.Message = workflow.ImageFailed, "inside xz: corrupt"
			}
			st.Renditions = []workflow.ImageRendition{{
				ImageFile: workflow.ImageFile{Format: "zst", Digest: sumC},
				Source:    workflow.ImageFile{Format: "qcow2", Digest: sumA}, Checksum: sumB, For: st.For,
			}}
		case "old": // the same, written before renditions said what they are of
			st.State, st.Source, st.Checksum = workflow.ImageConverting, workflow.ImageFile{Digest: sumNew}, "sha256:"+sumNew
			st.Renditions = []workflow.ImageRendition{{ImageFile: workflow.ImageFile{Format: "zst", Digest: sumC}}}
		case "broken":
			st.State, st.Message = workflow.ImageFailed, "the server says 404 Not Found"
		default:
			continue
		}
		s.must(s.db.SetImageStatus(t.Context(), i, st, nil))
	}
	r := resolverOf(s)
	served := workflow.ImageWrite{Image: "/images/" + sumC, Checksum: "sha256:" + sumC, Format: "zst"}
	for name, tc := range map[string]struct {
		machine    string
		give, want workflow.ImageWrite
		wrong      string
	}{
		"kept":                             {"m1", workflow.ImageWrite{Image: "kept"}, workflow.ImageWrite{Image: "/images/" + sumC, Checksum: "sha256:" + sumC, Format: "zst"}, ""},
		"of its source":                    {"m1", workflow.ImageWrite{Image: "kept", Checksum: "sha256:" + sumA, Format: "auto"}, workflow.ImageWrite{Image: "/images/" + sumC, Checksum: "sha256:" + sumC, Format: "zst"}, ""},
		"not ready":                        {"m1", workflow.ImageWrite{Image: "new"}, workflow.ImageWrite{}, "image \"new\" is not ready, it is waiting (wait for it: rackstrap image wait new)"},
		"failed":                           {"m1", workflow.ImageWrite{Image: "broken"}, workflow.ImageWrite{}, "image \"broken\" cannot be used: the server says 404 Not Found (when that is mended: rackstrap image fetch broken)"},
		"elsewhere":                        {"m1", workflow.ImageWrite{Image: "elsewhere", Disk: "largest"}, workflow.ImageWrite{Image: "https://images.example/debian.raw.xz", Checksum: sumB, Format: "xz", Disk: "largest", CA: testCA(t)}, ""},
		"unsure":                           {"m1", workflow.ImageWrite{Image: "unsure"}, workflow.ImageWrite{Image: "http://images.example/x"}, ""},
		"other bytes":                      {"m1", workflow.ImageWrite{Image: "kept", Checksum: "sha256:" + sumC[1:] + "0"}, workflow.ImageWrite{}, `image "kept" has sha256:` + sumA + ", and not sha256:" + sumC[1:] + "0 as the action wants (correct its checksum, or leave it out)"},
		"the action's word":                {"m1", workflow.ImageWrite{Image: "elsewhere", Checksum: "sha256:" + sumC, Format: "raw", CA: "pem"}, workflow.ImageWrite{Image: "https://images.example/debian.raw.xz", Checksum: "sha256:" + sumC, Format: "raw", CA: "pem"}, ""},
		"a URL":                            {"m1", workflow.ImageWrite{Image: "https://a.example/kept", Format: "gz", CA: "pem", Checksum: sumB}, workflow.ImageWrite{Image: "https://a.example/kept", Format: "gz", CA: "pem", Checksum: sumB}, ""},
		"a URL for the other":              {"m2", workflow.ImageWrite{Image: "http://a.example/x"}, workflow.ImageWrite{Image: "http://a.example/x"}, ""},
		"missing":                          {"m1", workflow.ImageWrite{Image: "gone"}, workflow.ImageWrite{}, "there is no image \"gone\" (see `rackstrap image list`, add it with `rackstrap image add gone FILE`)"},
		"converting with an old rendition": {"m1", workflow.ImageWrite{Image: "again", Checksum: "sha256:" + sumA}, served, ""},
		"converting with an old rendition, by its list": {"m1", workflow.ImageWrite{Image: "again", Checksum: sumB}, served, ""},
		"converting, the new one is wanted":             {"m1", workflow.ImageWrite{Image: "again", Checksum: "sha256:" + sumNew}, workflow.ImageWrite{}, `image "again" has sha256:` + sumA + ", and not sha256:" + sumNew + " as the action wants (correct its checksum, or leave it out)"},
		"converting, any is wanted":                     {"m1", workflow.ImageWrite{Image: "again"}, served, ""},
		"failed after a refetch":                        {"m1", workflow.ImageWrite{Image: "refetched", Checksum: "sha256:" + sumA}, served, ""},
		"failed after a refetch, the new one is wanted": {"m1", workflow.ImageWrite{Image: "refetched", Checksum: "sha256:" + sumNew}, workflow.ImageWrite{}, `image "refetched" has sha256:` + sumA + ", and not sha256:" + sumNew + " as the action wants (correct its checksum, or leave it out)"},
		"converting, an old record":                     {"m1", workflow.ImageWrite{Image: "old", Checksum: "sha256:" + sumNew}, workflow.ImageWrite{}, `image "old" has a checksum that was not kept, and not sha256:` + sumNew + " as the action wants (correct its checksum, or leave it out)"},
		"wrong arch":                                    {"m1", workflow.ImageWrite{Image: "arm"}, workflow.ImageWrite{}, `image "arm" is for arm64, hardware "m1" is amd64`},
		"wrong arch, unsaid":                            {"m2", workflow.ImageWrite{Image: "kept"}, workflow.ImageWrite{}, `image "kept" is for amd64, hardware "m2" is arm64`},
		"right arch":                                    {"m2", workflow.ImageWrite{Image: "arm"}, workflow.ImageWrite{Image: "http://images.example/arm"}, ""},
	} {
		o, err := resolve(t, r, s.machine(tc.machine), nil, workflow.KindImageWrite, &tc.give)
		switch {
		case tc.wrong != "":
			if err == nil || err.Error() != tc.wrong {
				t.Errorf("%s: %v, want %s", name, err, tc.wrong)
			}
		case err != nil || *o.(*workflow.ImageWrite) != tc.want:
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
	broken := errors.New("disk on fire")
	r.image = func(context.Context, string) (*workflow.Image, error) { return nil, broken }
	if _, err := resolve(t, r, s.machine("m1"), nil, workflow.KindImageWrite, &workflow.ImageWrite{Image: "kept"}); !errors.Is(err, broken) {
		t.Errorf("a store that fails: %v", err)
	}
}

func TestResolveNetwork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := resolverOf(s)
	o, err := resolve(t, r, s.machine("m1"), nil, workflow.KindNetworkConfig, &workflow.NetworkConfig{Renderer: "netplan"})
	if err != nil {
		t.Fatal(err)
	}
	n := o.(*workflow.NetworkConfig)
	for _, want := range []string{"version: 2\n", `macaddress: "02:00:00:00:00:00"`, `"10.0.0.5/24"`, `via: "10.0.0.1"`} {
		if n.Renderer != "netplan" || !strings.Contains(n.Config, want) {
			t.Errorf("made from the record: %+v, want %q", n, want)
		}
	}
	o, err = resolve(t, r, s.machine("m1"), nil, workflow.KindNetworkConfig, &workflow.NetworkConfig{Config: "version: 2\n"})
	if err != nil || o.(*workflow.NetworkConfig).Config != "version: 2\n" {
		t.Errorf("given: %+v, %v", o, err)
	}
}

func TestResolveCloudInit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := resolverOf(s)
	w := &workflow.Workflow{Meta: hardware.Meta{Name: "w1", UID: "01JD0000000000000000000000"}}
	o, err := resolve(t, r, s.machine("m1"), w, workflow.KindCloudInit, &workflow.CloudInit{Partition: "2", VendorData: "v"})
	if err != nil {
		t.Fatal(err)
	}
	c := o.(*workflow.CloudInit)
	phone := "http://10.0.0.1:7080/seed/" + r.seeds.token(scopePhone, w) + "/phone-home"
	for text, wants := range map[string][]string{
		c.UserData: {"ssh-ed25519 AAAA m1", "ssh-ed25519 BBBB everywhere", phone},
		c.MetaData: {"ssh-ed25519 AAAA m1", "ssh-ed25519 BBBB everywhere", phone},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	if c.Partition != "2" || c.VendorData != "v" || !strings.Contains(c.UserData, "ssh-ed25519 AAAA m1") || !strings.HasPrefix(c.MetaData, "instance-id: \"01JD") {
		t.Errorf("written out: %+v", c)
	}
	// Served: nothing that may be secret goes to the disk.
	o, err = resolve(t, r, s.machine("m1"), w, workflow.KindCloudInit, &workflow.CloudInit{Disk: "largest", Serve: true, UserData: "password", VendorData: "password"})
	want := workflow.CloudInit{Disk: "largest", MetaData: "instance-id: \"01JD0000000000000000000000\"\nseedfrom: \"http://10.0.0.1:7080/seed/" + r.seeds.token(scopeSeed, w) + "/\"\n"}
	if err != nil || *o.(*workflow.CloudInit) != want {
		t.Errorf("served: %+v, %v", o, err)
	}
	unknown := errors.New("the machine has no boot that knows our address")
	r.seeds.base = func(context.Context, string) (string, error) { return "", unknown }
	if _, err := resolve(t, r, s.machine("m1"), w, workflow.KindCloudInit, &workflow.CloudInit{Serve: true}); !errors.Is(err, unknown) {
		t.Errorf("no address: %v", err)
	}
	// Without our address there is no phone call, unless somebody waits for it.
	o, err = resolve(t, r, s.machine("m1"), w, workflow.KindCloudInit, &workflow.CloudInit{})
	if err != nil || strings.Contains(o.(*workflow.CloudInit).UserData, "phone_home") {
		t.Errorf("no address, written out: %+v, %v", o, err)
	}
	w.Spec.WaitForPhoneHome = true
	if _, err := resolve(t, r, s.machine("m1"), w, workflow.KindCloudInit, &workflow.CloudInit{}); !errors.Is(err, unknown) || !strings.Contains(err.Error(), "waitForPhoneHome") {
		t.Errorf("no address, and a gate: %v", err)
	}
}

func TestResolveIgnition(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := resolverOf(s)
	const config = "{ \"ignition\": {\"version\": \"3.4.0\"} }\r\n<&>"
	given := config[:len(config)-3]
	o, err := resolve(t, r, s.machine("m1"), nil, workflow.KindIgnition, &workflow.Ignition{Config: given})
	if err != nil || o.(*workflow.Ignition).Config != given {
		t.Errorf("given: %+v, %v", o, err)
	}
	h := *s.machine("m1")
	h.Spec.UserData = given + " "
	o, err = resolve(t, r, &h, nil, workflow.KindIgnition, &workflow.Ignition{Disk: "smallest"})
	if err != nil || *o.(*workflow.Ignition) != (workflow.Ignition{Disk: "smallest", Config: given + " "}) {
		t.Errorf("the record's: %+v, %v", o, err)
	}
	for data, says := range map[string]string{"": "spec.userData is empty", "#cloud-config\n": "spec.userData is not JSON", config: "is not JSON at byte"} {
		h.Spec.UserData = data
		if _, err := resolve(t, r, &h, nil, workflow.KindIgnition, &workflow.Ignition{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", data, err, says)
		}
	}
}

func TestResolveSeedPartition(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := resolverOf(s)
	w := &workflow.Workflow{Meta: hardware.Meta{Name: "w1", UID: "01JD0000000000000000000000"}}
	const talos = "version: v1alpha1 # \u00e9 <&> $x\r\n\tlast: line"
	o, err := resolve(t, r, s.machine("m1"), w, workflow.KindSeedPartition, &workflow.SeedPartition{Disk: "largest", UserData: talos})
	if err != nil {
		t.Fatal(err)
	}
	p := o.(*workflow.SeedPartition)
	if p.Disk != "largest" || p.UserData != talos || !strings.HasPrefix(p.MetaData, "instance-id: \"01JD") || !strings.Contains(p.NetworkConfig, `"10.0.0.5/24"`) {
		t.Errorf("made from the record: %+v", p)
	}
	given := workflow.SeedPartition{UserData: "x", VendorData: "v", MetaData: "instance-id: a\n", NetworkConfig: "version: 2\n"}
	o, err = resolve(t, r, s.machine("m1"), w, workflow.KindSeedPartition, &given)
	if err != nil {
		t.Fatal(err)
	}
	p = o.(*workflow.SeedPartition)
	if p.UserData != "x" || p.VendorData != "v" || p.NetworkConfig != "version: 2\n" || !strings.HasSuffix(p.MetaData, "\ninstance-id: a\n") {
		t.Errorf("given: %+v", p)
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	r := resolver{}
	for _, a := range []workflow.Action{{Kind: "shell"}, {Kind: workflow.KindDiskWipe, With: json.RawMessage(`{"disc":"x"}`)}} {
		if b, err := r.resolve(t.Context(), nil, nil, &a); err == nil {
			t.Errorf("%s: %s", a.Kind, b)
		}
	}
	b, err := r.resolve(t.Context(), nil, nil, &workflow.Action{Kind: workflow.KindDiskWipe, With: json.RawMessage(`{"disk":"all"}`)})
	if err != nil || string(b) != `{"disk":"all"}` {
		t.Errorf("nothing to fill in: %s, %v", b, err)
	}
}
