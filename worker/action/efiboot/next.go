package efiboot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// firstNumber is where a free number for a new option is looked for: far above
// those that firmware and installers hand out, counting up from 0.
const firstNumber = 0x2a00

// SetNext makes the firmware boot o at the next start and only then. The option
// takes the place of one with the same description, so that there is never more
// than one. It returns the name of its variable.
func (v Variables) SetNext(o Option) (string, error) {
	data, err := o.Encode()
	if err != nil {
		return "", err
	}
	options, err := v.options()
	if err != nil {
		return "", err
	}
	number, err := choose(options, v.order(), o.Description)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("Boot%04X", number)
	// What is right already is not written: flash wears out.
	if old, ok := options[number]; !ok || !bytes.Equal(old, data) {
		if err := v.write(name, data); err != nil {
			return "", err
		}
	}
	return name, v.write("BootNext", binary.LittleEndian.AppendUint16(nil, number))
}

// options returns the bytes of every load option by its number; nil for one that
// cannot be read.
func (v Variables) options() (map[uint16][]byte, error) {
	entries, err := os.ReadDir(string(v))
	if err != nil {
		return nil, err
	}
	out := map[uint16][]byte{}
	for _, e := range entries {
		if n, ok := optionNumber(e.Name()); ok {
			out[n], _ = v.read("Boot" + e.Name()[4:8])
		}
	}
	return out, nil
}

// optionNumber reads the number in the name of a file Boot####-<vendor>.
func optionNumber(file string) (uint16, bool) {
	name, ok := strings.CutSuffix(file, global)
	digits, is := strings.CutPrefix(name, "Boot")
	if !ok || !is || len(digits) != 4 || strings.ContainsAny(digits, "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 16)
	return uint16(n), err == nil
}

// order is BootOrder. Without one there is nothing that a new number could hit.
func (v Variables) order() []uint16 {
	b, err := v.read("BootOrder")
	if err != nil {
		return nil
	}
	out := make([]uint16, len(b)/2)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return out
}

// choose returns the lowest number of an option with this description, else the
// first that is free. A number in BootOrder is not free even if it has no option:
// a new one there would be part of the order.
func choose(options map[uint16][]byte, order []uint16, description string) (uint16, error) {
	reuse := -1
	for n, b := range options {
		if o, err := Decode(b); err == nil && o.Description == description && (reuse < 0 || int(n) < reuse) {
			reuse = int(n)
		}
	}
	if reuse >= 0 {
		return uint16(reuse), nil
	}
	taken := map[uint16]bool{}
	for _, n := range order {
		taken[n] = true
	}
	for n := firstNumber; n <= math.MaxUint16; n++ {
		if _, ok := options[uint16(n)]; !ok && !taken[uint16(n)] {
			return uint16(n), nil
		}
	}
	return 0, errors.New("no number for a boot option is free (delete old ones with efibootmgr)")
}
