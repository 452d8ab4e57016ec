package probe

import (
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// answers is a BMC that knows these requests and refuses all others.
func answers(known map[string]string) Ask {
	return func(netfn, cmd byte, data ...byte) ([]byte, error) {
		a, ok := known[string(append([]byte{netfn, cmd}, data...))]
		if !ok {
			return nil, errors.New("completion code 0xc1")
		}
		return []byte(a), nil
	}
}

const deviceID = "\x20\x81\x01\x06\x02\xbf\xa2\x02\x00\x00\x01"

func TestBMC(t *testing.T) {
	t.Parallel()
	const id, channel, config = "\x06\x01", "\x06\x42", "\x0c\x02"
	full := map[string]string{
		id: deviceID, channel + "\x02": "\x02\x04\x01", channel + "\x01": "\x01\x01\x01",
		config + "\x02\x03\x00\x00": "\x11\x0a\x09\x00\x05", config + "\x02\x05\x00\x00": "\x11\x52\x54\x00\xbb\x00\x01", config + "\x02\x14\x00\x00": "\x11\x2a\x81",
	}
	mac := hardware.MAC{0x52, 0x54, 0, 0xbb, 0, 1}
	without := func(keys ...string) map[string]string {
		out := map[string]string{}
		for k, v := range full {
			if !slices.Contains(keys, k) {
				out[k] = v
			}
		}
		return out
	}
	two := without()
	two[channel+"\x01"] = "\x01\x04\x01"
	two[config+"\x01\x03\x00\x00"], two[config+"\x01\x05\x00\x00"] = "\x11\x00\x00\x00\x00", "\x11\x52\x54\x00\xbb\x00\x09"
	first := map[string]string{id: deviceID, config + "\x01\x03\x00\x00": "\x11\x0a\x09\x00\x06"}
	for _, tt := range []struct {
		name  string
		known map[string]string
		want  *hardware.BMCFact
	}{
		{"on channel 2, in a VLAN", full, &hardware.BMCFact{Address: netip.MustParseAddr("10.9.0.5"), MAC: mac, VLAN: 298, Firmware: "1.06"}},
		{"of two ports that with an address", two, &hardware.BMCFact{Address: netip.MustParseAddr("10.9.0.5"), MAC: mac, VLAN: 298, Firmware: "1.06"}},
		{"no channels named", first, &hardware.BMCFact{Address: netip.MustParseAddr("10.9.0.6"), Firmware: "1.06"}},
		{"no network", map[string]string{id: deviceID}, &hardware.BMCFact{Firmware: "1.06"}},
		{"cut short", map[string]string{id: "\x20", channel + "\x01": "\x01", config + "\x01\x03\x00\x00": "\x11\x0a"}, &hardware.BMCFact{}},
		{"dead", without(id), nil},
	} {
		got, err := BMC(answers(tt.known))
		if !reflect.DeepEqual(got, tt.want) || (err != nil) != (tt.want == nil) {
			t.Errorf("%s: got %+v, %v", tt.name, got, err)
		}
	}
}

// FuzzBMC: whatever a BMC answers becomes facts that can be shown.
func FuzzBMC(f *testing.F) {
	f.Add([]byte(deviceID))
	f.Add([]byte("\x01\x04\x01\x11\x0a\x09\x00\x05\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		b, err := BMC(func(_, _ byte, data ...byte) ([]byte, error) {
			if len(stream) == 0 {
				return nil, errors.New("nothing more")
			}
			n := min(len(stream), int(stream[0]%16)+1)
			a := stream[1:n]
			stream = stream[n:]
			return a, nil
		})
		if err != nil {
			return
		}
		if b.VLAN < 0 || b.VLAN > 4095 || (b.Address.IsValid() && (b.Address.IsUnspecified() || b.Address.IsMulticast())) || len(b.Firmware) > 6 {
			t.Errorf("facts are %+v", b)
		}
	})
}
