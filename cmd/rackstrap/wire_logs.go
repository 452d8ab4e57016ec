package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/rackstrap/rackstrap/workflow"
)

// maxAttemptLog bounds the log file of one attempt, in bytes; what comes after is
// dropped with one line that says so.
const maxAttemptLog = 4 << 20

// attemptLogs keeps what attempts write, as files below the data directory.
type attemptLogs struct {
	dir string
	mu  sync.Mutex
}

var _ workflow.Logs = (*attemptLogs)(nil)

var uidForm = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// sweep removes the logs of workflows that are gone.
func (l *attemptLogs) sweep(keep []*workflow.Workflow) error {
	known := map[string]bool{}
	for _, w := range keep {
		known[w.Meta.UID] = true
	}
	dirs, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if uidForm.MatchString(d.Name()) && !known[d.Name()] {
			if err := os.RemoveAll(filepath.Join(l.dir, d.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// path is the file of one attempt. The workflow's uid comes from a worker, so its
// form is checked before it becomes a file name.
func (l *attemptLogs) path(a workflow.Assignment) (string, error) {
	if !uidForm.MatchString(a.Workflow) || a.Action < 0 || a.Action >= workflow.MaxActions || a.Attempt < 0 || a.Attempt > 1000 {
		return "", fmt.Errorf("no such attempt")
	}
	return filepath.Join(l.dir, a.Workflow, fmt.Sprintf("%02d-%03d.log", a.Action, a.Attempt)), nil
}

// Append adds text to an attempt's log.
func (l *attemptLogs) Append(a workflow.Assignment, text []byte) error {
	p, err := l.path(a)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() > maxAttemptLog {
		return err // full: the last line in it says so
	}
	if st.Size()+int64(len(text)) > maxAttemptLog {
		rest := maxAttemptLog - st.Size()
		text = append(text[:rest:rest], "\n[the log is longer than 4 MiB; the rest is dropped]\n"...)
	}
	_, err = f.Write(text)
	return err
}
