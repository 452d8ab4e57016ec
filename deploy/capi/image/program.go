package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
)

// runs says why a program does not run in an image that has nothing else in it, on
// machines of arch; nil where it does.
func runs(arch string, program []byte) error {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	want, ok := machines[arch]
	if !ok {
		return fmt.Errorf("architecture %q is none of amd64 and arm64", arch)
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("is no program: %w", err)
	}
	if f.Machine != want {
		return fmt.Errorf("is a program for %s, not for %s (build it with GOARCH=%s)", f.Machine, want, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("needs libraries, and the image has none (build it with CGO_ENABLED=0)")
		}
	}
	return nil
}

// revision is the commit that a program was built from, as the Go toolchain wrote it down;
// empty where it did not, or where files were changed since.
func revision(program []byte) string {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return ""
	}
	said := map[string]string{}
	for _, s := range info.Settings {
		said[s.Key] = s.Value
	}
	if said["vcs.modified"] == "true" {
		return ""
	}
	return said["vcs.revision"]
}
