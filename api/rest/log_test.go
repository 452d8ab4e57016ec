package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// logged is a world in which the first action of w-mine ran twice and wrote text, and
// the one of w-theirs runs.
func logged(t *testing.T, text string) (*rig, workflow.Assignment) {
	t.Helper()
	g := held(t)
	g.attempts("w-theirs", workflow.StateRunning)
	w := g.attempts("w-mine", workflow.StateFailed, workflow.StateRunning)
	a := workflow.Assignment{Workflow: w.Meta.UID, Attempt: 1}
	g.must(g.logs.Append(a, []byte(text)))
	return g, a
}

// attempts makes a workflow's first action have those.
func (g *rig) attempts(name string, states ...workflow.State) *workflow.Workflow {
	g.t.Helper()
	w, err := g.db.Workflow(g.t.Context(), name)
	g.must(err)
	w.Status.State, w.Status.Actions[0].State, w.Status.Actions[0].Attempts = workflow.StateRunning, workflow.StateRunning, nil
	for _, s := range states {
		w.Status.Actions[0].Attempts = append(w.Status.Actions[0].Attempts, workflow.Attempt{Boot: "b1", State: s, Started: g.now()})
	}
	g.must(g.db.Commit(g.t.Context(), &workflow.Change{Workflow: w}))
	return w
}

const logPath = api.Base + "/workflows/w-mine/actions/0/attempts/2/log"

func TestAttemptLogWindows(t *testing.T) {
	t.Parallel()
	text := "one\ntwo \x1b[31m\nthree €\n"
	shown := "one\ntwo ?[31m\nthree €\n"
	g, _ := logged(t, text)
	token := g.token("v", hardware.TokenSpec{Role: hardware.RoleViewer})
	three, euro := strings.Index(text, "three"), strings.Index(text, "€")
	for _, tt := range []struct {
		query string
		from  int
		want  string
	}{
		{"", 0, shown},
		{"?follow=false", 0, shown},
		{"?offset=4", 4, shown[4:]},
		{"?offset=4&limit=5", 4, "two ?"},
		{"?limit=0", 0, shown},
		{fmt.Sprintf("?offset=%d", len(text)), len(text), ""},
		{fmt.Sprintf("?offset=%d", euro+1), euro + 3, "\n"},
		{fmt.Sprintf("?offset=%d&limit=7", three), three, "three "}, // ends within the character
		{"?tail=12", three, "three €\n"},
		{"?tail=1000", 0, shown},
	} {
		resp := g.send(g.url, "GET", logPath+tt.query, token, "")
		got, err := io.ReadAll(resp.Body)
		g.must(err)
		_ = resp.Body.Close()
		if from := resp.Header.Get(api.LogOffset); from != strconv.Itoa(tt.from) {
			t.Errorf("%s begins at %s, want %d", tt.query, from, tt.from)
		}
		if resp.StatusCode != http.StatusOK || string(got) != tt.want || resp.Header.Get(api.LogSize) != strconv.Itoa(len(text)) {
			t.Errorf("%s: %d, %q of %s, want %q", tt.query, resp.StatusCode, got, resp.Header.Get(api.LogSize), tt.want)
		}
		for name, want := range map[string]string{
			"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Encoding": "",
			"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": `inline; filename="w-mine-restart-2.log"`,
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", tt.query, name, got, want)
			}
		}
	}
	for query, want := range map[string]string{
		"?offset=4711": "after the end", "?tail=4&offset=1": "tail is the end", "?follow=true&limit=3": "limit ends it", "?follow=maybe": "neither true nor false", "?offset=-1": "no number", "?ofset=1": "not known",
	} {
		if status, text := g.ask(g.url, "GET", logPath+query, token, ""); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	// the record says which attempts have a log, and how long it is
	status, record := g.ask(g.url, "GET", api.Base+"/workflows/w-mine", token, "")
	if status != http.StatusOK || strings.Count(record, `"logBytes":`) != 1 || !strings.Contains(record, fmt.Sprintf(`"logBytes":%d`, len(text))) {
		t.Errorf("%d %s", status, record)
	}
}

// noSizes are logs that cannot be looked at, as where too many files are open.
type noSizes struct{ rest.Logs }

func (noSizes) Sizes(string) (map[workflow.Assignment]int64, error) {
	return nil, syscall.EMFILE
}

// A workflow is shown, and listed, also where its logs cannot be looked at.
func TestWorkflowWithoutLogSizes(t *testing.T) {
	t.Parallel()
	g, _ := logged(t, "text\n")
	deps := g.deps
	deps.Logs = noSizes{g.logs}
	srv := httptest.NewServer(rest.New(deps))
	defer srv.Close()
	for _, path := range []string{"/workflows/w-mine", "/workflows"} {
		status, text := g.ask(srv.URL, "GET", api.Base+path, "", "")
		if status != http.StatusOK || !strings.Contains(text, `"w-mine"`) || strings.Contains(text, "logBytes") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestAttemptLogOfFourMegabytes(t *testing.T) {
	t.Parallel()
	g, a := logged(t, "")
	line := strings.Repeat("x", 99) + "\n"
	for range 5 {
		g.must(g.logs.Append(a, []byte(strings.Repeat(line, 10_000))))
	}
	_, text := g.ask(g.sock, "GET", logPath, "", "")
	if len(text) < 4<<20 || len(text) > 4<<20+100 || !strings.HasSuffix(text, "[the log is longer than 4 MiB; the rest is dropped]\n") {
		t.Errorf("%d bytes, ends %q", len(text), text[len(text)-60:])
	}
	if _, tail := g.ask(g.sock, "GET", logPath+"?tail=200000", "", ""); !strings.HasSuffix(text, tail) || len(tail) < 199_000 || !strings.HasPrefix(tail, "xxx") {
		t.Errorf("tail: %d bytes", len(tail))
	}
}

func TestAttemptLogNotThere(t *testing.T) {
	t.Parallel()
	g, _ := logged(t, "x")
	path := func(name, index, number string) string {
		return api.Base + "/workflows/" + name + "/actions/" + index + "/attempts/" + number + "/log"
	}
	for url, want := range map[string]string{
		path("w-mine", "0", "1"):                  "wrote no log",
		path("w-theirs", "0", "1"):                "wrote no log yet",
		path("w-mine", "0", "3"):                  "has 2 attempts",
		path("w-mine", "0", "0"):                  "has 2 attempts",
		path("w-mine", "1", "1"):                  "has 1 actions",
		path("w-mine", "-1", "1"):                 "has 1 actions",
		path("w-mine", "..%2f..", "1"):            "has 1 actions",
		path("w-mine", "0", "1%2e%2e"):            "has 2 attempts",
		path("w-none", "0", "1"):                  `there is no workflow \"w-none\"`,
		path("..%2fw-mine", "0", "1"):             "there is no workflow",
		path("w-mine", "0", "1") + "?follow=true": "wrote no log",
	} {
		status, text := g.ask(g.sock, "GET", url, "", "")
		if status != http.StatusNotFound || !strings.Contains(text, want) || !strings.Contains(text, `"hint"`) {
			t.Errorf("%s: %d %s", url, status, text)
		}
	}
}

// countReads are records that count how often a workflow is read.
type countReads struct {
	rest.Records
	n *atomic.Int32
}

func (c countReads) Workflow(ctx context.Context, name string) (*workflow.Workflow, error) {
	c.n.Add(1)
	return c.Records.Workflow(ctx, name)
}

// Who follows a log reads the record now and then, not for each piece that a worker sends.
func TestAttemptLogPieces(t *testing.T) {
	t.Parallel()
	g, a := logged(t, "0\n")
	deps, n := g.deps, new(atomic.Int32)
	deps.Records = countReads{g.db, n}
	srv := httptest.NewServer(rest.New(deps))
	defer srv.Close()
	resp := g.send(srv.URL, "GET", logPath+"?follow=true", "", "")
	defer resp.Body.Close()
	late := time.AfterFunc(30*time.Second, func() { _ = resp.Body.Close() })
	defer late.Stop()
	began := time.Now()
	lines := bufio.NewScanner(resp.Body)
	for i := range 200 {
		if want := strconv.Itoa(i); !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q, want %s: %v", lines.Text(), want, lines.Err())
		}
		g.must(g.logs.Append(a, []byte(strconv.Itoa(i+1)+"\n")))
	}
	if most := 5 + int32(time.Since(began)/time.Second); n.Load() > most {
		t.Errorf("the record was read %d times, want %d at most", n.Load(), most)
	}
}

// Who may read a log: whoever may read the workflow.
func TestAttemptLogRoles(t *testing.T) {
	t.Parallel()
	g, _ := logged(t, "mine\n")
	theirs, err := g.db.Workflow(t.Context(), "w-theirs")
	g.must(err)
	g.must(g.logs.Append(workflow.Assignment{Workflow: theirs.Meta.UID}, []byte("theirs\n")))
	claimer := g.token("c", hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/"})
	viewer := g.token("v", hardware.TokenSpec{Role: hardware.RoleViewer})
	other := api.Base + "/workflows/w-theirs/actions/0/attempts/1/log"
	for _, tt := range []struct {
		token, path string
		status      int
	}{
		{"", logPath, 401}, {viewer, logPath, 200}, {viewer, other, 200}, {claimer, logPath, 200}, {claimer, other, 404},
	} {
		status, text := g.ask(g.url, "GET", tt.path, tt.token, "")
		if status != tt.status || (status != 200) == (text == "mine\n" || text == "theirs\n") {
			t.Errorf("%s: %d %s, want %d", tt.path, status, text, tt.status)
		}
	}
}

// A log that is followed comes as it is written and ends with the attempt, with all of it.
func TestAttemptLogFollowed(t *testing.T) {
	t.Parallel()
	g, a := logged(t, "")
	resp := g.send(g.url, "GET", logPath+"?follow=true", g.token("v", hardware.TokenSpec{Role: hardware.RoleViewer}), "")
	defer resp.Body.Close()
	late := time.AfterFunc(30*time.Second, func() { _ = resp.Body.Close() })
	defer late.Stop()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"one", "two €", "?[2Jthree"} {
		g.must(g.logs.Append(a, []byte(strings.Replace(want, "?", "\x1b", 1)+"\n")))
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q, want %q: %v", lines.Text(), want, lines.Err())
		}
	}
	g.must(g.logs.Append(a, []byte("the last\n")))
	g.attempts("w-mine", workflow.StateFailed, workflow.StateSucceeded)
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	if lines.Err() != nil || strings.Join(rest, "|") != "the last" {
		t.Errorf("%q, %v", rest, lines.Err())
	}
}
