package hardware

import (
	"strings"
	"testing"
)

// A machine may send anything for its layouts; what is kept is bounded, plain, and told.
func TestCapLayouts(t *testing.T) {
	t.Parallel()
	f := Facts{}
	for range 20 {
		l := &Layout{Table: "bsd", Problem: strings.Repeat("x", 900), Content: "evil\x1b[2J", Label: "a\nb", More: -4}
		for n := range 2000 {
			l.Partitions = append(l.Partitions, PartitionFact{Number: n, Type: "\x1b]0;", Name: strings.Repeat("ü", 200), Content: "reiserfs", Label: "\x00"})
		}
		f.Disks = append(f.Disks, DiskFact{Path: "/dev/sda", Layout: l})
	}
	f.Disks = append(f.Disks, DiskFact{Path: "/dev/sdz"})
	f.Cap()
	all := 0
	for _, d := range f.Disks[:20] {
		l := d.Layout
		all += len(l.Partitions)
		if l.Table != TableUnknown || l.Content != "" || l.Label != "a b" || len(l.Problem) != 128 || len(l.Partitions)+l.More != 2000 || len(l.Partitions) > MaxPartitions {
			t.Errorf("%s %q %q, %d partitions and %d more", l.Table, l.Content, l.Label, len(l.Partitions), l.More)
		}
		for _, p := range l.Partitions {
			if p.Content != "" || len(p.Name) > 128 || p.Type != " ]0;" || p.Label != " " {
				t.Fatalf("partition is %+v", p)
			}
		}
	}
	if all != maxFactPartitions || f.Disks[20].Layout != nil {
		t.Errorf("%d partitions, and a layout of nothing: %+v", all, f.Disks[20].Layout)
	}
	before := f.Disks[0].Layout
	if c := before.Clone(); &c.Partitions[0] == &before.Partitions[0] {
		t.Error("a clone shares partitions")
	}
}

func TestLayoutInWords(t *testing.T) {
	t.Parallel()
	many := &Layout{Table: TableGPT, Partitions: make([]PartitionFact, 10), More: 3}
	for _, tt := range []struct {
		path string
		l    *Layout
		want string
	}{
		{"/dev/sda", nil, ""},
		{"/dev/sda", &Layout{Table: TableNone}, "no partition table"},
		{"/dev/sda", &Layout{Table: TableNone, Content: ContentXFS, Label: "da\"ta"}, `no partitions, xfs "da\"ta"`},
		{"/dev/sda", &Layout{Table: TableDOS}, "MBR"},
		{"/dev/sda", &Layout{Table: TableUnknown, Problem: "the disk does not answer"}, "not known (the disk does not answer)"},
		{
			"/dev/nvme0n1", &Layout{Table: TableGPT, Partitions: []PartitionFact{
				{Number: 1, Type: "EFI system", Content: ContentVFAT, Label: "EFI"}, {Number: 2, Content: ContentExt4, Name: "root"}, {Number: 3, Type: "ZFS"}, {Number: 4},
			}}, `nvme0n1p1 vfat "EFI", nvme0n1p2 ext4 "root", nvme0n1p3 ZFS, nvme0n1p4 of unknown content`,
		},
		{"/dev/sda", many, strings.Repeat("sda0 of unknown content, ", 8) + "and 5 more"},
	} {
		if got := (DiskFact{Path: tt.path, Layout: tt.l}).Holds(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	for disk, want := range map[string]string{"/dev/sda": "sda1", "/dev/nvme0n1": "nvme0n1p1", "/dev/cciss/c0d0": "c0d0p1", "": "."} {
		if got := PartitionName(disk, 1); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", disk, got)
		}
	}
}
