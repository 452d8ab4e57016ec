package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/workflow"
)

func TestAttemptLogIsBounded(t *testing.T) {
	t.Parallel()
	l := &attemptLogs{dir: filepath.Join(t.TempDir(), "logs")}
	a := workflow.Assignment{Workflow: "01JD0000000000000000000000", Action: 1, Attempt: 2}
	piece := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB
	for i := range 7 {
		if err := l.Append(a, piece); err != nil {
			t.Fatalf("piece %d: %v", i, err)
		}
	}
	path := filepath.Join(l.dir, a.Workflow, "01-002.log")
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const note = "\n[the log is longer than 4 MiB; the rest is dropped]\n"
	if len(got) != maxAttemptLog+len(note) || !bytes.HasSuffix(got, []byte(note)) || !bytes.Equal(got[:1<<20], piece) {
		t.Errorf("%d bytes, the end is %q", len(got), got[len(got)-80:])
	}
	for p, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700, l.dir: fs.ModeDir | 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", p, info.Mode(), err, want)
		}
	}
	// The next attempt has a file of its own, and a piece may come in the middle of it.
	a.Attempt++
	if err := l.Append(a, append(piece[:10:10], piece...)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Append(a, piece); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(l.dir, a.Workflow, "01-003.log")); err != nil || info.Size() != int64(maxAttemptLog+len(note)) {
		t.Errorf("%v, %v", info, err)
	}
}

// What a worker calls its workflow never becomes a path of its choice.
func TestAttemptLogNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := &attemptLogs{dir: filepath.Join(dir, "logs")}
	const uid = "01JD0000000000000000000000"
	for _, a := range []workflow.Assignment{
		{Workflow: ""},
		{Workflow: "."},
		{Workflow: ".."},
		{Workflow: "../escaped"},
		{Workflow: "/etc"},
		{Workflow: "a/b"},
		{Workflow: "a\x00b"},
		{Workflow: uid + "\n"},
		{Workflow: "ü"},
		{Workflow: strings.Repeat("a", 65)},
		{Workflow: uid, Action: -1},
		{Workflow: uid, Action: workflow.MaxActions},
		{Workflow: uid, Attempt: -1},
		{Workflow: uid, Attempt: 1001},
	} {
		if err := l.Append(a, []byte("x")); err == nil {
			t.Errorf("%+v was written", a)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("made %v, %v", left, err)
	}
	if err := l.Append(workflow.Assignment{Workflow: uid, Action: workflow.MaxActions - 1, Attempt: 1000}, []byte("x")); err != nil {
		t.Error(err)
	}
}
