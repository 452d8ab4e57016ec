package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestErases(t *testing.T) {
	t.Parallel()
	small := hardware.DiskFact{Path: "/dev/nvme0n1", Bytes: 480e9, Serial: "N1"}
	large := hardware.DiskFact{Path: "/dev/sda", Bytes: 8e12, Serial: "A", WWN: "0x5000"}
	twin := hardware.DiskFact{Path: "/dev/sdb", Bytes: 8e12, Serial: "B"}
	stick := hardware.DiskFact{Path: "/dev/sdc", Bytes: 16e9, Removable: true}
	locked := hardware.DiskFact{Path: "/dev/sdd", Bytes: 16e9, ReadOnly: true}
	ref := func(d hardware.DiskFact) hardware.DiskRef { return hardware.DiskRef{Path: d.Path, Serial: d.Serial} }
	wiped := &hardware.Wiped{At: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), Workflow: "release-x", Disks: []hardware.WipedDisk{{Path: small.Path, Serial: "N1"}}}
	for _, tt := range []struct {
		name  string
		disks []hardware.DiskFact // nil: no facts
		st    hardware.Status
		acts  []string // kind and disk
		want  []string // path, or why, and what it holds
	}{
		{"no facts", nil, hardware.Status{}, []string{"disk.wipe smallest"}, []string{"never there/unknown"}},
		{"nothing is written", []hardware.DiskFact{small}, hardware.Status{}, []string{"reboot "}, nil},
		{"the only disk", []hardware.DiskFact{stick, small}, hardware.Status{}, []string{"disk.wipe ", "image.write "}, []string{"/dev/nvme0n1/unknown"}},
		{"several and none is named", []hardware.DiskFact{small, large}, hardware.Status{}, []string{"image.write "}, []string{"it has 2 fixed disks (/dev/nvme0n1 480.0 GB, /dev/sda 8000.0 GB), and none is chosen/unknown"}},
		{"by size", []hardware.DiskFact{small, large}, hardware.Status{Wiped: wiped}, []string{"disk.wipe smallest", "image.write largest"}, []string{"/dev/nvme0n1/nothing", "/dev/sda/unknown"}},
		{"a size that two have", []hardware.DiskFact{small, large, twin}, hardware.Status{}, []string{"image.write largest"}, []string{"largest is not one disk: /dev/sdb and /dev/sda have the same size, and the worker does not guess/unknown"}},
		{"by serial and by WWN", []hardware.DiskFact{small, large, twin}, hardware.Status{}, []string{"image.write serial=B", "disk.wipe serial=0x5000"}, []string{"/dev/sdb/unknown", "/dev/sda/unknown"}},
		{"by path, a stick", []hardware.DiskFact{small, stick}, hardware.Status{}, []string{"image.write /dev/sdc"}, []string{"/dev/sdc/unknown"}},
		{"by path, read-only", []hardware.DiskFact{small, locked}, hardware.Status{}, []string{"image.write /dev/sdd"}, []string{`"/dev/sdd" is none of its disks that can be written (/dev/nvme0n1 480.0 GB)/unknown`}},
		{"all, and one of them again", []hardware.DiskFact{small, large, stick, locked}, hardware.Status{}, []string{"disk.wipe all", "image.write smallest"}, []string{"/dev/nvme0n1/unknown", "/dev/sda/unknown"}},
		{"written after a wipe", []hardware.DiskFact{small}, hardware.Status{Dirty: []hardware.DiskRef{ref(small)}}, []string{"image.write "}, []string{"/dev/nvme0n1/data"}},
		{"a system", []hardware.DiskFact{small}, hardware.Status{State: hardware.StateProvisioned, Installed: true, Install: &hardware.InstallRef{Workflow: "install-m1", Disks: []hardware.DiskRef{ref(small)}}, Dirty: []hardware.DiskRef{ref(small)}}, []string{"image.write "}, []string{"/dev/nvme0n1/data"}},
		{"a system of somebody else", []hardware.DiskFact{small}, hardware.Status{State: hardware.StateProvisioned}, []string{"image.write "}, []string{"/dev/nvme0n1/data"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &hardware.Hardware{Status: tt.st}
			if tt.disks != nil {
				h.Facts = &hardware.Facts{Disks: tt.disks}
			}
			w := &Workflow{}
			for _, a := range tt.acts {
				kind, disk, _ := strings.Cut(a, " ")
				with, err := json.Marshal(map[string]string{"disk": disk})
				if err != nil {
					t.Fatal(err)
				}
				if kind == "reboot" {
					with = nil
				}
				w.Status.Actions = append(w.Status.Actions, Action{Kind: Kind(kind), With: with})
			}
			var got []string
			for _, e := range Erases(h, w) {
				what := e.Why
				if e.Disk != nil {
					what = e.Disk.Path
				}
				if e.Detail == "" || e.Holds == "" || (e.Disk == nil) == (e.Why == "") {
					t.Errorf("%+v is not whole", e)
				}
				got = append(got, fmt.Sprintf("%s/%s", what, e.Holds))
			}
			if len(got) == 1 && len(tt.want) == 1 && tt.disks == nil && strings.HasSuffix(got[0], tt.want[0]) {
				return
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q\nwanted %q", got, tt.want)
			}
		})
	}
}
