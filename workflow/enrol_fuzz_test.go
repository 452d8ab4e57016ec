package workflow

import (
	"encoding/json"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// FuzzEnrolFacts: whatever a machine says of itself makes a record that can be kept,
// under a name that nobody would have chosen.
func FuzzEnrolFacts(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"serial":"CZJ1234"}`, `{"serial":"../../etc/passwd1"}`, `{"serial":"<b>1</b>","vendor":"\u001b[2J"}`, `{"serial":"-1-","arch":"vax"}`,
		`{"serial":"K1234\u212a","nics":[{"mac":"ff:ff:ff:ff:ff:ff"},{}],"disks":[{"bytes":18446744073709551615}]}`,
	} {
		f.Add([]byte(s))
	}
	mac := hardware.MAC{2, 0, 0, 0, 0, 1}
	f.Fuzz(func(t *testing.T, b []byte) {
		var facts hardware.Facts
		if json.Unmarshal(b, &facts) != nil {
			return
		}
		facts.Cap()
		names := enrolNames(mac, &facts)
		for _, name := range names {
			h := hardware.Hardware{
				Meta: hardware.Meta{Name: name},
				Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: mac}}, Arch: enrolArch(&facts, hardware.FirmwareBIOS)},
			}
			if err := h.Validate(); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if names[len(names)-1] != "discovered-02-00-00-00-00-01" || (len(names) > 1 && names[0][:3] != "sn-") {
			t.Errorf("names %q", names)
		}
		if d := enrolDetail(mac, "lan", &facts); d != hardware.PlainText(d, 512) {
			t.Errorf("detail %q", d)
		}
		h := &hardware.Hardware{Status: hardware.Status{Discovered: hardware.Facts{}.Collected}, Facts: &facts}
		(&Snapshot{Hardware: h}).made()
	})
}
