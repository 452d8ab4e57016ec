package main

import (
	"fmt"
	"io"
	"log/slog"
)

func logLevel(s string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return l, fmt.Errorf("log.level: %q is not known (debug, info, warn or error)", s)
	}
	return l, nil
}

// newLogger writes to w. Under systemd the journal adds the time itself, but a
// file or a terminal needs it, and one form for all is easier to read.
func newLogger(c logConfig, w io.Writer) (*slog.Logger, error) {
	l, err := logLevel(c.Level)
	if err != nil {
		return nil, err
	}
	o := &slog.HandlerOptions{Level: l}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(slog.NewTextHandler(w, o)), nil
}
