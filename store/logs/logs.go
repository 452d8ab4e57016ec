// Package logs keeps what attempts of actions write, as files below the data directory:
// <workflow uid>/<action>-<attempt>.log. What is read is text that neither a page nor a
// terminal obeys; the files have the bytes as they came.
package logs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"

	"github.com/rackstrap/rackstrap/workflow"
)

// MaxBytes bounds the log of one attempt; what comes after is dropped with one line that
// says so.
const MaxBytes = 4 << 20

// fullNote is that line.
const fullNote = "\n[the log is longer than 4 MiB; the rest is dropped]\n"

// maxAttempt bounds the number of an attempt, which comes from a worker.
const maxAttempt = 1000

// Logs keeps the logs of all attempts. Its methods may be called at once.
type Logs struct {
	dir string

	mu sync.Mutex
	// lost has the line that tells of a loss, of logs in which it could not be written
	// either: the disk is full. It counts as their end.
	lost map[workflow.Assignment]string
	// grown are closed when the log grows; of those that somebody follows.
	grown map[workflow.Assignment]chan struct{}
	// sizes are those of the files, by the workflow's uid, of workflows that were asked
	// for; true sizes, also when text is appended.
	sizes map[string]map[workflow.Assignment]int64
}

var _ workflow.Logs = (*Logs)(nil)

// Open keeps logs below dir, which is made when the first one comes.
func Open(dir string) *Logs {
	return &Logs{
		dir:  dir,
		lost: map[workflow.Assignment]string{}, grown: map[workflow.Assignment]chan struct{}{}, sizes: map[string]map[workflow.Assignment]int64{},
	}
}

var uidForm = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// path is the file of one attempt. The workflow's uid comes from a worker, so its
// form is checked before it becomes a file name.
func (l *Logs) path(a workflow.Assignment) (string, error) {
	if !uidForm.MatchString(a.Workflow) || a.Action < 0 || a.Action >= workflow.MaxActions || a.Attempt < 0 || a.Attempt > maxAttempt {
		return "", fmt.Errorf("no such attempt")
	}
	return filepath.Join(l.dir, a.Workflow, fileName(a)), nil
}

func fileName(a workflow.Assignment) string { return fmt.Sprintf("%02d-%03d.log", a.Action, a.Attempt) }

// Append adds text to an attempt's log. Text that cannot be written is lost, and the log
// says so at that place; the error is told once for each such loss.
func (l *Logs) Append(a workflow.Assignment, text []byte) error {
	p, err := l.path(a)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	note, losing := l.lost[a]
	size, err := write(p, append([]byte(note), text...))
	switch {
	case err == nil:
		delete(l.lost, a)
		if known := l.sizes[a.Workflow]; known != nil {
			known[a] = size
		}
	case losing:
		err = nil // it was told, and the log says so
	default:
		l.lost[a] = lostNote(err)
	}
	if c := l.grown[a]; c != nil {
		close(c)
		delete(l.grown, a)
	}
	return err
}

// lostNote is the line for a loss: the cause without the path, which is nobody's business.
func lostNote(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno
	}
	return fmt.Sprintf("\n[a part of the log is missing here: the appliance could not write it: %v]\n", err)
}

// write appends all of text, or as much as fits the bound, to the file; or nothing. It
// returns the file's size.
func write(path string, text []byte) (int64, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := st.Size()
	if size > MaxBytes {
		return size, nil // full: the last line in it says so
	}
	if size+int64(len(text)) > MaxBytes {
		rest := MaxBytes - size
		text = append(text[:rest:rest], fullNote...)
	}
	if _, err := f.Write(text); err != nil {
		_ = f.Truncate(size) // half a piece would be read as it is
		return size, err
	}
	return size + int64(len(text)), nil
}

// Grows returns a channel that is closed when the attempt's log grows the next time. Ask
// before reading, so that nothing is missed in between.
func (l *Logs) Grows(a workflow.Assignment) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.grown[a]
	if c == nil {
		c = make(chan struct{})
		l.grown[a] = c
	}
	return c
}

// Sizes are the sizes in bytes of the logs that there are of a workflow's attempts.
func (l *Logs) Sizes(uid string) (map[workflow.Assignment]int64, error) {
	if !uidForm.MatchString(uid) {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.sizes[uid]
	if known == nil {
		var err error
		if known, err = l.look(uid); err != nil {
			return nil, err
		}
		l.sizes[uid] = known
	}
	out := make(map[workflow.Assignment]int64, len(known))
	for a, n := range known {
		out[a] = n
	}
	for a, note := range l.lost {
		if a.Workflow == uid {
			out[a] += int64(len(note))
		}
	}
	return out, nil
}

// look reads the sizes from the files of one workflow.
func (l *Logs) look(uid string) (map[workflow.Assignment]int64, error) {
	out := map[workflow.Assignment]int64{}
	files, err := os.ReadDir(filepath.Join(l.dir, uid))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		a := workflow.Assignment{Workflow: uid}
		if _, err := fmt.Sscanf(f.Name(), "%d-%d.log", &a.Action, &a.Attempt); err != nil || fileName(a) != f.Name() {
			continue // not ours
		}
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
			out[a] = info.Size()
		}
	}
	return out, nil
}

// Sweep removes the logs of workflows that are not among those that list returns, and what
// is remembered of them. It is asked after the look at both, so that a workflow that begins
// meanwhile keeps its.
func (l *Logs) Sweep(list func() ([]*workflow.Workflow, error)) error {
	dirs, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	have := l.remembered()
	for _, d := range dirs {
		have[d.Name()] = true
	}
	if len(have) == 0 {
		return nil
	}
	all, err := list()
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, w := range all {
		keep[w.Meta.UID] = true
	}
	for uid := range have {
		if uidForm.MatchString(uid) && !keep[uid] {
			if err := l.remove(uid); err != nil {
				return err
			}
		}
	}
	return nil
}

// remembered are the workflows of which something is in memory; not all have a log.
func (l *Logs) remembered() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]bool{}
	for uid := range l.sizes {
		out[uid] = true
	}
	for a := range l.lost {
		out[a.Workflow] = true
	}
	for a := range l.grown {
		out[a.Workflow] = true
	}
	return out
}

// remove deletes the logs of one workflow, and what is remembered of them.
func (l *Logs) remove(uid string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sizes, uid)
	for a := range l.lost {
		if a.Workflow == uid {
			delete(l.lost, a)
		}
	}
	for a, c := range l.grown {
		if a.Workflow == uid {
			close(c)
			delete(l.grown, a)
		}
	}
	return os.RemoveAll(filepath.Join(l.dir, uid))
}
