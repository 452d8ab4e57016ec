package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/api/metadata"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/workflow"
)

// metadataOf serves a site's installed systems as the daemon does, boot files and
// all, behind the server's own limits.
func metadataOf(s *site, now *time.Time) http.Handler {
	log := slog.New(slog.DiscardHandler)
	m := newMeters(prometheus.NewRegistry())
	i := &installed{seeds: seedsOf(s, now), view: s.db.View(), engine: s.engine, log: log, m: m}
	track := newTracker(s.engine, s.db.View(), log)
	return metadata.NewHandler(metadata.Config{
		Machines: i, Installs: i, Keys: i.seeds.sshKeys, Installation: i.seeds.installation, SessionKey: i.seeds.key, Now: i.seeds.now, Log: log,
		Observe: func(ctx context.Context, o metadata.Observation) {
			track.saw(ctx, ipxe.Observation{Client: o.Client, MAC: o.MAC, Reason: o.Reason, Detail: o.Detail, Bytes: o.Bytes})
		},
	}, ipxe.NewHandler(ipxe.NewAssets(s.t.TempDir()), meteredBoots{&httpBoots{tracker: track}, m}, ipxe.Pacing{}, log))
}

// install brings a machine to where the engine leaves it after that workflow.
func (s *site) install(machine string, w *workflow.Workflow, state hardware.State, await bool) {
	s.t.Helper()
	m, err := s.db.Machine(s.t.Context(), s.machine(machine).Meta.UID)
	s.must(err)
	m.Status.State, m.Status.AwaitOS, m.Status.Installed = state, await, true
	m.Status.Install = &hardware.InstallRef{Workflow: w.Meta.Name, UID: w.Meta.UID}
	s.must(s.db.Commit(s.t.Context(), &workflow.Change{Machine: m}))
}

func ask(t *testing.T, h http.Handler, method, from, path string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(""))
	r.RemoteAddr = from + ":40000"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

// TestPhoneHome: the URL in the seed opens the gate of its own install, from any
// address, and of no other.
func TestPhoneHome(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	h := metadataOf(s, &now)
	w := s.start("install", "m1", workflow.KindCloudInit, &workflow.CloudInit{})
	o, err := resolve(t, resolverOf(s), s.machine("m1"), w, workflow.KindCloudInit, &workflow.CloudInit{})
	s.must(err)
	_, url, _ := strings.Cut(o.(*workflow.CloudInit).UserData, `url: "http://10.0.0.1:7080`)
	url, _, ok := strings.Cut(url, `"`)
	if !ok {
		t.Fatalf("no phone in\n%s", o.(*workflow.CloudInit).UserData)
	}
	if code, _ := ask(t, h, "POST", "10.0.0.5", url); code != 200 || !s.machine("m1").Status.OSUp.IsZero() {
		t.Errorf("before the install has ended: %d, %+v", code, s.machine("m1").Status)
	}
	_, err = s.engine.CancelWorkflow(t.Context(), "install", "the test does its work")
	s.must(err)
	s.install("m1", w, hardware.StateProvisioning, true)
	if code, body := ask(t, h, "GET", "10.0.0.5", strings.TrimSuffix(url, "phone-home")+"user-data"); code != 404 {
		t.Errorf("the phone's token opens the seed: %d %s", code, body)
	}
	for range 2 {
		if code, body := ask(t, h, "POST", "192.0.2.7", url); code != 200 {
			t.Errorf("%d %s", code, body)
		}
	}
	st := s.machine("m1").Status
	if st.State != hardware.StateProvisioned || st.AwaitOS || st.OSUp.IsZero() {
		t.Errorf("after the call: %+v", st)
	}
	// Another install of the machine: the old call is nobody's.
	again := s.start("again", "m1", workflow.KindCloudInit, &workflow.CloudInit{})
	_, err = s.engine.CancelWorkflow(t.Context(), "again", "as above")
	s.must(err)
	s.install("m1", again, hardware.StateProvisioned, false)
	if code, _ := ask(t, h, "POST", "10.0.0.5", url); code != 404 {
		t.Errorf("after another install: %d", code)
	}
	own := "/seed/" + seedsOf(s, &now).token(scopePhone, again) + "/phone-home"
	for _, x := range []struct {
		later time.Duration
		code  int
	}{{0, 200}, {scopePhone.life(), 200}, {time.Second, 404}} {
		now = now.Add(x.later)
		if code, _ := ask(t, h, "POST", "10.0.0.5", own); code != x.code {
			t.Errorf("%v later: %d, want %d", x.later, code, x.code)
		}
	}
}

// TestEC2 asks as two installed machines and a stranger.
func TestEC2(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	h := metadataOf(s, &now)
	one := s.start("one", "m1", workflow.KindCloudInit, &workflow.CloudInit{UserData: "#cloud-config\nsecret: of one\n"})
	if code, _ := ask(t, h, "GET", "10.0.0.5", "/latest/meta-data/instance-id"); code != 404 {
		t.Errorf("while it is installed: %d", code)
	}
	_, err := s.engine.CancelWorkflow(t.Context(), "one", "the test does its work")
	s.must(err)
	s.install("m1", one, hardware.StateProvisioned, false)
	s.install("m2", one, hardware.StateProvisioned, false)
	for _, x := range []struct {
		from, path string
		code       int
		want       string
	}{
		{"10.0.0.5", "/2009-04-04/meta-data/instance-id", 200, one.Meta.UID},
		{"10.0.0.5", "/latest/meta-data/local-ipv4", 200, "10.0.0.5"},
		{"10.0.0.6", "/latest/meta-data/local-ipv4", 200, "10.0.0.6"},
		{"10.0.0.5", "/latest/meta-data/public-keys/1/openssh-key", 200, "ssh-ed25519 BBBB everywhere"},
		{"10.0.0.5", "/latest/user-data", 404, ""},
		{"10.0.0.99", "/latest/meta-data/instance-id", 404, ""},
		{"10.0.0.5", "/boot/nothing", 404, ""},
	} {
		if code, body := ask(t, h, "GET", x.from, x.path); code != x.code || (x.want != "" && body != x.want) {
			t.Errorf("%s from %s: %d %q", x.path, x.from, code, body)
		}
	}
	for _, name := range []string{"m1", "m2"} {
		m := s.machine(name)
		m.Spec.Metadata.EC2UserData = true
		m.Spec.UserData = "#!/bin/sh\n# the record's\n"
		s.must(s.db.UpdateHardware(t.Context(), m))
	}
	if code, body := ask(t, h, "GET", "10.0.0.5", "/latest/user-data"); code != 200 || body != "#cloud-config\nsecret: of one\n" {
		t.Errorf("opted in: %d %q", code, body)
	}
	// m2's install was m1's workflow, whose record is gone; what is left is its own.
	s.must(s.db.DeleteWorkflow(t.Context(), "one", 0))
	if code, body := ask(t, h, "GET", "10.0.0.6", "/latest/user-data"); code != 200 || body != "#!/bin/sh\n# the record's\n" {
		t.Errorf("opted in, without a workflow: %d %q", code, body)
	}
}

// TestServedConfigs: what an install brings is served as it is written, byte by byte.
func TestServedConfigs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	h := metadataOf(s, &now)
	served := seedsOf(s, &now)
	const ignitionConfig = "{ \"ignition\": {\"version\":\"3.4.0\"},\r\n \"x\": \"\\u00e9\" }\n\n"
	const talos = "version: v1alpha1 # \t\r\n---\nkind: x"
	flatcar := s.start("flatcar", "m1", workflow.KindIgnition, &workflow.Ignition{Config: ignitionConfig})
	node := s.start("talos", "m2", workflow.KindSeedPartition, &workflow.SeedPartition{UserData: talos, NetworkConfig: "version: 2\n"})
	for _, x := range []struct {
		w          *workflow.Workflow
		file, want string
	}{
		{flatcar, "ignition", ignitionConfig}, {node, "talos", talos}, {node, "user-data", talos}, {node, "network-config", "version: 2\n"},
	} {
		if code, body := ask(t, h, "GET", "203.0.113.1", "/seed/"+served.token(scopeSeed, x.w)+"/"+x.file); code != 200 || body != x.want {
			t.Errorf("%s: %d %q", x.file, code, body)
		}
	}
	for w, file := range map[*workflow.Workflow]string{flatcar: "talos", node: "ignition"} {
		if code, _ := ask(t, h, "GET", "203.0.113.1", "/seed/"+served.token(scopeSeed, w)+"/"+file); code != 404 {
			t.Errorf("%s: %d", file, code)
		}
	}
}

// TestPhoneAfterInspection: a later workflow that writes no system takes nothing
// from the install.
func TestPhoneAfterInspection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	served := seedsOf(s, &now)
	one := s.start("one", "m1", workflow.KindCloudInit, &workflow.CloudInit{UserData: "u"})
	token := served.token(scopeSeed, one)
	_, err := s.engine.CancelWorkflow(t.Context(), "one", "the test does its work")
	s.must(err)
	s.install("m1", one, hardware.StateProvisioned, false)
	s.start("look", "m1", workflow.KindReboot, &workflow.Reboot{})
	if b, err := served.file(t.Context(), token, metadata.FileUserData); err != nil || string(b) != "u" {
		t.Errorf("%q, %v", b, err)
	}
	s.must(s.engine.PhoneHome(t.Context(), s.machine("m1").Meta.UID, "one", netip.MustParseAddr("10.0.0.5")))
	if st := s.machine("m1").Status; st.OSUp.IsZero() {
		t.Errorf("%+v", st)
	}
}
