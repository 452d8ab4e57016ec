package lab

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
)

var testMAC = net.HardwareAddr{0x52, 0x54, 0, 0xab, 0xcd, 0xef}

// option is an EFI_LOAD_OPTION with the nodes of a device path, in hex.
func option(description string, nodes ...string) []byte {
	path := append(unhex(strings.Join(nodes, "")), pathEnd, 0xff, 4, 0)
	b := binary.LittleEndian.AppendUint16([]byte{1, 0, 0, 0}, uint16(len(path)))
	return append(append(b, utf16z(description)...), path...)
}

// Nodes of device paths, as OVMF writes them.
const (
	pciRoot = "02010c00d041030a00000000"
	pci     = "010106000004"
	macNode = "030b2500525400abcdef" + "0000000000000000000000000000000000000000000000000000" + "01"
	ipv4    = "030c1b00" + "0000000000000000000000000000000000000000000000"
	uri     = "03180400"
	hd      = "04012a00010000000008000000000000000000000000000000000000000000000000000000000000" + "0202"
	fvFile  = "04061400" + "00000000000000000000000000000000"
)

// storeOf has the variables given, behind one of another owner and a deleted one.
func storeOf(vars ...[]byte) []byte {
	store := emptyStore()
	other := variable("BootNext", []byte{9, 9})
	other[44]++ // another vendor
	gone := variable("BootNext", []byte{8, 0})
	gone[2] &= variableDeleted
	at := volumeHeaderSize + storeHeaderSize
	for _, v := range append([][]byte{other, gone}, vars...) {
		at += copy(store[at:], v)
	}
	return store
}

// valid are the global variables by name; t fails where one is there twice.
func valid(t *testing.T, store []byte) map[string]string {
	t.Helper()
	vars, _, _, err := readVariables(store)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, v := range vars {
		if _, ok := out[v.name]; ok {
			t.Errorf("%s is there twice", v.name)
		}
		out[v.name] = string(v.data)
	}
	return out
}

func TestBootNext(t *testing.T) {
	t.Parallel()
	shell := variable("Boot0000", option("EFI Internal Shell", fvFile))
	pxe6 := variable("Boot0001", option("UEFI PXEv6", pciRoot, pci, macNode, "030d0400"))
	web := variable("Boot0002", option("UEFI HTTPv4", pciRoot, pci, macNode, ipv4, uri))
	pxe := variable("Boot0003", option("UEFI PXEv4", pciRoot, pci, macNode, ipv4))
	disk := variable("Boot000A", option("debian", hd))
	virtio := variable("Boot000B", option("UEFI Misc Device", pciRoot, pci))
	order := func(n ...byte) []byte {
		var b []byte
		for _, x := range n {
			b = append(b, x, 0)
		}
		return variable("BootOrder", b)
	}
	for name, tc := range map[string]struct {
		store []byte
		from  BootFrom
		want  string // BootNext
		made  string // an option that was not there
	}{
		"network":              {storeOf(shell, pxe6, web, pxe, disk, order(0, 1, 2, 10, 3)), FromNetwork, "\x03\x00", ""},
		"disk":                 {storeOf(shell, pxe6, web, pxe, disk, virtio, order(0, 1, 2, 3, 10, 11)), FromDisk, "\x0a\x00", ""},
		"the order counts":     {storeOf(disk, virtio, order(11, 10)), FromDisk, "\x0b\x00", ""},
		"network by HTTP":      {storeOf(shell, pxe6, web, pxe, disk, order(0, 1, 3, 2, 10)), fromHTTP, "\x02\x00", ""},
		"HTTP, never ran":      {storeOf(pxe, order(3)), fromHTTP, "\x00\x00", "Boot0000"},
		"again":                {storeOf(pxe, disk, order(3, 10), variable("BootNext", []byte{3, 0})), FromDisk, "\x0a\x00", ""},
		"network, never ran":   {storeOf(), FromNetwork, "\x00\x00", "Boot0000"},
		"network, disk only":   {storeOf(shell, disk, order(0, 10)), FromNetwork, "\x01\x00", "Boot0001"},
		"named and not there":  {storeOf(pxe, order(7, 3)), FromNetwork, "\x03\x00", ""},
		"there, not in order":  {storeOf(pxe, disk, order(3)), FromDisk, "", ""},
		"disk, only network":   {storeOf(shell, pxe, order(0, 3)), FromDisk, "", ""},
		"disk, broken options": {storeOf(variable("Boot0000", []byte{1, 2}), variable("Boot0001", option("x", "0101ff00")), order(0, 1)), FromDisk, "", ""},
	} {
		before := bytes.Clone(tc.store)
		got, err := bootNext(tc.store, testMAC, tc.from)
		if !bytes.Equal(before, tc.store) {
			t.Errorf("%s: the given store was changed", name)
		}
		if tc.want == "" {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(got) != len(tc.store) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
			continue
		}
		want := valid(t, tc.store)
		want["BootNext"] = tc.want
		if tc.made != "" {
			want[tc.made] = string(netOption(testMAC, tc.from))
		}
		if have := valid(t, got); !maps.Equal(have, want) {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
}

func TestBootNextRefuses(t *testing.T) {
	t.Parallel()
	full := storeOf(variable("x", make([]byte, 3700)))
	long := storeOf(variable("x", nil))
	binary.LittleEndian.PutUint32(long[len(long)-4096+volumeHeaderSize+storeHeaderSize+40:], 1<<30)
	for name, tc := range map[string]struct {
		store []byte
		want  string
	}{
		"another file": {make([]byte, 8192), "not a variable store"},
		"nothing":      {nil, "not a variable store"},
		"cut short":    {storeOf()[:2000], "cut short"},
		"full":         {full, "is full"},
		"damaged":      {long, "is damaged at 0x64"},
	} {
		if _, err := bootNext(tc.store, testMAC, FromNetwork); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// FuzzBootNext: whatever is in the store, the other variables stay, and BootNext is
// there once.
func FuzzBootNext(f *testing.F) {
	seeds := [][]byte{
		storeOf(), storeOf(variable("Boot0000", option("disk", hd)), variable("BootOrder", []byte{0, 0}), variable("BootNext", []byte{3, 0})),
		emptyStore(), nil,
	}
	for _, s := range seeds {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, store []byte, disk bool) {
		from := FromNetwork
		if disk {
			from = FromDisk
		}
		before, _, _, _ := readVariables(store)
		got, err := bootNext(store, testMAC, from)
		if err != nil {
			return
		}
		after, _, _, err := readVariables(got)
		if err != nil {
			t.Fatal(err)
		}
		same := func(v efiVariable) bool { return v.name != "BootNext" }
		n := 0
		for _, v := range after {
			if !same(v) {
				n++
			}
		}
		kept := slices.Collect(filter(before, same))
		if now := slices.Collect(filter(after, same)); n != 1 || len(now) < len(kept) {
			t.Errorf("%d BootNext, %d other variables of %d", n, len(now), len(kept))
		}
	})
}

func filter(vars []efiVariable, keep func(efiVariable) bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range vars {
			if keep(v) && !yield(v.name) {
				return
			}
		}
	}
}
