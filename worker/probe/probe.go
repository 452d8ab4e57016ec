package probe

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Facts looks at the machine below root. Collected is now; Worker is left to the caller.
func Facts(root fs.FS, now time.Time) hardware.Facts {
	f := hardware.Facts{
		Collected:     now,
		Arch:          runtime.GOARCH,
		Kernel:        text(root, "proc/sys/kernel/osrelease"),
		Vendor:        dmi(root, "sys_vendor"),
		Product:       dmi(root, "product_name"),
		Serial:        dmi(root, "product_serial"),
		UUID:          strings.ToLower(dmi(root, "product_uuid")),
		BoardSerial:   dmi(root, "board_serial"),
		ChassisSerial: dmi(root, "chassis_serial"),
		AssetTag:      assetTag(root),
		BIOS:          bios(root),
		CPUModel:      cmp.Or(cpuModel(text(root, "proc/cpuinfo")), processor(raw(root, "sys/firmware/dmi/tables/DMI"))),
		CPUs:          countList(text(root, "sys/devices/system/cpu/online")),
		Disks:         disks(root),
		NICs:          nics(root),
	}
	f.MemoryBytes = memory(text(root, "proc/meminfo"))
	f.Firmware, f.SecureBoot = firmware(root)
	f.Cap()
	return f
}

// maxFile bounds what is read of one file; /proc/cpuinfo of a large server is the
// largest, and its first processor is enough.
const maxFile = 64 << 10

// text is a file's content without surrounding white space, empty if it cannot be read.
func text(root fs.FS, name string) string {
	return strings.TrimSpace(string(raw(root, name)))
}

func raw(root fs.FS, name string) []byte {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	// A file of sysfs may fail in the middle; what came before is no value then.
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil
	}
	return b
}

// dmi reads one string of the SMBIOS tables, empty where the vendor did not fill it in.
func dmi(root fs.FS, name string) string {
	return hardware.Unfilled(text(root, path.Join("sys/class/dmi/id", name)))
}

// assetTag is on the case, or on the board of a blade.
func assetTag(root fs.FS) string {
	if t := dmi(root, "chassis_asset_tag"); t != "" {
		return t
	}
	return dmi(root, "board_asset_tag")
}

// bios is the firmware's vendor, version and date.
func bios(root fs.FS) string {
	return strings.Join(strings.Fields(dmi(root, "bios_vendor")+" "+dmi(root, "bios_version")+" "+dmi(root, "bios_date")), " ")
}

// cpuModel reads the first "model name" of /proc/cpuinfo; arm64 kernels have none.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == "model name" {
			return strings.Join(strings.Fields(v), " ")
		}
	}
	return ""
}

// countList counts the members of a kernel list such as "0-3,8,10-11".
func countList(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(hi); err != nil || b < a {
				continue
			}
		}
		n += b - a + 1
	}
	return n
}

// memory reads MemTotal of /proc/meminfo, in bytes.
func memory(meminfo string) uint64 {
	for line := range strings.Lines(meminfo) {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == "MemTotal:" {
			kb, _ := strconv.ParseUint(f[1], 10, 54)
			return kb << 10
		}
	}
	return 0
}

// secureBoot is the UEFI variable of that name (UEFI specification, section 3.3):
// four bytes of attributes, then 1 or 0.
const secureBoot = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

func firmware(root fs.FS) (kind, secure string) {
	if _, err := fs.Stat(root, "sys/firmware/efi"); err != nil {
		return "bios", ""
	}
	b := raw(root, secureBoot)
	switch {
	case len(b) != 5:
		return "uefi", ""
	case b[4] == 1:
		return "uefi", "on"
	}
	return "uefi", "off"
}

// env reads one value of a device's uevent file.
func env(root fs.FS, name, key string) string {
	for line := range bytes.Lines(raw(root, name)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(string(line)), key+"="); ok {
			return v
		}
	}
	return ""
}
