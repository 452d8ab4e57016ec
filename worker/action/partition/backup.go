package partition

import (
	"errors"
	"fmt"
)

// readGPT reads the primary table or, where that is damaged, its backup (UEFI
// specification 2.10, section 5.3.2): a power cut while both were written leaves
// at least one that is whole. The error is about the primary.
func readGPT(d Disk) (gptTable, error) {
	primary, err := readHeader(d, 1)
	if err == nil || !errors.Is(err, errDamaged) {
		return primary, err
	}
	headerGood := primary.entries != nil
	places := []uint64{uint64(d.Size/int64(d.Sector)) - 1}
	if headerGood && primary.header.Other < places[0] {
		// The disk was made larger: the backup is where the image ended.
		places = append(places, primary.header.Other)
	}
	for _, at := range places {
		g, backupErr := readHeader(d, at)
		if backupErr != nil || g.header.Other != 1 {
			continue
		}
		if headerGood && g.header.GUID != primary.header.GUID {
			continue // left by what was on the disk before
		}
		// The backup does not say where the primary entries are: right after the
		// header, unless the primary header can still be asked.
		g.header.Self, g.header.Other, g.header.Entries = 1, at, 2
		if headerGood {
			g.header.Entries = primary.header.Entries
		}
		if g.header.Entries+uint64(len(g.entries)/d.Sector) > g.header.FirstUsable {
			continue
		}
		g.rescued = true
		return g, nil
	}
	return primary, fmt.Errorf("%w, and so is its backup (write an image again)", err)
}
