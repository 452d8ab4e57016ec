package sim

import (
	"fmt"
	"net"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Spec describes a machine. What is zero is chosen.
type Spec struct {
	Name        string
	MAC         hardware.MAC
	CPUs        int    // 8
	MemoryBytes uint64 // 32 GiB
	Disks       []Disk // one of 100 GB
	Arch        string // amd64
	// Labels are those of the record; Rack is its place there.
	Labels map[string]string
	Rack   string
	Faults Faults
	// Facts changes what a worker finds in it; nil leaves it so.
	Facts func(f *hardware.Facts)
	// Log is what each action writes into its log.
	Log string
}

// Disk describes a disk. Serial, where it is empty, is made from the machine's name.
type Disk struct {
	Path       string // /dev/sda and so on
	Bytes      int64
	Serial     string
	Model      string
	Transport  string // sata
	Rotational bool
	// Layout is what is on it before anything was written; nothing where nil.
	Layout *hardware.Layout
}

// Faults are what is wrong with a machine. They can be changed while it runs; see
// [Machine.SetFaults].
type Faults struct {
	// Hang: after so many power ons, the machine shows no sign of life.
	Hang int
	// Fail: so many attempts of an action fail, by its kind.
	Fail map[workflow.Kind]int
	// KeepOn: the BMC takes a call to switch off, and the machine stays on, as it then
	// says.
	KeepOn bool
	// Lie: the same, and it says that the machine is off.
	Lie bool
	// NoBMC: every call fails.
	NoBMC bool
	// ActionTime is how long each action takes; that of the rack where 0.
	ActionTime time.Duration
}

// complete fills in what the n-th machine of a rack does not say.
func (s *Spec) complete(n int) error {
	if s.Name == "" {
		s.Name = fmt.Sprintf("sim-%03d", n)
	}
	if err := hardware.ValidName(s.Name); err != nil {
		return fmt.Errorf("machine: name %w", err)
	}
	if s.MAC.IsZero() {
		s.MAC = hardware.MAC{0x52, 0x54, 0x01, byte(n >> 16), byte(n >> 8), byte(n)}
	}
	if s.CPUs == 0 {
		s.CPUs = 8
	}
	if s.MemoryBytes == 0 {
		s.MemoryBytes = 32 << 30
	}
	if s.Arch == "" {
		s.Arch = "amd64"
	}
	if s.Disks == nil {
		s.Disks = []Disk{{Bytes: 100e9}}
	}
	if len(s.Disks) > 26 {
		return fmt.Errorf("machine %s: has %d disks, the limit is 26", s.Name, len(s.Disks))
	}
	disks := make([]Disk, len(s.Disks))
	for i, d := range s.Disks {
		if d.Bytes < 1<<20 {
			return fmt.Errorf("machine %s: disk %d has %d bytes, the least is 1 MiB", s.Name, i, d.Bytes)
		}
		if d.Path == "" {
			d.Path = "/dev/sd" + string(rune('a'+i))
		}
		if d.Serial == "" {
			d.Serial = fmt.Sprintf("SIM-%s-%d", s.Name, i)
		}
		if d.Model == "" {
			d.Model = "SIMULATED"
		}
		if d.Transport == "" {
			d.Transport = "sata"
		}
		disks[i] = d
	}
	s.Disks = disks
	return nil
}

// facts are what a worker finds in the machine.
func (s *Spec) facts() hardware.Facts {
	m := s.MAC
	f := hardware.Facts{
		Collected: time.Now(), Firmware: "bios", Arch: s.Arch, CPUModel: "Simulated CPU", CPUs: s.CPUs, MemoryBytes: s.MemoryBytes,
		Vendor: "Rackstrap", Product: "Simulated machine", Serial: fmt.Sprintf("SIM%X", m[:]),
		UUID:   fmt.Sprintf("5e1f51aa-0000-4000-8000-%x", m[:]),
		Kernel: "6.1.0-sim",
		NICs:   []hardware.NICFact{{Name: "eth0", MAC: m, Driver: "sim", Link: true, Mbps: 10_000}},
	}
	for _, d := range s.Disks {
		f.Disks = append(f.Disks, hardware.DiskFact{
			Path: d.Path, Bytes: uint64(d.Bytes), Serial: d.Serial, Model: d.Model, Transport: d.Transport, Rotational: d.Rotational,
		})
	}
	if s.Facts != nil {
		s.Facts(&f)
	}
	return f
}

func (s *Spec) hardwareAddr() net.HardwareAddr { return append(net.HardwareAddr(nil), s.MAC[:]...) }
