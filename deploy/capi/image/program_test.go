package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	bin "encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

// tiny is a program of one page, which ends with the number of its user, as its exit code
// has it; where interpreted it asks for a linker of libraries.
func tiny(t *testing.T, machine elf.Machine, interpreted bool) string {
	t.Helper()
	const at = 0x400000
	code := []byte{
		0xb8, 102, 0, 0, 0, 0x0f, 0x05, // getuid
		0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05, // exit with it
	}
	headers := []elf.Prog64{{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: at, Align: 0x1000}}
	if interpreted {
		headers = append(headers, elf.Prog64{Type: uint32(elf.PT_INTERP), Flags: uint32(elf.PF_R)})
	}
	begin := uint64(64 + 56*len(headers))
	headers[0].Filesz, headers[0].Memsz = begin+uint64(len(code)), begin+uint64(len(code))
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Entry: at + begin, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(headers)), Shentsize: 64,
	}
	var out bytes.Buffer
	for _, part := range []any{h, headers, code} {
		if err := bin.Write(&out, bin.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, out.Bytes(), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// The command makes an archive of two programs, and refuses what would not run: a program
// of another architecture, one that needs libraries, and what is none. What is unpacked
// from the archive runs where nothing else is, as whom the image says.
func TestArchiveRuns(t *testing.T) {
	t.Parallel()
	lab.Require(t)
	amd64, arm64 := tiny(t, elf.EM_X86_64, false), tiny(t, elf.EM_AARCH64, false)
	const name = "registry.example/rackstrap-capi:v0.1.0"
	out := filepath.Join(t.TempDir(), "image.tar")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"amd64=" + arm64: "GOARCH=amd64", "arm64=" + amd64: "GOARCH=arm64", "amd64=" + text: "is no program",
		"amd64=" + tiny(t, elf.EM_X86_64, true): "CGO_ENABLED=0", "riscv64=" + amd64: "none of amd64 and arm64",
	} {
		if err := run(name, out, []string{args}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if err := run(name, out, []string{"amd64=" + amd64, "arm64=" + arm64}); err != nil {
		t.Fatal(err)
	}
	root := unpacked(t, out, "amd64")
	cmd := exec.CommandContext(t.Context(), "/"+program, "--help")
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	var ended *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &ended) || ended.ExitCode() != 65532&0xff {
		t.Errorf("in the image: %v, want the exit code of user 65532", err)
	}
	if f := filepath.Join(unpacked(t, out, "arm64"), program); runs("arm64", read(t, f)) != nil {
		t.Errorf("%s: %v", f, runs("arm64", read(t, f)))
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unpacked is a folder with the file system of the image of an architecture, found as a
// container engine finds it: by the index, the manifest and the config.
func unpacked(t *testing.T, archive, arch string) string {
	t.Helper()
	blobs := map[string][]byte{}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := tar.NewReader(f)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if blobs[h.Name], err = io.ReadAll(files); err != nil {
			t.Fatal(err)
		}
	}
	blob := func(d descriptor, v any) []byte {
		t.Helper()
		data := blobs["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if digest(data) != d.Digest || int64(len(data)) != d.Size {
			t.Fatalf("%s has %d bytes and the digest %s", d.Digest, len(data), digest(data))
		}
		if v == nil {
			return data
		}
		if err := json.Unmarshal(data, v); err != nil {
			t.Fatal(err)
		}
		return data
	}
	var entry, images index
	if err := json.Unmarshal(blobs["index.json"], &entry); err != nil || len(entry.Manifests) != 1 {
		t.Fatalf("index.json: %v: %s", err, blobs["index.json"])
	}
	blob(entry.Manifests[0], &images)
	for _, d := range images.Manifests {
		if d.Platform == nil || *d.Platform != (platform{arch, "linux"}) {
			continue
		}
		var m manifest
		var c config
		blob(d, &m)
		blob(m.Config, &c)
		if c.platform != *d.Platform || c.Config.User != user || len(c.Config.Entrypoint) != 1 || c.Config.Entrypoint[0] != "/"+program || len(m.Layers) != 1 {
			t.Fatalf("%s: %+v of %+v", arch, c, m)
		}
		z, err := gzip.NewReader(bytes.NewReader(blob(m.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(z)
		if err != nil || digest(layer) != c.RootFS.DiffIDs[0] {
			t.Fatalf("the layer has the digest %s, want %v: %v", digest(layer), c.RootFS.DiffIDs, err)
		}
		root := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "tar", "-xp")
		cmd.Dir, cmd.Stdin = root, bytes.NewReader(layer)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for dir := root; dir != "/"; dir = filepath.Dir(dir) { // another user goes through them
			if strings.HasPrefix(dir, os.TempDir()+"/") {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		return root
	}
	t.Fatalf("no image for %s: %+v", arch, images)
	return ""
}
