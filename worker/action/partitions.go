package action

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
			start: start * 512, size: size * 512, label: uevent(dir, "PARTNAME"),
		})
	}
	slices.SortFunc(out, func(a, b partInfo) int { return a.number - b.number })
	return out, nil
}

// uevent reads one value of the uevent file in dir.
func uevent(dir, key string) string {
	for line := range strings.Lines(attr(dir, "uevent")) {
		if v, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), key+"="); ok {
			return v
		}
	}
	return ""
}
