package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/hardware"
)

const mib = 1 << 20

// machine is a directory like the root of a machine with one disk, vda.
type machine struct {
	t    *testing.T
	disk string
	dir  string
	size int64
}

func newMachine(t *testing.T, size int64) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), size: size}
	m.disk = filepath.Join(m.dir, "dev/vda")
	if err := os.Mkdir(filepath.Dir(m.disk), 0o755); err != nil {
		t.Fatal(err)
	}
	m.blank(m.disk, size)
	return m
}

func (m *machine) blank(path string, size int64) {
	m.t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		m.t.Fatal(err)
	}
}

// sectors makes the disk one of such sectors.
func (m *machine) sectors(size string) {
	m.t.Helper()
	dir := filepath.Join(m.dir, "sys/block/vda/queue")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "logical_block_size"), []byte(size+"\n"), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) run(stdin, name string, args ...string) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// partition has sfdisk do it, by way of a device where the sectors are not those of a file.
func (m *machine) partition(sector, script string) {
	m.t.Helper()
	if sector == "512" {
		m.run(script, "sfdisk", "-q", "--no-tell-kernel", m.disk)
		return
	}
	out, err := exec.CommandContext(m.t.Context(), "losetup", "--find", "--show", "--sector-size", sector, m.disk).Output()
	if err != nil {
		m.t.Fatalf("losetup: %v", err)
	}
	loop := strings.TrimSpace(string(out))
	defer m.run("", "losetup", "--detach", loop)
	m.run(script, "sfdisk", "-q", "--no-tell-kernel", loop)
}

// make has a tool fill a part of the disk, from a place on and so long, in MiB; the last
// argument is the file it fills.
func (m *machine) make(start, size int64, name string, args ...string) {
	m.t.Helper()
	part := filepath.Join(m.t.TempDir(), "part")
	m.blank(part, size*mib)
	m.run("", name, append(args, part)...)
	f, err := os.Open(part)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, min(size, 1)*mib) // all superblocks are there
	if _, err := io.ReadFull(f, b); err != nil {
		m.t.Fatal(err)
	}
	m.put(start*mib, b)
}

func (m *machine) put(at int64, b []byte) {
	m.t.Helper()
	f, err := os.OpenFile(m.disk, os.O_WRONLY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		m.t.Fatal(err)
	}
}

// look is what the worker reports of the disk.
func (m *machine) look() *hardware.Layout {
	m.t.Helper()
	disks := []hardware.DiskFact{{Path: "/dev/vda", Bytes: uint64(m.size)}}
	NewLayouts(os.DirFS(m.dir)).Fill(m.t.Context(), disks)
	f := hardware.Facts{Disks: disks}
	f.Cap()
	return f.Disks[0].Layout
}

// lines are the layout, a line for each partition, in MiB.
func lines(l *hardware.Layout) string {
	s := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", l.Table, l.Content, l.Label, l.Problem))
	for _, p := range l.Partitions {
		s += fmt.Sprintf("\n%d at %d+%d: %s; %s; %s %s", p.Number, p.Start/mib, p.Bytes/mib, p.Type, p.Name, p.Content, p.Label)
	}
	if l.More > 0 {
		s += fmt.Sprintf("\n%d more", l.More)
	}
	return s
}

func (m *machine) says(want ...string) {
	m.t.Helper()
	if got := lines(m.look()); got != strings.Join(want, "\n") {
		m.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestLayout reads what others' tools wrote.
func TestLayout(t *testing.T) {
	lab.Require(t, "sfdisk", "mke2fs", "mkfs.xfs", "mkfs.vfat", "mkfs.btrfs", "mkfs.ntfs", "mkswap", "cryptsetup", "losetup")
	t.Parallel()
	t.Run("GPT", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, 2<<30)
		m.partition("512", `label: gpt
start=1MiB, size=1MiB, type=21686148-6449-6E6F-744E-656564454649
size=64MiB, type=U, name="EFI ü"
size=16MiB, type=L, name=old
size=16MiB, type=L
size=16MiB, type=L
size=320MiB, type=L
size=128MiB, type=L
size=16MiB, type=S
size=16MiB, type=EBD0A0A2-B9E5-4433-87C0-68B6B72699C7
size=32MiB, type=01234567-89AB-4CDE-8F01-23456789ABCD
size=16MiB, type=E6D6D379-F507-44C2-A23C-238F2A3DF928
size=16MiB, type=R
`)
		m.make(2, 64, "mkfs.vfat", "-F", "32", "-n", "ESP")
		m.make(66, 16, "mke2fs", "-q", "-t", "ext2", "-L", "two")
		m.make(82, 16, "mke2fs", "-q", "-t", "ext3", "-L", "three")
		m.make(98, 16, "mke2fs", "-q", "-t", "ext4", "-L", "root")
		m.make(114, 320, "mkfs.xfs", "-q", "-L", "data")
		m.make(434, 128, "mkfs.btrfs", "-q", "-L", "pool one")
		m.make(562, 16, "mkswap", "-q", "-L", "swap0")
		m.make(578, 16, "mkfs.ntfs", "-q", "-F", "-L", "win")
		m.make(594, 32, "cryptsetup", "luksFormat", "-q", "--type", "luks2", "--label", "vault", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file", "/proc/version")
		m.put(626*mib, volume())
		m.put(642*mib, member(4096, 8192))
		m.says("gpt",
			"1 at 1+1: BIOS boot; ;  ", "2 at 2+64: EFI system; EFI ü; vfat ESP", "3 at 66+16: Linux file system; old; ext2 two",
			"4 at 82+16: Linux file system; ; ext3 three", "5 at 98+16: Linux file system; ; ext4 root", "6 at 114+320: Linux file system; ; xfs data",
			"7 at 434+128: Linux file system; ; btrfs pool one", "8 at 562+16: Linux swap; ; swap swap0", "9 at 578+16: basic data; ; ntfs ",
			"10 at 594+32: type 01234567-89ab-4cde-8f01-23456789abcd; ; luks vault", "11 at 626+16: Linux LVM; ; lvm2 ", "12 at 642+16: Linux RAID; ; mdraid host:0",
		)
	})

	t.Run("sectors of 4096", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, 64*mib)
		m.sectors("4096")
		m.partition("4096", "label: gpt\nstart=1MiB, size=8MiB, type=U\nsize=16MiB, name=system\n")
		m.make(9, 16, "mke2fs", "-q", "-t", "ext4", "-L", "root")
		m.says("gpt", "1 at 1+8: EFI system; ;  ", "2 at 9+16: Linux file system; system; ext4 root")
	})

	t.Run("the second table of a GPT", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, 64*mib)
		m.run("label: gpt\nstart=1MiB, size=8MiB, name=a\n", "sfdisk", "-q", "--no-tell-kernel", m.disk)
		m.put(512+60, []byte{0xff})
		m.says("gpt   the first of the two partition tables is damaged", "1 at 1+8: Linux file system; a;  ")
		m.put(64*mib-512+60, []byte{0xff})
		if l := m.look(); l.Table != hardware.TableUnknown || !strings.Contains(l.Problem, "damaged") || l.Partitions != nil {
			t.Errorf("both damaged: %+v", l)
		}
	})

	t.Run("an image made for a larger disk", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, 64*mib)
		m.run("label: gpt\nstart=1MiB, size=8MiB\nsize=32MiB\n", "sfdisk", "-q", "--no-tell-kernel", m.disk)
		m.make(9, 32, "mke2fs", "-q", "-t", "ext4", "-L", "cut")
		m.size = 20 * mib
		if err := os.Truncate(m.disk, m.size); err != nil {
			t.Fatal(err)
		}
		m.says("gpt", "1 at 1+8: Linux file system; ;  ", "2 at 9+32: Linux file system; ; ext4 cut")
	})

	t.Run("MBR with logical partitions", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, 256*mib)
		m.run("label: dos\n1: start=1MiB, size=32MiB, type=c\n2: size=200MiB, type=5\n5: size=16MiB, type=83\n6: size=16MiB, type=82\n7: size=16MiB, type=12\n",
			"sfdisk", "-q", "--no-tell-kernel", m.disk)
		m.make(34, 16, "mke2fs", "-q", "-t", "ext4", "-L", "logical")
		m.says("dos", "1 at 1+32: FAT32; ;  ", "2 at 33+200: extended; ;  ", "5 at 34+16: Linux; ; ext4 logical", "6 at 51+16: Linux swap; ;  ", "7 at 68+16: type 0x12; ;  ")
	})

	t.Run("many", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, 1<<30)
		m.run("label: gpt\ntable-length: 256\n"+strings.Repeat("size=1MiB\n", 200), "sfdisk", "-q", "--no-tell-kernel", m.disk)
		if l := m.look(); len(l.Partitions) != hardware.MaxPartitions || l.More != 200-hardware.MaxPartitions {
			t.Errorf("%d partitions and %d more", len(l.Partitions), l.More)
		}
	})

	for _, tt := range []struct {
		want string
		size int64
		make []string
	}{
		{"none", 16, []string{"true"}},
		{"none ext4 all", 16, []string{"mke2fs", "-q", "-t", "ext4", "-L", "all"}},
		{"none vfat STICK", 16, []string{"mkfs.vfat", "-F", "32", "-n", "STICK"}},
		{"none vfat STICK", 8, []string{"mkfs.vfat", "-F", "12", "-n", "STICK"}},
		{"none ntfs", 16, []string{"mkfs.ntfs", "-q", "-F", "-L", "win"}},
		{"none swap", 16, []string{"mkswap", "-q", "-p", "65536"}},
		{"none luks", 4, []string{"cryptsetup", "luksFormat", "-q", "--type", "luks1", "--pbkdf-force-iterations", "1000", "--key-file", "/proc/version"}},
	} {
		t.Run("whole disk: "+tt.want, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, tt.size*mib)
			m.make(0, tt.size, tt.make[0], tt.make[1:]...)
			m.says(tt.want)
		})
	}
}

// TestMembers compares what is made by hand with blkid's opinion: their own tools need
// devices and daemons.
func TestMembers(t *testing.T) {
	lab.Require(t, "blkid", "mke2fs")
	t.Parallel()
	for name, tt := range map[string]struct {
		at   int64
		b    []byte
		want string // blkid's TYPE
		says string
	}{
		"array 1.1":  {0, member(0, 16*mib), "linux_raid_member", "none mdraid host:0"},
		"array 1.2":  {0, member(4096, 16*mib), "linux_raid_member", "none mdraid host:0"},
		"array 1.0":  {0, member(16*mib-8192, 16*mib), "linux_raid_member", "none mdraid host:0"},
		"array 0.90": {16*mib - 64<<10, oldMember(), "linux_raid_member", "none mdraid"},
		"LVM":        {0, volume(), "LVM2_member", "none lvm2"},
		// What was on another, larger disk at this place.
		"moved array": {8192, member(4096, 16*mib)[:8192], "", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, 16*mib)
			m.put(tt.at, tt.b)
			out, _ := exec.CommandContext(t.Context(), "blkid", "-p", "-o", "value", "-s", "TYPE", m.disk).Output() // fails where it finds nothing
			if got := strings.TrimSpace(string(out)); got != tt.want {
				t.Errorf("blkid says %q, want %q", got, tt.want)
			}
			m.says(tt.says)
		})
	}
	// Half of a mirror begins with the mirror's file system.
	t.Run("mirror", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, 16*mib)
		m.make(0, 15, "mke2fs", "-q", "-t", "ext4", "-L", "md")
		m.says("none ext4 md")
		m.put(16*mib-8192, member(16*mib-8192, 16*mib)[16*mib-8192:])
		m.says("none mdraid host:0")
	})
}

// member is a disk of size bytes with the superblock of an array of version 1 at a place.
func member(at, size int64) []byte {
	b := make([]byte, size)
	s := b[at : at+256]
	le := binary.LittleEndian
	le.PutUint32(s, 0xa92b4efc)
	le.PutUint32(s[4:], 1)
	copy(s[16:], "0123456789abcdef")
	copy(s[32:], "host:0")
	le.PutUint32(s[72:], 1) // level
	le.PutUint64(s[80:], 2048)
	le.PutUint32(s[92:], 2)
	le.PutUint64(s[128:], 2048)
	le.PutUint64(s[136:], 2048)
	le.PutUint64(s[144:], uint64(at/512))
	var sum uint64 // sb_csum, of 32-bit words folded, with itself 0
	for i := 0; i < len(s); i += 4 {
		sum += uint64(le.Uint32(s[i:]))
	}
	le.PutUint32(s[216:], uint32(sum)+uint32(sum>>32))
	return b
}

// oldMember is a superblock of version 0.90.
func oldMember() []byte {
	b := make([]byte, 4096)
	le := binary.LittleEndian
	for i, v := range []uint32{0xa92b4efc, 0, 90, 0, 0, 0x12345678} {
		le.PutUint32(b[4*i:], v)
	}
	return b
}

// volume is the label of an LVM physical volume, with its checksum.
func volume() []byte {
	b := make([]byte, 4096)
	s := b[512:1024]
	le := binary.LittleEndian
	copy(s, "LABELONE")
	le.PutUint64(s[8:], 1)
	le.PutUint32(s[20:], 32)
	copy(s[24:], "LVM2 001")
	copy(s[32:], "abcdefABCDEF0123456789abcdefAB01")
	// CRC-32 of all after it, begun with LVM's own number.
	le.PutUint32(s[16:], ^crc32.Update(^uint32(0xf597a6cf), crc32.IEEETable, s[20:]))
	return b
}

// deaf is a disk that does not answer before it is freed.
type deaf struct {
	fs.FS
	asked chan string
	free  chan struct{}
}

func (d deaf) Open(name string) (fs.File, error) {
	if name == "dev/sda" {
		d.asked <- name
		<-d.free
	}
	return d.FS.Open(name)
}

// A disk that hangs costs a few seconds, once, and the others are reported.
func TestLayoutOfDeadDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		root := deaf{fstest.MapFS{"dev/sda": file(""), "dev/sdb": {Data: make([]byte, mib)}}, make(chan string, 9), make(chan struct{})}
		l := NewLayouts(root)
		look := func(ctx context.Context) (time.Duration, []hardware.DiskFact) {
			disks := []hardware.DiskFact{{Path: "/dev/sda", Bytes: mib}, {Path: "/dev/sdb", Bytes: mib}}
			began := time.Now()
			l.Fill(ctx, disks)
			return time.Since(began), disks
		}
		took, disks := look(t.Context())
		if took != layoutLimit || disks[0].Layout.Problem != "the disk does not answer" || disks[1].Layout.Table != hardware.TableNone {
			t.Errorf("after %v: %+v, %+v", took, disks[0].Layout, disks[1].Layout)
		}
		if took, disks = look(t.Context()); took != 0 || disks[0].Layout.Table != hardware.TableUnknown || disks[1].Layout.Table != hardware.TableNone {
			t.Errorf("the second time after %v: %+v, %+v", took, disks[0].Layout, disks[1].Layout)
		}
		if n := len(root.asked); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
		close(root.free)
		synctest.Wait()
		if took, disks = look(t.Context()); took != 0 || !strings.Contains(disks[0].Layout.Problem, "EOF") {
			t.Errorf("alive after %v: %+v", took, disks[0].Layout)
		}
	})
}

func TestLayoutUnreadable(t *testing.T) {
	t.Parallel()
	disks := []hardware.DiskFact{{Path: "/dev/gone", Bytes: mib}, {Path: "/dev/odd", Bytes: mib}}
	NewLayouts(fstest.MapFS{"dev/odd": {Data: make([]byte, mib)}, "sys/block/odd/queue/logical_block_size": file("520\n")}).Fill(t.Context(), disks)
	for i, want := range []string{"file does not exist", "sector size of 520 bytes"} {
		if l := disks[i].Layout; l.Table != hardware.TableUnknown || !strings.Contains(l.Problem, want) {
			t.Errorf("%s: %+v", disks[i].Path, l)
		}
	}
}

// FuzzLayout: whatever is on a disk becomes a short, plain list; it ends, and the same
// comes of it when it was sent.
func FuzzLayout(f *testing.F) {
	f.Add([]byte{}, uint16(0), uint32(0), []byte{})
	for _, b := range [][]byte{gpt(f, "label: gpt\nstart=1MiB, size=1MiB\nsize=1MiB\n"), gpt(f, "label: dos\n1: start=1MiB, size=1MiB\n2: size=2MiB, type=5\n5: size=512KiB\n")} {
		f.Add(b[:min(len(b), 40<<10)], uint16(512), uint32(1<<20), []byte("XFSB"))
		f.Add(b[:min(len(b), 40<<10)], uint16(4096), uint32(1<<20+0x438), []byte("\x53\xef"))
	}
	f.Add(volume(), uint16(512), uint32(3*mib), []byte{0x55, 0xaa})
	f.Add(member(4096, 8192), uint16(512), uint32(510), []byte{0x55, 0xaa})
	f.Fuzz(func(t *testing.T, head []byte, sector uint16, at uint32, more []byte) {
		disk := make([]byte, 4*mib)
		copy(disk, head)
		copy(disk[int(at)%len(disk):], more)
		l := NewLayouts(fstest.MapFS{
			"dev/sda":                                {Data: disk},
			"sys/block/sda/queue/logical_block_size": file(fmt.Sprint(sector)),
		})
		facts := hardware.Facts{Disks: []hardware.DiskFact{{Path: "/dev/sda", Bytes: uint64(len(disk))}}}
		l.Fill(t.Context(), facts.Disks)
		facts.Cap()
		got := facts.Disks[0].Layout
		if got == nil || strings.Contains(got.Problem, "the worker broke") || len(got.Partitions) > hardware.MaxPartitions || got.More < 0 {
			t.Fatalf("layout is %+v", got)
		}
		last := uint64(0)
		for _, p := range got.Partitions {
			if p.Start < last || p.Start+p.Bytes < p.Start || p.Start+p.Bytes > 1<<63 {
				t.Errorf("partition %+v comes after one at %d", p, last)
			}
			last = p.Start
			for _, s := range []string{p.Name, p.Label, p.Type, got.Label, got.Problem} {
				if len(s) > 128 || s != hardware.PlainText(s, 128) {
					t.Errorf("text is %q", s)
				}
			}
		}
		again := hardware.Facts{Disks: []hardware.DiskFact{{Path: "/dev/sda", Layout: got.Clone()}}}
		again.Cap()
		if !reflect.DeepEqual(again.Disks[0].Layout, got) {
			t.Errorf("sent, %+v is %+v", got, again.Disks[0].Layout)
		}
	})
}

// gpt is a disk that sfdisk partitioned; without it the corpus is smaller.
func gpt(f *testing.F, script string) []byte {
	f.Helper()
	path := filepath.Join(f.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 4*mib), 0o600); err != nil {
		f.Fatal(err)
	}
	cmd := exec.Command("sfdisk", "-q", "--no-tell-kernel", path)
	cmd.Stdin = strings.NewReader(script)
	if _, err := exec.LookPath("sfdisk"); err != nil {
		return nil
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("sfdisk: %v\n%s", err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return b
}
