package worker

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/probe"
)

// How long the BMC may take. Its driver waits for many seconds for one that is dead.
const (
	bmcAppears = 15 * time.Second // the device, once the drivers are loaded
	bmcHead    = 3 * time.Second  // how long the facts wait for what it says
)

// bmcSearch finds the BMC in the background.
type bmcSearch struct {
	done chan struct{}
	fact *hardware.BMCFact // when done; nil where none answered
}

// searchBMC loads the drivers of the BMC that the firmware names, and asks it. Nobody
// waits for those drivers: the Plugger has put them aside.
func (d *devices) searchBMC(ctx context.Context) *bmcSearch {
	s := &bmcSearch{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		select {
		case <-time.After(cardHead):
		case <-ctx.Done():
			return
		}
		drivers := d.plugger.Aside()
		if len(drivers) == 0 {
			return
		}
		for _, m := range append([]string{"ipmi_devintf"}, drivers...) {
			if err := d.Load(m); err != nil {
				d.say("%v", err)
			}
		}
		ctx, cancel := context.WithTimeout(ctx, bmcAppears)
		defer cancel()
		there := func() bool {
			all, _ := filepath.Glob("/dev/ipmi[0-9]*")
			return len(all) > 0
		}
		if !d.plugger.Until(ctx, there) {
			return
		}
		var err error
		if s.fact, err = askBMC("/dev/ipmi0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.say("%v", err)
		}
	}()
	return s
}

func askBMC(name string) (*hardware.BMCFact, error) {
	dev, err := openIPMI(name)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	return probe.BMC(dev.Ask)
}
