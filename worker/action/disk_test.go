package action

import (
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/workflow"
)

func TestSelectDisk(t *testing.T) {
	t.Parallel()
	const g = 1 << 30
	sda := fakeDisk{"sda", 10 * g, map[string]string{"device/vpd_pg80": "\x00\x80\x00\x08 SER-A  "}}
	sdb := fakeDisk{"sdb", 10 * g, map[string]string{"device/vpd_pg80": "\x00\x80\x00\x08SER-B"}}
	nvme := fakeDisk{"nvme0n1", 20 * g, map[string]string{"device/serial": "NV-1   \n", "wwid": "eui.0025385"}}
	noise := []fakeDisk{
		{"loop0", g, nil},
		{"zram0", g, nil},
		{"dm-0", g, nil},
		{"md127", g, nil},
		{"sr0", g, nil},
		{"sdx", g, map[string]string{"removable": "1"}},
		{"sdy", g, map[string]string{"ro": "1"}},
		{"sdz", 0, nil},
		{"nvme0c0n1", g, map[string]string{"hidden": "1"}},
		{"mmcblk0boot0", g, map[string]string{"ro": "1"}},
	}
	for _, tt := range []struct {
		name  string
		disks []fakeDisk
		sel   workflow.Disk
		want  string
		wrong []string
	}{
		{"the only one", []fakeDisk{sda}, "", "sda", nil},
		{"smallest", []fakeDisk{nvme, sda}, "smallest", "sda", nil},
		{"largest", []fakeDisk{nvme, sda}, "largest", "nvme0n1", nil},
		{"largest is unique though the smallest is not", []fakeDisk{nvme, sda, sdb}, "largest", "nvme0n1", nil},
		{"serial of SCSI", []fakeDisk{sda, sdb}, "serial=SER-A", "sda", nil},
		{"serial of NVMe", []fakeDisk{sda, nvme}, "serial=NV-1", "nvme0n1", nil},
		{"world wide name", []fakeDisk{sda, nvme}, "serial=eui.0025385", "nvme0n1", nil},
		{"path", []fakeDisk{sda, sdb}, "DEV/sdb", "sdb", nil},
		{"loop by path only", []fakeDisk{sda}, "DEV/loop0", "loop0", nil},
		{"several, none named", []fakeDisk{sda, nvme}, "", "", []string{"sda", "nvme0n1", "set disk:"}},
		{"tie", []fakeDisk{sda, sdb, nvme}, "smallest", "", []string{"refusing to guess", "sda", "SER-A", "sdb", "SER-B"}},
		{"none", nil, "smallest", "", []string{"no disk", "sdx", "removable"}},
		{"no such serial", []fakeDisk{sda}, "serial=X", "", []string{`"X"`, "SER-A"}},
		{"no such path", []fakeDisk{sda}, "DEV/sdq", "", []string{"is not there", "sda"}},
		{"udev link", []fakeDisk{sda}, "/dev/disk/by-id/x", "", []string{"no udev", "sda"}},
		{"read-only by path", []fakeDisk{sda}, "DEV/sdy", "", []string{"read-only"}},
		{"read-only boot area by path", []fakeDisk{sda}, "DEV/mmcblk0boot0", "", []string{"read-only"}},
		{"all is for wiping", []fakeDisk{sda}, "all", "", []string{"cannot be used here"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := fakeMachine(t, append(tt.disks, noise...)...)
			all, err := disks(env.Sys)
			if err != nil {
				t.Fatal(err)
			}
			for i := range all { // the fake /dev is elsewhere
				all[i].path = strings.Replace(all[i].path, env.Sys.Dev, "/dev", 1)
			}
			d, err := choose(all, workflow.Disk(strings.Replace(string(tt.sel), "DEV", "/dev", 1)))
			if err == nil && d.name != tt.want {
				t.Errorf("chose %s, want %s", d, tt.want)
			}
			if err != nil && (tt.want != "" || !IsPermanent(err)) {
				t.Errorf("error %v", err)
			}
			for _, w := range tt.wrong {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("error %v does not say %q", err, w)
				}
			}
			if err != nil && strings.Contains(err.Error(), "loop0") {
				t.Errorf("noise in %v", err)
			}
		})
	}
}

func TestHolders(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t, fakeDisk{"sda", mib, map[string]string{"sda2/holders/dm-0": ""}})
	_, err := act(t, t.Context(), env, workflow.KindDiskWipe, &workflow.DiskWipe{})
	if err == nil || !strings.Contains(err.Error(), "in use by dm-0") || !IsPermanent(err) {
		t.Errorf("got %v", err)
	}
}

func TestSignaturesAndMerge(t *testing.T) {
	t.Parallel()
	const size = 100 * mib
	got := merge(append(signatures(extent{0, size}), signatures(extent{3 * mib, 10 * mib})...), size, 512)
	want := []extent{{0, 7 * mib}, {12 * mib, mib}, {64 * mib, mib}, {99 * mib, mib}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	for _, tiny := range []int64{512, 1024, mib, 5 * mib} {
		for _, e := range merge(signatures(extent{0, tiny}), tiny, 512) {
			if e.offset != 0 || e.length != tiny && tiny <= 5*mib && e.length < min(tiny, 4*mib) {
				t.Errorf("disk of %d: %v", tiny, e)
			}
		}
	}
	odd := merge([]extent{{1000, 10}, {4095, 2}}, 1<<20, 4096)
	if len(odd) != 1 || odd[0] != (extent{0, 8192}) {
		t.Errorf("rounded to sectors: %v", odd)
	}
}

func TestRunnersMatchKinds(t *testing.T) {
	t.Parallel()
	runners := Runners()
	for _, k := range workflow.Kinds() {
		if runners[k] == nil {
			t.Errorf("kind %s has no runner", k)
		}
		_, err := runners[k].Run(t.Context(), fakeMachine(t), []byte(`{"unknown": 1}`))
		if err == nil || !IsPermanent(err) {
			t.Errorf("%s with an unknown option: %v", k, err)
		}
	}
	if len(runners) != len(workflow.Kinds()) {
		t.Error("a runner without a kind")
	}
}

func TestPower(t *testing.T) {
	t.Parallel()
	env := fakeMachine(t)
	if r := mustAct(t, env, workflow.KindReboot, &workflow.Reboot{}); r.After != Reboot {
		t.Errorf("%+v", r)
	}
	if r := mustAct(t, env, workflow.KindPowerOff, &workflow.PowerOff{}); r.After != PowerOff {
		t.Errorf("%+v", r)
	}
}
