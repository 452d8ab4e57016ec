package workflow

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Disk says which disk an action works on: `smallest` or `largest` of the fixed
// disks, a device path (`/dev/nvme0n1`), or `serial=S3Z8NX0M`. Empty is
// `smallest` when there is one disk only; with several it is refused on the
// machine, naming them.
type Disk string

// The disks that are chosen by size.
const (
	DiskSmallest Disk = "smallest"
	DiskLargest  Disk = "largest"
	// DiskAll is every fixed disk; disk.wipe only.
	DiskAll Disk = "all"
)

// Path is the device path, if the disk is named by one.
func (d Disk) Path() (string, bool) { return string(d), strings.HasPrefix(string(d), "/dev/") }

// Serial is the serial number, if the disk is named by one.
func (d Disk) Serial() (string, bool) { return strings.CutPrefix(string(d), "serial=") }

func (d Disk) check(c *hardware.Checker, field string, all bool) {
	p, isPath := d.Path()
	s, isSerial := d.Serial()
	switch {
	case d == "" || d == DiskSmallest || d == DiskLargest || (all && d == DiskAll):
	case isPath && path.Clean(p) == p && len(p) < 256 && !strings.ContainsAny(p, " \x00\n"):
	case isSerial && s != "" && len(s) < 128:
	default:
		c.Addf(field, "%q is no disk (smallest, largest, /dev/… or serial=…)", d)
	}
}

// Partition says which partition of the disk: `root` (the one that holds
// /etc/os-release; also what empty means), a number, `label=NAME` (the GPT
// partition name) or `fs=LABEL` (the file system's label).
type Partition string

// PartitionRoot is the partition that holds /etc/os-release.
const PartitionRoot Partition = "root"

func (p Partition) check(c *hardware.Checker, field string) {
	l, isLabel := strings.CutPrefix(string(p), "label=")
	f, isFS := strings.CutPrefix(string(p), "fs=")
	n, err := strconv.Atoi(string(p))
	switch {
	case p == "" || p == PartitionRoot:
	case isLabel && l != "" && len(l) <= 36, isFS && f != "" && len(f) <= 64:
	case err == nil && n >= 1 && n <= 128:
	default:
		c.Addf(field, "%q is no partition (root, a number, label=… or fs=…)", p)
	}
}

// DiskWipe destroys what is on a disk.
type DiskWipe struct {
	Disk Disk `json:"disk,omitempty"`
	// Mode is quick (partition tables and signatures, discard; the default), zero
	// (every byte overwritten, samples read back) or verified (discarded where that
	// was seen to leave zeros, else overwritten; what was read back is reported for
	// each disk in [Result], and a machine is released by that only).
	Mode string `json:"mode,omitempty"`
}

// The modes of a [DiskWipe].
const (
	WipeQuick    = "quick"
	WipeZero     = "zero"
	WipeVerified = "verified"
)

// Validate implements Options.
func (o *DiskWipe) Validate(c *hardware.Checker, at string) {
	o.Disk.check(c, at+".disk", true)
	switch o.Mode {
	case "", WipeQuick, WipeZero, WipeVerified:
	default:
		c.Addf(at+".mode", "%q is not known (quick, zero or verified)", o.Mode)
	}
}

// ImageWrite streams an image onto a disk.
type ImageWrite struct {
	Disk Disk `json:"disk,omitempty"`
	// Image is the name of an Image record, or an http(s) URL. The engine replaces
	// a record's name by its URL and checksum when it dispatches the action.
	Image string `json:"image"`
	// Checksum of the source bytes as they travel: sha256:<hex>, sha512:<hex>, or
	// md5:<hex>, which protects from accidents only.
	Checksum string `json:"checksum,omitempty"`
	// Format is auto (by content; the default), raw, gz, xz, zst or bz2.
	Format string `json:"format,omitempty"`
	// CA is a PEM certificate to trust for https, besides none: the worker carries
	// no certificate store.
	CA string `json:"ca,omitempty"`
	// Insecure allows https without a CA; the checksum is then required.
	Insecure bool `json:"insecure,omitempty"`
}

// Validate implements Options.
func (o *ImageWrite) Validate(c *hardware.Checker, at string) {
	o.Disk.check(c, at+".disk", false)
	if o.Image == "" {
		c.Addf(at+".image", "is empty (the name of an image, see `rackstrap image list`, or an http(s) URL)")
	} else if !strings.Contains(o.Image, "/") {
		c.Add(at+".image", hardware.ValidName(o.Image))
	} else {
		c.Add(at+".image", validURL(o.Image))
	}
	if o.Checksum != "" {
		c.Add(at+".checksum", ValidChecksum(o.Checksum))
	}
	switch o.Format {
	case "", "auto", "raw", "gz", "xz", "zst", "bz2":
	default:
		c.Addf(at+".format", "%q is not known (auto, raw, gz, xz, zst or bz2)", o.Format)
	}
	checkSize(c, at+".ca", o.CA, maxShortText)
	if o.Insecure && (o.Checksum == "" || WeakChecksum(o.Checksum)) {
		c.Addf(at+".insecure", "needs a checksum (sha256:<hex>)")
	}
}

// DiskGrow reads the partition table again and grows the last partition to the
// end of the disk. The file system in it is grown by the installed system.
type DiskGrow struct {
	Disk Disk `json:"disk,omitempty"`
}

// Validate implements Options.
func (o *DiskGrow) Validate(c *hardware.Checker, at string) { o.Disk.check(c, at+".disk", false) }

// FileWrite writes one file into the installed system.
type FileWrite struct {
	Disk      Disk      `json:"disk,omitempty"`
	Partition Partition `json:"partition,omitempty"`
	Path      string    `json:"path"`
	Content   string    `json:"content" secret:"true"`
	// Mode is octal text, 0644 where empty; UID and GID are numbers.
	Mode string `json:"mode,omitempty"`
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
}

// Validate implements Options.
func (o *FileWrite) Validate(c *hardware.Checker, at string) {
	o.Disk.check(c, at+".disk", false)
	o.Partition.check(c, at+".partition")
	if !path.IsAbs(o.Path) || path.Clean(o.Path) != o.Path || o.Path == "/" || strings.ContainsRune(o.Path, 0) {
		c.Addf(at+".path", "%q is not a clean absolute path of a file", o.Path)
	}
	if _, err := o.FileMode(); err != nil {
		c.Add(at+".mode", err)
	}
	checkSize(c, at+".content", o.Content, maxText)
	if o.UID < 0 || o.GID < 0 {
		c.Addf(at+".uid", "uid and gid cannot be negative")
	}
}

// FileMode is Mode as permission bits, 0644 where it is empty.
func (o *FileWrite) FileMode() (uint32, error) {
	if o.Mode == "" {
		return 0o644, nil
	}
	m, err := strconv.ParseUint(o.Mode, 8, 32)
	if err != nil || m > 0o7777 {
		return 0, fmt.Errorf("%q is not an octal mode (like 0644)", o.Mode)
	}
	return uint32(m), nil
}

// NetworkConfig writes the network configuration of the installed system, with
// exactly one renderer.
type NetworkConfig struct {
	Disk      Disk      `json:"disk,omitempty"`
	Partition Partition `json:"partition,omitempty"`
	// Renderer is auto (NoCloud where the image has cloud-init, else netplan, else
	// networkd; the default), nocloud, netplan or networkd.
	Renderer string `json:"renderer,omitempty"`
	// Config is a cloud-init network-config version 2 document in YAML; made from
	// the Hardware record where empty.
	Config string `json:"config,omitempty"`
}

// Validate implements Options.
func (o *NetworkConfig) Validate(c *hardware.Checker, at string) {
	o.Disk.check(c, at+".disk", false)
	o.Partition.check(c, at+".partition")
	switch o.Renderer {
	case "", "auto", "nocloud", "netplan", "networkd":
	default:
		c.Addf(at+".renderer", "%q is not known (auto, nocloud, netplan or networkd)", o.Renderer)
	}
	checkSize(c, at+".config", o.Config, maxShortText)
}

// CloudInit writes a NoCloud seed and pins cloud-init's data source to it.
type CloudInit struct {
	Disk      Disk      `json:"disk,omitempty"`
	Partition Partition `json:"partition,omitempty"`
	// UserData is the record's, then a default with its SSH keys, where empty.
	UserData   string `json:"userData,omitempty" secret:"true"`
	MetaData   string `json:"metaData,omitempty"`
	VendorData string `json:"vendorData,omitempty" secret:"true"`
	// Serve keeps user-data and vendor-data off the disk: the seed names a URL of the
	// appliance with a random path, good for a day, and the installed system reads
	// it at its first start.
	Serve bool `json:"serve,omitempty"`
}

// Validate implements Options.
func (o *CloudInit) Validate(c *hardware.Checker, at string) {
	o.Disk.check(c, at+".disk", false)
	o.Partition.check(c, at+".partition")
	checkSize(c, at+".userData", o.UserData, maxText)
	checkSize(c, at+".vendorData", o.VendorData, maxText)
	checkSize(c, at+".metaData", o.MetaData, maxShortText)
}

// Reboot restarts the machine, after its success was acknowledged.
type Reboot struct{}

// Validate implements Options.
func (*Reboot) Validate(*hardware.Checker, string) {}

// PowerOff switches the machine off, after its success was acknowledged.
type PowerOff struct{}

// Validate implements Options.
func (*PowerOff) Validate(*hardware.Checker, string) {}
