package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api/metadata"
	"github.com/rackstrap/rackstrap/workflow"
)

// seedsOf serves the seeds of a site, with a clock that the test moves.
func seedsOf(s *site, now *time.Time) *seeds {
	return &seeds{
		key: []byte("0123456789abcdef0123456789abcdef"), now: func() time.Time { return *now },
		workflow: s.db.Workflow, hardware: s.db.Hardware, subnets: s.db.View().Subnets,
		base:         func(context.Context, string) (string, error) { return "http://10.0.0.1:7080", nil },
		installation: "01JCINSTALLATION0000000000", sshKeys: []string{"ssh-ed25519 BBBB everywhere"},
	}
}

func TestSeedOfToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	served := seedsOf(s, &now)
	w := s.start("install", "m1", workflow.KindCloudInit, &workflow.CloudInit{Serve: true, UserData: "#cloud-config\nx: 1\n", VendorData: "v"})
	token := served.token(scopeSeed, w)
	for file, want := range map[string]string{
		metadata.FileMetaData: `instance-id: "` + w.Meta.UID + `"`, metadata.FileUserData: "#cloud-config\nx: 1\n",
		metadata.FileVendorData: "v", metadata.FileNetworkConfig: `"10.0.0.5/24"`,
	} {
		if b, err := served.file(t.Context(), token, file); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %q, %v, want %q", file, b, err, want)
		}
	}
	for _, file := range []string{"", "user-data/", "../user-data", "seal.key"} {
		if b, err := served.file(t.Context(), token, file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("file %q: %q, %v", file, b, err)
		}
	}
	// The installed system reads it after the workflow has ended, for a day.
	_, err := s.engine.CancelWorkflow(t.Context(), "install", "test")
	s.must(err)
	now = now.Add(scopeSeed.life())
	if _, err := served.file(t.Context(), token, metadata.FileUserData); err != nil {
		t.Errorf("at the end of its life: %v", err)
	}
	now = now.Add(time.Second)
	if b, err := served.file(t.Context(), token, metadata.FileUserData); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its life: %q, %v", b, err)
	}
}

// A token is good for the one install that it was made for.
func TestForgedSeedTokens(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	served := seedsOf(s, &now)
	one := s.start("one", "m1", workflow.KindCloudInit, &workflow.CloudInit{Serve: true, UserData: "secret of one"})
	two := s.start("two", "m2", workflow.KindCloudInit, &workflow.CloudInit{Serve: true, UserData: "secret of two"})
	token := served.token(scopeSeed, one)
	p := strings.Split(token, ".")
	q := strings.Split(served.token(scopeSeed, two), ".")
	stranger := *served
	stranger.key = []byte("another key")
	gone := *one
	gone.Meta.Name = "gone"
	for name, forged := range map[string]string{
		"empty":           "",
		"dots":            "...",
		"cut":             token[:len(token)-1],
		"more":            token + "A",
		"no MAC":          strings.Join(p[:3], ".") + ".",
		"other workflow":  strings.Join([]string{q[0], q[1], p[2], p[3]}, "."),
		"other MAC":       strings.Join([]string{p[0], p[1], p[2], q[3]}, "."),
		"longer life":     strings.Join([]string{p[0], p[1], "99999999999", p[3]}, "."),
		"phone":           served.token(scopePhone, one),
		"another key":     stranger.token(scopeSeed, one),
		"no workflow":     served.token(scopeSeed, &gone),
		"a boot's form":   "rs1." + p[1] + "." + p[1] + "." + p[3],
		"long":            token + strings.Repeat("A", 1000),
		"hostile":         "../../etc/passwd",
		"the parts moved": p[0] + p[1] + ".." + p[2] + "." + p[3],
	} {
		if b, err := served.file(t.Context(), forged, metadata.FileUserData); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if b, err := served.file(t.Context(), token, metadata.FileUserData); err != nil || string(b) != "secret of one" {
		t.Errorf("the real one: %q, %v", b, err)
	}
	// The name is given to an install of another machine.
	s.end("one")
	s.end("two")
	if b, err := served.file(t.Context(), token, metadata.FileUserData); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleted: %q, %v", b, err)
	}
	s.start("one", "m2", workflow.KindCloudInit, &workflow.CloudInit{Serve: true, UserData: "secret of the next"})
	if b, err := served.file(t.Context(), token, metadata.FileUserData); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the next workflow of that name: %q, %v", b, err)
	}
}

func TestSeedWithoutOne(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	now := time.Now()
	served := seedsOf(s, &now)
	w := s.start("wipe", "m1", workflow.KindDiskWipe, &workflow.DiskWipe{})
	if b, err := served.file(t.Context(), served.token(scopeSeed, w), metadata.FileUserData); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a workflow without cloudinit: %q, %v", b, err)
	}
	// What the store says is no "not found".
	broken := errors.New("disk on fire")
	served.workflow = func(context.Context, string) (*workflow.Workflow, error) { return nil, broken }
	if _, err := served.file(t.Context(), served.token(scopeSeed, w), metadata.FileUserData); !errors.Is(err, broken) {
		t.Errorf("a store that fails: %v", err)
	}
}
