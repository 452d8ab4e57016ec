package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
)

// failure is an error with its exit code and a hint.
type failure struct {
	code int
	hint string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usage is a command line that is wrong.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return usageHint(cmd.CommandPath()+" --help", format, args...)
}

func usageHint(hint, format string, args ...any) error {
	return &failure{exitUsage, hint, fmt.Errorf(format, args...)}
}

// report prints err as people read it and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	code, hint := exitError, ""
	var f *failure
	var p *api.Problem
	var u *client.Unreachable
	if errors.As(err, &p) {
		hint = p.Hint
		if p.Code == api.CodeNotFound {
			code = exitNotFound
		}
	}
	if errors.As(err, &u) {
		code, hint = exitUnreachable, u.Hint()
	}
	if errors.As(err, &f) {
		code = f.code
		if f.hint != "" {
			hint = f.hint
		}
	}
	if p != nil && len(p.Errors) > 1 {
		head, _, _ := strings.Cut(err.Error(), ": ")
		a.errf("%s: %d things are wrong", head, len(p.Errors))
		for _, e := range p.Errors {
			_, _ = fmt.Fprintf(a.Err, "  %s: %s\n", e.Field, e.Detail)
		}
	} else {
		a.errf("%v", err)
	}
	if hint != "" {
		_, _ = fmt.Fprintf(a.Err, "hint: %s\n", hint)
	}
	return code
}

func (a *app) errf(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Err, "rackstrap: "+format+"\n", args...)
}
