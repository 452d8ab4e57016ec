package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// lists are apt's lists of one architecture's packages. Those of the machine's own
// are the machine's; for another one there are lists in dir, so that nothing changes
// for the machine.
type lists struct{ arch, dir string }

// listsAge is how old the lists in dir may become before they are read anew.
const listsAge = 24 * time.Hour

func (l lists) own() bool { return l.arch == runtime.GOARCH }

// options returns the options for apt's programs, after the lists were fetched if
// they are absent or old. Old ones have to do when there is no network.
func (l lists) options(ctx context.Context) ([]string, error) {
	if l.own() {
		return nil, nil
	}
	options := []string{
		"-oAPT::Architecture=" + l.arch, "-oAPT::Architectures=" + l.arch,
		"-oDir::State=" + l.dir, "-oDir::State::Lists=" + filepath.Join(l.dir, "lists"), "-oDir::State::status=/dev/null",
		"-oDir::Cache=" + filepath.Join(l.dir, "cache"), "-oAcquire::Languages=none",
		"-oAcquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		// A list that cannot be had is an error, not a warning.
		"-oAPT::Update::Error-Mode=any",
	}
	info, err := os.Stat(l.stamp())
	if err == nil && time.Since(info.ModTime()) < listsAge {
		return options, nil
	}
	for _, folder := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(l.dir, folder), 0o755); err != nil {
			return nil, err
		}
	}
	_, uerr := command(ctx, "", "apt-get", append([]string{"update", "-q"}, options...)...)
	switch {
	case uerr == nil:
		return options, os.WriteFile(l.stamp(), nil, 0o644)
	case err == nil && ctx.Err() == nil:
		return options, nil
	}
	return nil, fmt.Errorf("the list of %s packages: %w (the first build needs the network; `-arch %s` leaves %s out)", l.arch, uerr, runtime.GOARCH, l.arch)
}

// forget has the lists in dir read anew by the next run.
func (l lists) forget() error {
	if l.own() {
		return nil
	}
	return os.RemoveAll(l.stamp())
}

func (l lists) stamp() string { return filepath.Join(l.dir, "updated") }

// remedy is what to do when a list does not fit what the archive has.
func (l lists) remedy() string {
	if l.own() {
		return "run `apt-get update` as root and try again"
	}
	return "try again: the next run reads the list of packages anew"
}
