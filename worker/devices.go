package worker

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/pid1"
	"github.com/rackstrap/rackstrap/worker/pid1/module"
	"github.com/rackstrap/rackstrap/worker/probe"
)

// modulesDir is where the initramfs has the kernel's modules.
const modulesDir = "/lib/modules"

// How long the devices may take to be found.
const (
	settleQuiet = 500 * time.Millisecond // nothing new for so long: complete
	settleLimit = 60 * time.Second       // a controller with many slow disks
	diskLimit   = 20 * time.Second       // the first disk, after everything else is quiet
	cardHead    = time.Second            // the head start of network cards
)

// devices finds the machine's devices and loads their drivers.
type devices struct {
	say     func(format string, args ...any)
	loader  *module.Loader
	plugger *module.Plugger
	root    fs.FS
	bmc     *bmcSearch
	layouts *probe.Layouts

	settled sync.Once
}

// startDevices loads drivers for what is there, in the background, and for what
// comes, until ctx is done. A kernel without modules can work, too: its error is a
// line on the console.
func startDevices(ctx context.Context, wg *sync.WaitGroup, say func(string, ...any)) *devices {
	root := os.DirFS("/")
	d := &devices{say: say, root: root, layouts: probe.NewLayouts(root)}
	loader, err := module.OpenLoader(modulesDir)
	if err != nil {
		say("%v", err)
		loader = module.NewLoader(new(module.Index), modulesDir)
	}
	d.loader = loader
	d.plugger = module.NewPlugger(loader, func(err error) { say("%v", err) })
	events, err := module.ListenUevents()
	if err != nil {
		say("devices that come late will be missed: %v", err)
	} else {
		wg.Go(func() {
			again := func() { d.plugger.Coldplug("/sys/devices") }
			if err := events.Run(ctx, d.event, again); err != nil {
				say("devices that come late will be missed: %v", err)
			}
		})
	}
	// On a machine with few processors the disk controllers would slow the card down.
	// Nobody waits for disks before Ready.
	d.plugger.Hold()
	release := time.AfterFunc(cardHead, d.plugger.Release)
	context.AfterFunc(ctx, func() { release.Stop() })
	// After the subscription: a device is seen by at least one of the two.
	n := d.plugger.Coldplug("/sys/devices")
	say("loading drivers for %d kinds of device", n)
	d.bmc = d.searchBMC(ctx)
	return d
}

func (d *devices) event(e module.Uevent) {
	if e.Action != "add" {
		return
	}
	if a := e.Vars["MODALIAS"]; a != "" {
		d.plugger.Plug(a)
	}
	d.plugger.Touch()
}

// Load loads a module, or what an alias like fs-vfat stands for.
func (d *devices) Load(name string) error { return d.loader.Load(name) }

// Ready waits until the machine's disks are found, at most for settleLimit and the
// first time only. A machine without a disk costs diskLimit.
func (d *devices) Ready(ctx context.Context) {
	d.plugger.Release()
	d.settled.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, settleLimit)
		defer cancel()
		if !d.plugger.Settle(ctx, settleQuiet) {
			d.say("drivers are still being loaded after %v; going on without", settleLimit)
			return
		}
		if probe.HasDisk(d.root) {
			return
		}
		ctx, cancel = context.WithTimeout(ctx, diskLimit)
		defer cancel()
		d.say("no disk has been found yet; waiting for up to %v", diskLimit)
		if d.plugger.Until(ctx, func() bool { return probe.HasDisk(d.root) }) {
			d.plugger.Settle(ctx, settleQuiet)
		}
	})
}

// Facts looks at the machine and reports what it finds; once more where the BMC answers
// later than anybody should wait for it.
func (d *devices) Facts(ctx context.Context, report func(hardware.Facts)) {
	d.Ready(ctx)
	if _, err := os.Stat("/sys/firmware/efi"); err == nil {
		if err := errors.Join(d.Load("efivarfs"), pid1.CreateAll(pid1.Firmware())); err != nil {
			d.say("the firmware's variables cannot be read: %v", err)
		}
	}
	late := time.After(bmcHead)
	select {
	case <-d.bmc.done:
	case <-late:
		report(d.facts(ctx))
		select {
		case <-d.bmc.done:
			if d.bmc.fact == nil {
				return
			}
		case <-ctx.Done():
			return
		}
	case <-ctx.Done():
		return
	}
	f := d.facts(ctx)
	f.BMC = d.bmc.fact
	report(f)
}

func (d *devices) facts(ctx context.Context) hardware.Facts {
	f := probe.Facts(d.root, time.Now())
	d.layouts.Fill(ctx, f.Disks)
	permanentMACs(f.NICs)
	return f
}

// macs lists the addresses of the machine's network cards.
func macs() []string {
	var out []string
	nics, _ := net.Interfaces()
	for _, n := range nics {
		if len(n.HardwareAddr) == len(hardware.MAC{}) && n.Flags&net.FlagLoopback == 0 {
			out = append(out, n.HardwareAddr.String())
		}
	}
	return out
}
