package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab/rig"
)

// operator types commands at the appliance. What is typed and what it says is in
// the test's log, as a person would have seen it.
type operator struct {
	t   *testing.T
	ctx context.Context
	r   *rig.Rack
}

// run is a command that must work; it returns what the command printed.
func (o *operator) run(args ...string) string {
	o.t.Helper()
	out, said, err := o.try(args...)
	if err != nil {
		o.t.Fatalf("rackstrap %s: %v\n%s%s", strings.Join(args, " "), err, out, said)
	}
	return out
}

// try is a command that may fail.
func (o *operator) try(args ...string) (out, said string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := o.r.Appliance.Command(o.ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err = cmd.Run()
	o.t.Logf("$ rackstrap %s   (%s)\n%s%s", strings.Join(args, " "), time.Since(began).Round(10*time.Millisecond), stderr.String(), stdout.String())
	return stdout.String(), stderr.String(), err
}

// get is a command with -o json.
func (o *operator) get(into any, args ...string) {
	o.t.Helper()
	out, err := o.r.Appliance.Command(o.ctx, append(args, "-o", "json")...).Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		o.t.Fatalf("rackstrap %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// begin starts a command and returns what waits for its end.
func (o *operator) begin(args ...string) (wait func() error) {
	ended := make(chan error, 1)
	go func() {
		_, _, err := o.try(args...)
		ended <- err
	}()
	return func() error { return <-ended }
}

// sees follows a command's lines until one holds all the words.
func (o *operator) sees(args []string, words ...string) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.ctx)
	defer cancel()
	cmd := o.r.Appliance.Command(ctx, args...)
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		o.t.Fatal(err)
	}
	seen := false
	lines := bufio.NewScanner(pipe)
	for !seen && lines.Scan() {
		seen = true
		for _, w := range words {
			seen = seen && strings.Contains(lines.Text(), w)
		}
	}
	cancel()
	_, _ = io.Copy(io.Discard, pipe)
	_ = cmd.Wait() // it was killed
	if !seen {
		o.t.Fatalf("rackstrap %s never said %q", strings.Join(args, " "), words)
	}
}
