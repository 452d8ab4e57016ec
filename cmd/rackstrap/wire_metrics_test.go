package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/api/metadata"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/tftp"
	"github.com/rackstrap/rackstrap/workflow"
)

// scrape is what a monitoring system reads.
func scrape(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	healthHandler(reg, func() error { return nil }, func() []string { return nil }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, "\n"+l+"\n") {
			name, _, _ := strings.Cut(l, "{")
			var have []string
			for h := range strings.Lines(text) {
				if strings.HasPrefix(h, name) {
					have = append(have, strings.TrimSpace(h))
				}
			}
			t.Errorf("%s is missing; there are %q", l, have)
		}
	}
}

type deaf struct{}

func (deaf) Done(tftp.Transfer, error)                      {}
func (deaf) Refused(netip.AddrPort, string, error)          {}
func (deaf) Commit(context.Context, *workflow.Change) error { return nil }

func TestMetersOfServing(t *testing.T) {
	t.Parallel()
	reg := newRegistry()
	m := newMeters(reg)
	o := meteredTFTP{deaf{}, m}
	o.Done(tftp.Transfer{Bytes: 1000}, nil)
	o.Done(tftp.Transfer{}, tftp.ErrProbe)
	o.Done(tftp.Transfer{Bytes: 10}, fmt.Errorf("%w at block 3 with code 0", tftp.ErrStopped))
	o.Done(tftp.Transfer{}, tftp.ErrTimeout)
	o.Done(tftp.Transfer{}, context.Canceled)
	o.Done(tftp.Transfer{}, errors.New("read error"))
	for _, err := range []error{tftp.ErrWrite, tftp.ErrBusy, tftp.ErrMalformed, &tftp.NameError{}, fs.ErrNotExist} {
		o.Refused(netip.AddrPort{}, "", err)
	}
	log := slog.New(slog.DiscardHandler)
	boots := ipxe.NewHandler(ipxe.NewAssets(t.TempDir()), meteredBoots{&httpBoots{
		tracker: newTracker(workflow.NewEngine(workflow.Config{Now: time.Now}), noRecords{}, log),
		images:  func(string) (*os.File, error) { return nil, fs.ErrNotExist },
	}, m}, ipxe.Pacing{}, log)
	h := metadata.NewHandler(metadata.Config{
		Installs: &installed{seeds: &seeds{now: time.Now}, m: m}, Observe: func(context.Context, metadata.Observation) {},
	}, boots)
	for _, path := range []string{"/images/" + strings.Repeat("0", 64), "/seed/token/meta-data", "/boot/nothing", "/ipxe/script/52:54:00:00:00:01/auto.ipxe"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	text := scrape(t, reg)
	var results []string
	for _, r := range []string{"sent", "probe", "stopped", "timeout", "shutdown", "failed", "read-only", "busy", "malformed", "bad-file-name", "file-not-found"} {
		results = append(results, `rackstrap_tftp_transfers_total{result="`+r+`"} 1`)
	}
	wantLines(t, text, results...)
	wantLines(
		t, text,
		`rackstrap_tftp_bytes_total{result="sent"} 1000`, `rackstrap_tftp_bytes_total{result="stopped"} 10`,
		`rackstrap_http_files_total{result="file-not-found",what="image"} 1`, `rackstrap_http_files_total{result="file-not-found",what="seed"} 1`,
		`rackstrap_http_boot_responses_total{reason="file-not-found"} 2`, `rackstrap_http_boot_responses_total{reason="unknown-machine"} 1`,
	)
	if strings.Contains(text, `rackstrap_http_boot_bytes_total{reason="unknown-machine"} 0`) {
		t.Error("the bytes of a script are not counted")
	}
}

// engineStore takes every change.
type engineStore struct {
	workflow.Store
	deaf
}

func (s engineStore) Commit(ctx context.Context, c *workflow.Change) error {
	return s.deaf.Commit(ctx, c)
}

// TestMetersOfAttempts feeds the state machine and commits what it says.
func TestMetersOfAttempts(t *testing.T) {
	t.Parallel()
	reg := newRegistry()
	m := newMeters(reg)
	s := meteredEngineStore{engineStore{}, m}
	now := time.Unix(1000, 0)
	w := &workflow.Workflow{Meta: hardware.Meta{Name: "w", UID: "W"}, Status: workflow.Status{State: workflow.StatePending, Actions: []workflow.Action{
		{Name: "wipe", Kind: workflow.KindDiskWipe, Retries: 5, State: workflow.StatePending},
		{Name: "write", Kind: workflow.KindImageWrite, Retries: 5, State: workflow.StatePending},
		{Name: "odd", Kind: "from.the.future", State: workflow.StatePending},
	}}}
	boot := "B1"
	next := func(in workflow.Input) {
		t.Helper()
		now = now.Add(time.Hour)
		if st := w.Next(in, workflow.Context{Now: now, Boot: boot}); st.Changed {
			if err := s.Commit(t.Context(), &workflow.Change{Workflow: w, Events: st.Events}); err != nil {
				t.Fatal(err)
			}
		}
	}
	report := func(o workflow.Outcome, r workflow.Result) {
		t.Helper()
		i := w.Status.Current
		at := workflow.Assignment{Workflow: "W", Action: i, Attempt: len(w.Status.Actions[i].Attempts) - 1}
		next(workflow.Input{Report: &workflow.Report{Assignment: at, Outcome: o, Result: r}})
		next(workflow.Input{}) // the pause is over
	}
	next(workflow.Input{Worker: &workflow.WorkerInput{Boot: boot}})
	report(workflow.StateFailed, workflow.Result{})
	report(workflow.StateTimedOut, workflow.Result{})
	report(workflow.StateSucceeded, workflow.Result{})
	boot = "B2"
	next(workflow.Input{Worker: &workflow.WorkerInput{Boot: boot}})
	report(workflow.StateSucceeded, workflow.Result{SourceBytes: 500, WrittenBytes: 2000})
	why := "enough"
	next(workflow.Input{Cancel: &why})
	report(workflow.StateCancelled, workflow.Result{SourceBytes: -1})
	if w.Status.State != workflow.StateCancelled {
		t.Fatalf("the workflow is %s", w.Status.State)
	}
	m.request(rest.Route{Method: "GET", Path: "/claims/{name}"})
	m.watch(reg, func() workflow.Stats { return workflow.Stats{Workers: 3, Active: 2} }, func() uint64 { return 7 })
	text := scrape(t, reg)
	wantLines(
		t, text,
		`rackstrap_attempts_ended_total{kind="disk.wipe",outcome="failed"} 1`, `rackstrap_attempts_ended_total{kind="disk.wipe",outcome="timed-out"} 1`,
		`rackstrap_attempts_ended_total{kind="disk.wipe",outcome="succeeded"} 1`, `rackstrap_attempts_ended_total{kind="image.write",outcome="interrupted"} 1`,
		`rackstrap_attempts_ended_total{kind="image.write",outcome="succeeded"} 1`, `rackstrap_attempts_ended_total{kind="unknown",outcome="cancelled"} 1`,
		`rackstrap_attempt_bytes_total{kind="image.write",which="source"} 500`, `rackstrap_attempt_bytes_total{kind="image.write",which="written"} 2000`,
		`rackstrap_workers 3`, `rackstrap_workflows_active 2`, `rackstrap_events_dropped_total 7`,
		`rackstrap_api_requests_total{method="GET",route="/claims/{name}"} 1`,
	)
	if n := strings.Count(text, "\nrackstrap_attempts_ended_total{"); n != 6 {
		t.Errorf("%d kinds of ends, want 6", n)
	}
}

// fullLeases is a disk that takes nothing.
type fullLeases struct {
	store.Leases
	err error
}

func (l fullLeases) Put(context.Context, hardware.Lease) error { return l.err }

func TestMetersOfWrites(t *testing.T) {
	t.Parallel()
	reg := newRegistry()
	m := newMeters(reg)
	for _, err := range []error{
		nil, &store.ConflictError{}, &store.LimitError{}, store.ErrClosed, context.Canceled, // these are no failures of the disk
		fmt.Errorf("write: %w", store.ErrNoSpace), store.ErrNoSpace, context.DeadlineExceeded, errors.New("input/output error"),
	} {
		if got := (meteredLeases{fullLeases{err: err}, m}).Put(t.Context(), hardware.Lease{}); !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
	}
	text := scrape(t, reg)
	wantLines(
		t, text,
		`rackstrap_store_write_errors_total{error="no-space",what="leases"} 2`, `rackstrap_store_write_errors_total{error="timeout",what="leases"} 1`,
		`rackstrap_store_write_errors_total{error="other",what="leases"} 1`,
	)
	if n := strings.Count(text, "\nrackstrap_store_write_errors_total{"); n != 3 {
		t.Errorf("%d kinds of errors, want 3", n)
	}
}
