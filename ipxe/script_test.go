package ipxe

import (
	"bytes"
	"flag"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

var update = flag.Bool("update", false, "write the golden files (the test still fails)")

func workerInput() ScriptInput {
	return ScriptInput{
		MAC: hardware.MAC{0x52, 0x54, 0, 0x12, 0x34, 0x56}, Machine: "m1",
		Next:  hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeWork, Reason: hardware.ReasonWorkflowActive},
		HTTP:  netip.MustParseAddrPort("10.0.0.1:7080"),
		Token: "AbC-_0123456789.x=", CA: strings.Repeat("0123456789abcdef", 4), Arch: "amd64",
		Worker: netip.MustParseAddrPort("10.0.0.1:42113"),
	}
}

type scriptCase struct {
	in  ScriptInput
	err string // what the error says, where there is one
}

// scriptCases are the inputs of the golden files, one pair for each.
func scriptCases() map[string]scriptCase {
	with := func(change func(*ScriptInput)) ScriptInput {
		in := workerInput()
		change(&in)
		return in
	}
	next := func(target hardware.Target, r hardware.Reason) ScriptInput {
		return with(func(in *ScriptInput) { in.Next = hardware.Next{Target: target, Reason: r} })
	}
	own := func(o hardware.OwnScript) ScriptInput {
		in := next(hardware.TargetCustom, hardware.ReasonOwnScript)
		in.Own, in.HTTP, in.Token = &o, netip.AddrPort{}, ""
		return in
	}
	return map[string]scriptCase{
		"worker":  {in: workerInput()},
		"nobody":  {in: ScriptInput{}},
		"unknown": {in: with(func(in *ScriptInput) { in.Machine = ""; in.Token = "" })},
		"disk": {in: with(func(in *ScriptInput) { // nothing but a name and an architecture
			*in = ScriptInput{MAC: in.MAC, Machine: "m1", Arch: "amd64", Next: hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonProvisioned}}
		})},
		"denied":  {in: next(hardware.TargetNone, hardware.ReasonPXEDenied)},
		"pending": {in: next(hardware.TargetNone, hardware.ReasonPendingApproval)},
		"halt":    {in: next(hardware.TargetHalt, hardware.ReasonNotStopped)},
		"halt-nowhere": {in: with(func(in *ScriptInput) { // it stops all the same
			in.HTTP, in.Next = netip.AddrPort{}, hardware.Next{Target: hardware.TargetHalt, Reason: hardware.ReasonReleasing}
		})},
		"notoken": {in: with(func(in *ScriptInput) { in.Token = "" })},
		"arguments": {in: with(func(in *ScriptInput) {
			in.Consoles = []string{"ttyS1,57600n8"}
			in.KernelArgs = []string{"nomodeset", "pci=realloc=on,noaer", "x=*?[a-z]!~^@%:(,)+"}
		})},
		"arm64": {in: with(func(in *ScriptInput) { in.Arch, in.Firmware = "arm64", hardware.FirmwareUEFIARM })},
		"refused-machine": {
			in:  with(func(in *ScriptInput) { in.Firmware = hardware.FirmwareUEFIARM }),
			err: "spec.arch: the record says amd64, and the firmware is of an arm64 machine (set spec.arch: arm64)",
		},
		"arm64-disk": {in: with(func(in *ScriptInput) {
			in.Arch, in.Next = "arm64", hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonNothingToDo}
		})},
		"ipv6": {in: with(func(in *ScriptInput) {
			in.HTTP, in.Worker = netip.MustParseAddrPort("[fd00::1]:7080"), netip.MustParseAddrPort("[fd00::1]:42113")
		})},
		"own":         {in: own(hardware.OwnScript{Script: "#!ipxe\r\n# für uns: ${net0/mac} && || `x`\n\tshell"})},
		"own-chain":   {in: own(hardware.OwnScript{URL: "https://boot.example.net:8443/a/b.ipxe?x=1&y=%20"})},
		"own-nothing": {in: next(hardware.TargetCustom, hardware.ReasonOwnScript)}, // the record has just changed
		"refused-own": {in: own(hardware.OwnScript{Script: "#!ipxe\n\x1b[2J"}), err: "spec.netboot.ipxe.script: has the control character"},
		"refused-url": {in: own(hardware.OwnScript{URL: "http://x/y || shell"}), err: "spec.netboot.ipxe.url: "},
		"hostile-text": {in: with(func(in *ScriptInput) {
			in.Machine, in.Why = "m1\nreboot ${x} || shell && `id` $(id) \\", "it's \"so\"; | & # {} \x00\x1b[2J\u2028é"+strings.Repeat("x", 300)
		})},
		"refused-argument": {
			in:  with(func(in *ScriptInput) { in.KernelArgs = []string{"quiet", "a b\nreboot ${x} 'y"} }),
			err: "boot script for m1 (52:54:00:12:34:56): spec.kernelArgs[1]: ",
		},
		"refused-length": {
			in: with(func(in *ScriptInput) {
				for range 5 {
					in.KernelArgs = append(in.KernelArgs, strings.Repeat("a", 512))
				}
			}),
			err: "the limit is 2022",
		},
		"refused-token":   {in: with(func(in *ScriptInput) { in.Token = "a b" }), err: "rackstrap.token: "},
		"refused-ca":      {in: with(func(in *ScriptInput) { in.CA = "" }), err: "rackstrap.ca: is empty"},
		"refused-console": {in: with(func(in *ScriptInput) { in.Consoles = []string{"tty0 init=/x"} }), err: "console: "},
		"refused-arch":    {in: with(func(in *ScriptInput) { in.Arch = "../x" }), err: "spec.arch: "},
		"refused-server":  {in: with(func(in *ScriptInput) { in.HTTP = netip.AddrPort{} }), err: "set the Subnet's advertise"},
		"refused-zone": {
			in:  with(func(in *ScriptInput) { in.Worker = netip.MustParseAddrPort("[fe80::1%e$x]:1") }),
			err: "no address for workers",
		},
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for name, tc := range scriptCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for ext, render := range map[string]func(ScriptInput) ([]byte, error){".ipxe": Script, ".grub": Grub} {
				got, err := render(tc.in)
				want := tc.err
				if tc.in.Own != nil && ext == ".grub" {
					want = "" // GRUB is given nothing of it
				}
				if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
					t.Errorf("%s: error %v, want one with %q", ext, err, want)
				}
				golden(t, filepath.Join("testdata", "scripts", name+ext), got)
			}
		})
	}
}

func TestAutoexec(t *testing.T) {
	t.Parallel()
	got, err := Autoexec(workerInput())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "scripts", "worker.autoexec"), got)
}

// A machine whose address is no boot's may be known by its MAC, which only it can say.
func TestAutoexecOfNobody(t *testing.T) {
	t.Parallel()
	for http, want := range map[string]string{
		"10.0.0.1:7080":  "\nchain --autofree --replace http://10.0.0.1:7080/ipxe/script/${netX/mac}/auto.ipxe ||\n",
		"[fd00::1]:7080": "\nchain --autofree --replace http://[fd00::1]:7080/ipxe/script/${netX/mac}/auto.ipxe ||\n",
		"0.0.0.0:7080":   "\nchain --autofree --replace http://${next-server}:7080/ipxe/script/${netX/mac}/auto.ipxe ||\n",
	} {
		got, err := Autoexec(ScriptInput{HTTP: netip.MustParseAddrPort(http)})
		online, chain, end := strings.Index(string(got), ":rs-online\n"), strings.Index(string(got), want), strings.Index(string(got), "echo Rackstrap: no boot of a machine")
		if err != nil || online < 0 || chain < online || end < chain {
			t.Errorf("%s: %v, no %q between the address and the end:\n%s", http, err, want, got)
		}
	}
	if got, err := Autoexec(workerInput()); err != nil || strings.Contains(string(got), "netX/mac") {
		t.Errorf("a machine that is known asks again: %v\n%s", err, got)
	}
}

// TestGrubSyntax lets GRUB itself read what we wrote for it.
func TestGrubSyntax(t *testing.T) {
	t.Parallel()
	check, err := exec.LookPath("grub-script-check")
	if err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal("grub-script-check is not installed (apt-get install grub-common)")
		}
		t.Skip("grub-script-check is not installed (apt-get install grub-common)")
	}
	files, err := filepath.Glob("testdata/scripts/*.grub")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	disk, err := execute("bootdisk.grub.tmpl", &view{Host: "10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	onDisk := filepath.Join(t.TempDir(), "grub.cfg")
	if err := os.WriteFile(onDisk, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, "scripts/grub.cfg", onDisk) {
		if said, err := exec.Command(check, f).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", f, err, said)
		}
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%s: got\n%s\nwant (error %v)\n%s", file, got, err, want)
}
