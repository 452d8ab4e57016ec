package logs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store/logs"
	"github.com/rackstrap/rackstrap/workflow"
)

func TestAttemptLogIsBounded(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "logs")
	l := logs.Open(dir)
	a := workflow.Assignment{Workflow: "01JD0000000000000000000000", Action: 1, Attempt: 2}
	piece := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB
	for i := range 7 {
		if err := l.Append(a, piece); err != nil {
			t.Fatalf("piece %d: %v", i, err)
		}
	}
	path := filepath.Join(dir, a.Workflow, "01-002.log")
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const note = "\n[the log is longer than 4 MiB; the rest is dropped]\n"
	if len(got) != logs.MaxBytes+len(note) || !bytes.HasSuffix(got, []byte(note)) || !bytes.Equal(got[:1<<20], piece) {
		t.Errorf("%d bytes, the end is %q", len(got), got[len(got)-80:])
	}
	for p, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700, dir: fs.ModeDir | 0o700} {
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
	if info, err := os.Stat(filepath.Join(dir, a.Workflow, "01-003.log")); err != nil || info.Size() != int64(logs.MaxBytes+len(note)) {
		t.Errorf("%v, %v", info, err)
	}
}

// What a worker calls its workflow never becomes a path of its choice.
func TestAttemptLogNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := logs.Open(filepath.Join(dir, "logs"))
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

// Reading takes the same names as writing: a path of somebody's choice is never opened.
func TestNoLogIsNotFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00-000.log"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := logs.Open(filepath.Join(dir, "logs"))
	for _, a := range []workflow.Assignment{{Workflow: ".."}, {Workflow: "../x"}, {Workflow: ""}, {Workflow: uid, Action: -1}, {Workflow: uid}, {Workflow: uid, Attempt: 4000}} {
		if text, _, _, err := l.Window(a, 0, 100); !errors.Is(err, workflow.ErrNotFound) {
			t.Errorf("%+v: %q, %v", a, text, err)
		}
		if sizes, err := l.Sizes(a.Workflow); err != nil || len(sizes) > 0 {
			t.Errorf("%+v: %v, %v", a, sizes, err)
		}
	}
}

const uid = "01JD0000000000000000000000"

// read joins the windows of a log, each of about n bytes.
func read(t *testing.T, l *logs.Logs, a workflow.Assignment, n int) string {
	t.Helper()
	var out []byte
	for {
		text, from, size, err := l.Window(a, int64(len(out)), n)
		if err != nil {
			t.Fatal(err)
		}
		if from != int64(len(out)) {
			t.Fatalf("the window at %d begins at %d", len(out), from)
		}
		if len(text) == 0 {
			if int64(len(out)) != size {
				t.Fatalf("%d of %d bytes", len(out), size)
			}
			return string(out)
		}
		if out = append(out, text...); len(text) > n+3 || !utf8.Valid(text) {
			t.Fatalf("%d bytes, wanted %d: %q", len(text), n, text)
		}
	}
}

// What is read is harmless, and the same by whatever windows.
func TestHarmless(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, wrote, want string }{
		{"plain", "one\n\ttwo\n", "one\n\ttwo\n"},
		{"UTF-8", "größe 10 €, 𝄞\n", "größe 10 €, 𝄞\n"},
		{"escape sequences", "\x1b]0;title\x07\x1b[2J\x1b[31mred\r\n", "?]0;title??[2J?[31mred?\n"},
		{"C1 and DEL", "a\u009b31mb\x7f", "a??31mb?"},
		{"the direction of writing", "a\u202eb\u2066c\u200f", "a???b???c???"},
		{"line separators", "a\u2028b", "a???b"},
		{"no UTF-8", "\xff\xfe\xc0\x80 \xed\xa0\x80 \xf5x", "???? ??? ?x"},
		{"half a character inside", "a\xe2\x82b", "a??b"},
		{"HTML is text", `<img src=x onerror=alert(1)>`, `<img src=x onerror=alert(1)>`},
		{"NUL", "a\x00b", "a?b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, a := logs.Open(t.TempDir()), workflow.Assignment{Workflow: uid}
			for i := range len(tt.wrote) { // byte by byte: pieces are cut anywhere
				if err := l.Append(a, []byte(tt.wrote[i:i+1])); err != nil {
					t.Fatal(err)
				}
			}
			for n := 1; n < 12; n++ {
				if got := read(t, l, a, n); got != tt.want {
					t.Errorf("by %d: %q, want %q", n, got, tt.want)
				}
			}
			for at := range len(tt.wrote) { // from anywhere, a window is the whole's
				text, from, _, err := l.Window(a, int64(at), 5)
				if err != nil || from-int64(at) > 3 || !strings.HasPrefix(tt.want[from:], string(text)) {
					t.Errorf("from %d: %q at %d, %v", at, text, from, err)
				}
			}
		})
	}
}

// A character whose end is on its way is not shown before it is there.
func TestUnfinishedCharacter(t *testing.T) {
	t.Parallel()
	l, a := logs.Open(t.TempDir()), workflow.Assignment{Workflow: uid}
	for _, step := range []struct{ wrote, want string }{{"a\xe2", "a"}, {"\x82", "a"}, {"\xac", "a€"}, {"\xf0\x9f", "a€"}, {"x", "a€??x"}} {
		if err := l.Append(a, []byte(step.wrote)); err != nil {
			t.Fatal(err)
		}
		if text, _, size, err := l.Window(a, 0, 100); err != nil || string(text) != step.want || size != int64(len(text)) {
			t.Errorf("%q of %d, %v, want %q", text, size, err, step.want)
		}
	}
}

// A full disk is said in the log at the place of the loss, also before it can be written.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, a := logs.Open(dir), workflow.Assignment{Workflow: uid, Action: 1}
	path := filepath.Join(dir, uid, "01-000.log")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", path); err != nil { // ENOSPC of the kernel
		t.Fatal(err)
	}
	if err := l.Append(a, []byte("lost\n")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the first loss: %v", err)
	}
	if err := l.Append(a, []byte("lost, too\n")); err != nil {
		t.Errorf("the second loss was told again: %v", err)
	}
	const note = "\n[a part of the log is missing here: the appliance could not write it: no space left on device]\n"
	if err := os.Remove(path); err != nil { // there is room again
		t.Fatal(err)
	}
	if got := read(t, l, a, 7); got != note {
		t.Errorf("%q", got)
	}
	if sizes, err := l.Sizes(uid); err != nil || sizes[a] != int64(len(note)) {
		t.Errorf("%v, %v", sizes, err)
	}
	if err := l.Append(a, []byte("and on\n")); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != note+"and on\n" || read(t, l, a, 7) != string(raw) {
		t.Errorf("%q, %v", raw, err)
	}
}

// Logs live through a restart, and as long as their workflow.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gone, kept := workflow.Assignment{Workflow: uid}, workflow.Assignment{Workflow: "01JD0000000000000000000001", Action: 3, Attempt: 2}
	before := logs.Open(dir)
	for _, a := range []workflow.Assignment{gone, kept} {
		if err := before.Append(a, []byte("text\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, kept.Workflow, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := logs.Open(dir)
	if sizes, err := l.Sizes(kept.Workflow); err != nil || len(sizes) != 1 || sizes[kept] != 5 {
		t.Errorf("%v, %v", sizes, err)
	}
	if err := l.Append(kept, []byte("more\n")); err != nil {
		t.Fatal(err)
	}
	if sizes, err := l.Sizes(kept.Workflow); err != nil || sizes[kept] != 10 {
		t.Errorf("%v, %v", sizes, err)
	}
	grows := l.Grows(gone)
	err := l.Sweep(func() ([]*workflow.Workflow, error) {
		// one that begins while the records are read
		return []*workflow.Workflow{{Meta: hardware.Meta{UID: kept.Workflow}}}, l.Append(workflow.Assignment{Workflow: "new"}, []byte("x"))
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-grows:
	default:
		t.Error("who follows a log that is gone waits for ever")
	}
	if _, _, _, err := l.Window(gone, 0, 9); !errors.Is(err, workflow.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if got := read(t, l, kept, 9); got != "text\nmore\n" {
		t.Errorf("%q", got)
	}
	if got := read(t, l, workflow.Assignment{Workflow: "new"}, 9); got != "x" {
		t.Errorf("%q", got)
	}
	failed := errors.New("no list")
	if err := l.Sweep(func() ([]*workflow.Workflow, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if got := read(t, l, kept, 9); got == "" {
		t.Error("a list that cannot be read is none")
	}
}

// What is remembered of workflows that are gone goes with them, also of those that never
// wrote a log.
func TestSweepForgets(t *testing.T) {
	t.Parallel()
	l := logs.Open(filepath.Join(t.TempDir(), "logs"))
	kept := workflow.Assignment{Workflow: "01JD0000000000000000000001"}
	waits, gone := l.Grows(kept), l.Grows(workflow.Assignment{Workflow: uid})
	err := l.Sweep(func() ([]*workflow.Workflow, error) {
		return []*workflow.Workflow{{Meta: hardware.Meta{UID: kept.Workflow}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	default:
		t.Error("it is remembered who follows a log of a workflow that is gone")
	}
	select {
	case <-waits:
		t.Error("who waits for a log is forgotten")
	default:
	}
}
