package lab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"unicode/utf16"
)

// More of edk2's VariableFormat.h and of the UEFI specification, section 10.3.
const (
	variableHeaderSize = 60   // of AUTHENTICATED_VARIABLE_HEADER
	variableDeleted    = 0xfd // and'ed to the state
	variableLeaving    = 0x3e // added, and about to be replaced
	pathMessaging      = 3    // device path node types
	pathMedia          = 4
	pathEnd            = 0x7f
)

// efiVariable is a variable in a store that is in use.
type efiVariable struct {
	at   int // of its header
	name string
	data []byte
}

// readVariables lists the global variables that are valid, oldest first, where the
// free space begins, and where it ends.
func readVariables(store []byte) (vars []efiVariable, free, end int, err error) {
	free = volumeHeaderSize + storeHeaderSize
	if len(store) < free || hex.EncodeToString(store[volumeHeaderSize:volumeHeaderSize+16]) != authVariableGUID {
		return nil, 0, 0, errors.New("not a variable store of OVMF")
	}
	end = volumeHeaderSize + int(binary.LittleEndian.Uint32(store[volumeHeaderSize+16:]))
	if end > len(store) {
		return nil, 0, 0, errors.New("the variable store of OVMF is cut short")
	}
	for free+variableHeaderSize <= end && binary.LittleEndian.Uint16(store[free:]) == variableStart {
		h := store[free:]
		nameSize, dataSize := int(binary.LittleEndian.Uint32(h[36:])), int(binary.LittleEndian.Uint32(h[40:]))
		next := (free + variableHeaderSize + nameSize + dataSize + 3) &^ 3
		if nameSize > end || dataSize > end || next > end {
			return nil, 0, 0, fmt.Errorf("the variable store of OVMF is damaged at %#x", free)
		}
		if state := h[2]; (state == variableAdded || state == variableLeaving) && bytes.Equal(h[44:60], unhex(globalVariable)) {
			text := h[variableHeaderSize : variableHeaderSize+nameSize]
			vars = append(vars, efiVariable{free, fromUTF16z(text), h[variableHeaderSize+nameSize:][:dataSize]})
		}
		free = next
	}
	return vars, free, end, nil
}

func fromUTF16z(b []byte) string {
	var u []uint16
	for ; len(b) >= 2 && (b[0] != 0 || b[1] != 0); b = b[2:] {
		u = append(u, binary.LittleEndian.Uint16(b))
	}
	return string(utf16.Decode(u))
}

// varStore is a variable store and what it holds.
type varStore struct {
	store     []byte
	vars      []efiVariable
	data      map[string][]byte // by name
	free, end int
}

func readStore(store []byte) (*varStore, error) {
	v := &varStore{store: store, data: map[string][]byte{}}
	var err error
	v.vars, v.free, v.end, err = readVariables(store)
	for _, e := range v.vars {
		v.data[e.name] = e.data
	}
	return v, err
}

// with returns a copy of the store without the variables called name, and with what
// is added.
func (v *varStore) with(name string, added ...[]byte) ([]byte, error) {
	all := bytes.Join(added, nil)
	if v.free+len(all) > v.end {
		return nil, errors.New("the variable store of OVMF is full")
	}
	out := bytes.Clone(v.store)
	for _, e := range v.vars {
		if e.name == name {
			out[e.at+2] &= variableDeleted
		}
	}
	copy(out[v.free:], all)
	return out, nil
}

// freeOption is the first number that no boot option has.
func (v *varStore) freeOption() (number uint16) {
	for ; v.data[optionName(number)] != nil; number++ {
	}
	return number
}

func optionName(number uint16) string { return fmt.Sprintf("Boot%04X", number) }

// bootNext returns a copy of a variable store in which BootNext names an option for
// PXE or HTTP over IPv4, or the first disk of the boot order. OVMF obeys it once.
func bootNext(store []byte, mac net.HardwareAddr, from BootFrom) ([]byte, error) {
	vars, err := readStore(store)
	if err != nil {
		return nil, err
	}
	var added []byte
	number, ok := findOption(vars.data, from)
	if !ok {
		if from == FromDisk {
			return nil, fmt.Errorf("its firmware knows no disk before its first boot: %w", errors.ErrUnsupported)
		}
		number = vars.freeOption()
		added = variable(optionName(number), netOption(mac, from))
	}
	return vars.with("BootNext", added, variable("BootNext", binary.LittleEndian.AppendUint16(nil, number)))
}

// findOption is the first in the boot order that boots from there.
func findOption(vars map[string][]byte, from BootFrom) (uint16, bool) {
	for pair := range slices.Chunk(vars["BootOrder"], 2) {
		if len(pair) < 2 {
			break
		}
		n := binary.LittleEndian.Uint16(pair)
		if bootsFrom(vars[optionName(n)]) == from {
			return n, true
		}
	}
	return 0, false
}

// bootsFrom says what an EFI_LOAD_OPTION boots from: the disk, the network by PXE
// or by HTTP over IPv4, or nothing that counts here (IPv6, programs in the firmware).
func bootsFrom(option []byte) BootFrom {
	if len(option) < 6 {
		return ""
	}
	description := option[6:]
	for len(description) >= 2 && (description[0] != 0 || description[1] != 0) {
		description = description[2:]
	}
	if len(description) < 2 {
		return ""
	}
	path := description[2:]
	path = path[:min(len(path), int(binary.LittleEndian.Uint16(option[4:])))]
	has := map[[2]byte]bool{}
	for len(path) >= 4 && path[0] != pathEnd {
		n := int(binary.LittleEndian.Uint16(path[2:]))
		if n < 4 || n > len(path) {
			return ""
		}
		has[[2]byte{path[0], path[1]}] = true
		path = path[n:]
	}
	network, ipv4, uri := has[[2]byte{pathMessaging, 0x0b}], has[[2]byte{pathMessaging, 0x0c}], has[[2]byte{pathMessaging, 0x18}]
	firmware := has[[2]byte{pathMedia, 0x06}] || has[[2]byte{pathMedia, 0x07}]
	switch {
	case network && ipv4 && uri:
		return fromHTTP
	case network && ipv4:
		return FromNetwork
	case network || firmware || len(has) == 0:
		return ""
	default:
		return FromDisk
	}
}
