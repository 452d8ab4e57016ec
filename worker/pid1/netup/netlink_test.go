package netup

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRequestsGolden compares the messages with those that ip(8) of iproute2 sends.
func TestRequestsGolden(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the golden file is little-endian")
	}
	own := netip.MustParsePrefix("10.0.0.9/24")
	far := Route{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("192.0.2.1")}
	var out string
	for _, r := range []struct {
		name string
		r    *request
	}{
		{"link up", linkUp(3, 0)},
		{"link up, mtu 9000", linkUp(3, 9000)},
		{"address add", address(3, own, true)},
		{"address delete", address(3, own, false)},
		{"default route", route(3, Route{far.To, netip.MustParseAddr("10.0.0.1")}, own)},
		{"default route, gateway elsewhere", route(3, far, own)},
		{"route on the link", route(3, Route{To: netip.MustParsePrefix("169.254.0.0/16")}, own)},
	} {
		out += r.name + "\n" + hex.Dump(r.r.bytes())
	}
	golden(t, "requests.txt", []byte(out))
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	answer := func(kind uint16, code int32) []byte {
		b := binary.NativeEndian.AppendUint32(nil, 20)
		b = binary.NativeEndian.AppendUint16(b, kind)
		b = append(b, make([]byte, 10)...)
		return binary.NativeEndian.AppendUint32(b, uint32(code))
	}
	if err := verdict(answer(unix.NLMSG_ERROR, 0)); err != nil {
		t.Errorf("success is %v", err)
	}
	if err := verdict(answer(unix.NLMSG_ERROR, -int32(unix.EEXIST))); !errors.Is(err, unix.EEXIST) {
		t.Errorf("EEXIST is %v", err)
	}
	for _, b := range [][]byte{nil, answer(unix.NLMSG_DONE, 0), answer(unix.NLMSG_ERROR, 0)[:19]} {
		if verdict(b) == nil {
			t.Errorf("%x is a success", b)
		}
	}
}

// TestKernelTakesRequests uses a network namespace of its own, which goes with its
// thread.
func TestKernelTakesRequests(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal("must run as root")
		}
		t.Skip("a network namespace needs root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Never unlocked: the thread ends with the goroutine, and the namespace with it.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("unshare: %v", err)
			return
		}
		if err := Loopback(); err != nil {
			t.Errorf("loopback: %v", err)
		}
		lo, err := net.InterfaceByName("lo")
		if err != nil {
			t.Error(err)
			return
		}
		if addrs, _ := lo.Addrs(); len(addrs) == 0 || addrs[0].String() != "127.0.0.1/8" {
			t.Errorf("lo has %v", addrs)
		}
		own := netip.MustParsePrefix("10.0.0.9/24")
		for _, r := range []*request{
			address(lo.Index, own, true), address(lo.Index, own, true),
			route(lo.Index, Route{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.0.0.1")}, own),
			route(lo.Index, Route{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParseAddr("192.0.2.1")}, own),
			route(lo.Index, Route{To: netip.MustParsePrefix("169.254.0.0/16")}, own),
			linkUp(lo.Index, 1400), address(lo.Index, own, false),
		} {
			if err := do(r); err != nil {
				t.Errorf("%x: %v", r.bytes(), err)
			}
		}
		if lo, err = net.InterfaceByName("lo"); err != nil || lo.MTU != 1400 {
			t.Errorf("lo is %+v, %v", lo, err)
		}
	}()
	<-done
}
