package ipxe

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestTFTPFiles(t *testing.T) {
	t.Parallel()
	commands, err := Grub(workerInput())
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := Grub(ScriptInput{MAC: hardware.MAC{2, 0, 0, 0, 0, 9}})
	if err != nil {
		t.Fatal(err)
	}
	noToken := workerInput()
	noToken.Token = ""
	without, err := Grub(noToken)
	if err != nil {
		t.Fatal(err)
	}
	auto, err := Autoexec(workerInput())
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := Grub(ScriptInput{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Autoexec(ScriptInput{HTTP: netip.MustParseAddrPort("0.0.0.0:7080")})
	if err != nil {
		t.Fatal(err)
	}
	mac := workerInput().MAC
	const machine, stranger = "127.0.0.1:2000", "127.0.0.2:2000"
	for name, tc := range map[string]struct {
		client string
		want   string
		err    error
		reason hardware.Reason
	}{
		"undionly.kpxe":                             {machine, "embedded undionly.kpxe", nil, ""},
		"/grubx64.efi":                              {machine, "embedded grubx64.efi", nil, ""},
		"boot/vmlinuz-amd64":                        {machine, "embedded vmlinuz-amd64", nil, ""},
		"boot/initramfs-amd64":                      {machine, zst + "base!", nil, ""},
		"grub/grub.cfg":                             {machine, string(GrubConfig()), nil, ""},
		"grub/machine/52:54:00:12:34:56":            {machine, string(commands), nil, hardware.ReasonScriptSent},
		"/grub/machine/52-54-00-12-34-56":           {machine, string(commands), nil, hardware.ReasonScriptSent},
		"grub/machine/525400123456":                 {stranger, string(without), nil, hardware.ReasonScriptNoToken},
		"grub/machine/02:00:00:00:00:09":            {machine, string(unknown), nil, hardware.ReasonUnknownMachine},
		"autoexec.ipxe":                             {machine, string(auto), nil, hardware.ReasonScriptSent},
		"/vendor/autoexec.ipxe":                     {machine, string(auto), nil, hardware.ReasonScriptSent},
		"/autoexec.ipxe":                            {stranger, string(again), nil, hardware.ReasonUnknownMachine},
		"grub/machine/auto":                         {machine, string(commands), nil, hardware.ReasonScriptSent},
		"/grub/machine/auto":                        {stranger, string(nobody), nil, hardware.ReasonUnknownMachine},
		"grub/machine/":                             {machine, "", fs.ErrNotExist, ""},
		"grub/machine/52:54:00:12:34:56/x":          {machine, "", fs.ErrNotExist, ""},
		"grub/x86_64-efi/command.lst":               {machine, "", fs.ErrNotExist, ""},
		"revocations.efi":                           {machine, "", fs.ErrNotExist, ""},
		"../etc/passwd":                             {machine, "", fs.ErrNotExist, ""},
		"boot/../../etc/passwd":                     {machine, "", fs.ErrNotExist, ""},
		"undionly.kpxe\x00":                         {machine, "", fs.ErrNotExist, ""},
		"":                                          {machine, "", fs.ErrNotExist, ""},
		"grub/machine/" + strings.Repeat("5", 9999): {machine, "", fs.ErrNotExist, ""},
	} {
		b := newFakeBackend(t, "")
		f, err := NewTFTPFiles(newAssets(builtin(), t.TempDir()), b, 7080, quiet()).Open(t.Context(), netip.MustParseAddrPort(tc.client), name)
		if tc.err != nil {
			if !errors.Is(err, tc.err) {
				t.Errorf("%.40q: error %v, want %v", name, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != tc.want || f.Size() != int64(len(tc.want)) {
			t.Errorf("%q: size %d, %v, reads %q, want %q", name, f.Size(), err, got, tc.want)
		}
		for range 2 { // a second Close says nothing
			f.Close()
		}
		close(b.seen)
		var seen []hardware.Reason
		for o := range b.seen {
			seen = append(seen, o.Reason)
			if o.Bytes != int64(len(tc.want)) || (o.MAC != mac && o.Reason != hardware.ReasonUnknownMachine) || o.Client != netip.MustParseAddrPort(tc.client).Addr() {
				t.Errorf("%q: observed %+v", name, o)
			}
		}
		if want := append([]hardware.Reason{}, tc.reason); tc.reason == "" && seen != nil || tc.reason != "" && !slices.Equal(seen, want) {
			t.Errorf("%q: observed %v, want %q", name, seen, tc.reason)
		}
	}
}

// Commands that were asked for and not read were not sent.
func TestTFTPFilesHalfRead(t *testing.T) {
	t.Parallel()
	b := newFakeBackend(t, "")
	f, err := NewTFTPFiles(newAssets(builtin(), t.TempDir()), b, 7080, quiet()).Open(t.Context(), netip.MustParseAddrPort("127.0.0.1:9"), machinePrefix+workerInput().MAC.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(f, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if seen := b.observed(t); seen != nil {
		t.Errorf("observed %+v", seen)
	}
}

// A record's own iPXE script is nothing for GRUB, and the timeline says so; iPXE gets it.
func TestTFTPFilesOwnScript(t *testing.T) {
	t.Parallel()
	b := newFakeBackend(t, "")
	b.change = func(in *ScriptInput) {
		in.Next = hardware.Next{Target: hardware.TargetCustom, Reason: hardware.ReasonOwnScript}
		in.Own = &hardware.OwnScript{Script: "#!ipxe\nshell\n"}
	}
	files := NewTFTPFiles(newAssets(builtin(), t.TempDir()), b, 7080, quiet())
	for name, want := range map[string]string{"grub/machine/auto": "spec.netboot.ipxe", "autoexec.ipxe": "clear rs-net\nshell\n"} {
		f, err := files.Open(t.Context(), netip.MustParseAddrPort("127.0.0.1:9"), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		f.Close()
		if reason := b.await(t).Reason; (reason == hardware.ReasonOwnNeedsIPXE) != (name != "autoexec.ipxe") {
			t.Errorf("%s: observed %s", name, reason)
		}
	}
}

func TestTried(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"revocations.efi": true, "/vendor/revocations_sku.efi": true, "shim_certificate_0.efi": true, "grub/x86_64-efi/command.lst": true,
		"/grub/x86_64-efi/grub.cfg": true, "snponly.efi": false, "boot/vmlinuz-amd64": false, "grubx64.efi": false,
	} {
		if Tried(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// The operator's grub.cfg comes before ours.
func TestTFTPFilesOwnGrubConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "boot/grub/grub.cfg", "mine")
	f, err := NewTFTPFiles(newAssets(builtin(), dir), newFakeBackend(t, ""), 7080, quiet()).Open(t.Context(), netip.AddrPort{}, "grub/grub.cfg")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, []byte("mine")) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSentReason(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]hardware.Reason{
		"snponly.efi": hardware.ReasonProgramSent, "boot/vmlinuz-amd64": hardware.ReasonKernelSent,
		"/boot/initramfs-arm64": hardware.ReasonInitramfsSent, "initramfs-amd64": hardware.ReasonInitramfsSent,
		"grub/grub.cfg": "", "grub/machine/52:54:00:12:34:56": "", "arm/snp.efi": hardware.ReasonProgramSent,
		"autoexec.ipxe": "", "a/autoexec.ipxe": "", "shimx64.img": hardware.ReasonProgramSent,
	} {
		if got, ok := SentReason(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, ok, want)
		}
	}
}
