package probe

import (
	"io/fs"
	"path"
	"strconv"

	"github.com/rackstrap/rackstrap/hardware"
)

// nics lists the network cards that are devices: not loopback, bridges or bonds.
func nics(root fs.FS) []hardware.NICFact {
	entries, _ := fs.ReadDir(root, "sys/class/net")
	var out []hardware.NICFact
	for _, e := range entries {
		dir := path.Join("sys/class/net", e.Name())
		if _, err := fs.Stat(root, path.Join(dir, "device")); err != nil {
			continue
		}
		mac, err := hardware.ParseMAC(text(root, path.Join(dir, "address")))
		if err != nil {
			continue
		}
		n := hardware.NICFact{
			Name: e.Name(), MAC: mac,
			Driver: env(root, path.Join(dir, "device/uevent"), "DRIVER"),
			Link:   text(root, path.Join(dir, "carrier")) == "1",
		}
		// -1 where the speed is not known.
		if mbps, err := strconv.Atoi(text(root, path.Join(dir, "speed"))); err == nil && mbps > 0 {
			n.Mbps = mbps
		}
		out = append(out, n)
	}
	return out
}
