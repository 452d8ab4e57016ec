package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const stateFile = "lab.json"

// State is what another process needs to find a lab and to take it down.
// It is the content of lab.json in the lab's directory.
type State struct {
	Name       string         `json:"name"`
	Namespace  string         `json:"namespace"`
	Namespaces []string       `json:"namespaces"` // all of them, the clients' too
	Gateway    string         `json:"gateway"`
	RunDir     string         `json:"runDir"`
	Machines   []MachineState `json:"machines,omitempty"`
}

// MachineState says where the files of one machine are.
type MachineState struct {
	Name      string `json:"name"`
	MAC       string `json:"mac"`
	Dir       string `json:"dir"`
	SerialLog string `json:"serialLog"`
	QMP       string `json:"qmp"`
	PID       int    `json:"pid,omitempty"` // 0 while it is off
}

// ReadState reads the state of the lab in dir. It returns an error that matches
// os.ErrNotExist if there is no lab.
func ReadState(dir string) (State, error) {
	var s State
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	for _, ns := range append(slices.Clone(s.Namespaces), s.Namespace) {
		if !strings.HasPrefix(ns, "rs-") || strings.ContainsAny(ns, "/\x00") {
			return s, fmt.Errorf("%s: %q is not the name of a lab's namespace", filepath.Join(dir, stateFile), ns)
		}
	}
	return s, nil
}

// Clean takes down the lab whose work directory is dir, from any process: it
// ends everything that runs in its namespaces, deletes them, and removes the
// machines with their disks and logs. Without a lab in dir it does nothing.
func Clean(ctx context.Context, dir string) error {
	s, err := ReadState(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, ns := range s.Namespaces {
		err = errors.Join(err, removeNamespace(ctx, ns))
	}
	if strings.HasPrefix(s.RunDir, runBase+"/") {
		err = errors.Join(err, os.RemoveAll(s.RunDir))
	}
	err = errors.Join(err, os.RemoveAll(filepath.Join(dir, machinesDir)))
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, stateFile))
}

func writeState(dir string, s State) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, "."+stateFile)
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, stateFile))
}
