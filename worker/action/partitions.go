package action

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rackstrap/rackstrap/worker/action/partition"
)

// partInfo is a partition as the kernel shows it below its disk in /sys/block.
type partInfo struct {
	number      int
	path        string // below /dev
	start, size int64  // bytes
	label       string // GPT partition name
}

// partitions lists the partitions of a disk in the order of their numbers.
func partitions(d disk) ([]partInfo, error) {
	entries, err := os.ReadDir(d.sys)
	if err != nil {
		return nil, err
	}
	var out []partInfo
	names := labels(d)
	for _, e := range entries {
		dir := filepath.Join(d.sys, e.Name())
		number, err := strconv.Atoi(attr(dir, "partition"))
		if err != nil {
			continue
		}
		start, _ := strconv.ParseInt(attr(dir, "start"), 10, 64)
		size, _ := strconv.ParseInt(attr(dir, "size"), 10, 64)
		out = append(out, partInfo{
			number: number, path: filepath.Join(filepath.Dir(d.path), filepath.Base(dir)),
			start: start * 512, size: size * 512, label: names[number],
		})
	}
	slices.SortFunc(out, func(a, b partInfo) int { return a.number - b.number })
	return out, nil
}

// labels reads the names of the partitions by number, none where the disk has
// no GPT.
func labels(d disk) map[int]string {
	dev, err := openReadOnly(d.path)
	if err != nil {
		return nil
	}
	defer dev.Close()
	table, err := partition.Read(dev.layout())
	if err != nil {
		return nil
	}
	out := map[int]string{}
	for _, e := range table.Entries {
		out[e.Number] = e.Name
	}
	return out
}
