package worker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/hardware"
)

// lanProgram is what OpenIPMI's simulator asks for its network settings: ipmi_lan(5).
const lanProgram = `#!/bin/sh
shift 2
for p in "$@"; do
	case $p in
	ip_addr) echo "ip_addr:10.9.0.5" ;;
	ip_addr_src) echo "ip_addr_src:static" ;;
	mac_addr) echo "mac_addr:52:54:00:bb:00:01" ;;
	subnet_mask) echo "subnet_mask:255.255.255.0" ;;
	*) echo "$p:" ;;
	esac
done
`

// startBMC starts OpenIPMI's simulator and returns where QEMU finds it.
func startBMC(t *testing.T) string {
	t.Helper()
	program, err := lab.Unpacked(t.Context(), "openipmi")
	if err != nil {
		need(t, "%v", err)
	}
	libs, err := lab.Unpacked(t.Context(), "libopenipmi0")
	if err != nil {
		need(t, "%v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	_ = l.Close()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	lan := write("lanprogram", lanProgram, 0o755)
	conf := write("lan.conf", fmt.Sprintf("name \"m1\"\nset_working_mc 0x20\nstartlan 1\n  lan_config_program \"%s eth0\"\nendlan\nserial 15 127.0.0.1 %d codec VM\n", lan, at.Port()), 0o600)
	emu := write("m1.emu", "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n", 0o600)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(program, "usr/bin/ipmi_sim"), "-c", conf, "-f", emu, "-s", dir, "-n")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(libs, "usr/lib/x86_64-linux-gnu"))
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	return fmt.Sprintf("host=127.0.0.1,port=%d", at.Port())
}

// TestMachineWithABMC: the real kernel's IPMI driver, asked by the worker, over a BMC
// that somebody else wrote.
func TestMachineWithABMC(t *testing.T) {
	kernel, base := assets(t)
	bmc := startBMC(t)
	ca := newAuthority(t, true)
	a := startAppliance(t, chain(ca.leaf(t), ca))
	g := boot(t, kernel, withInit(t, base, "../cmd/rackstrap-worker"), guestLine(a, ca.pin()),
		"-chardev", "socket,id=c,reconnect=1,"+bmc, "-device", "ipmi-bmc-extern,id=bmc,chardev=c", "-device", "isa-ipmi-kcs,bmc=bmc")
	k := waitHello(t, a, g)
	k.send(t, &workerpb.Down{Body: &workerpb.Down_Welcome{Welcome: &workerpb.Welcome{Protocol: 1, Scope: "work", Machine: "m1", Boot: "B", UnixMs: time.Now().UnixMilli()}}})
	var f hardware.Facts
	for f.BMC == nil { // a busy host makes the BMC come late
		m := k.next(t, "facts", func(m *workerpb.Up) bool { return m.GetFacts() != nil })
		if err := json.Unmarshal(m.GetFacts().GetJson(), &f); err != nil {
			t.Fatal(err)
		}
		k.ack(t, m.GetSeq())
	}
	want := hardware.BMCFact{Address: netip.MustParseAddr("10.9.0.5"), MAC: hardware.MAC{0x52, 0x54, 0, 0xbb, 0, 1}, Firmware: "9.08"}
	if *f.BMC != want {
		t.Errorf("the BMC is %+v, want %+v", *f.BMC, want)
	}
	t.Logf("facts: %+v", f)
}

func TestParseLinks(t *testing.T) {
	t.Parallel()
	attr := func(kind uint16, v string) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(v)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), v...)
		return append(b, make([]byte, (4-len(b)%4)%4)...)
	}
	link := func(attrs ...[]byte) []byte {
		body := make([]byte, 16)
		for _, a := range attrs {
			body = append(body, a...)
		}
		b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		b = binary.NativeEndian.AppendUint16(b, 16)
		return append(append(b, make([]byte, 10)...), body...)
	}
	rib := append(link(attr(3, "eth0\x00"), attr(54, "\x52\x54\x00\x00\x00\x01")), link(attr(3, "lo\x00"))...)
	got := parseLinks(append(rib, link(attr(3, "ib0\x00"), attr(54, string(make([]byte, 20))))...))
	if len(got) != 1 || got["eth0"] != (hardware.MAC{0x52, 0x54, 0, 0, 0, 1}) {
		t.Errorf("links are %v", got)
	}
}

// FuzzParseLinks: the kernel is trusted, and yet nothing it could say ends the worker.
func FuzzParseLinks(f *testing.F) {
	f.Add([]byte("\x20\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, rib []byte) {
		for name, mac := range parseLinks(rib) {
			if name == "" || mac.IsZero() {
				t.Errorf("%q has %v", name, mac)
			}
		}
	})
}
