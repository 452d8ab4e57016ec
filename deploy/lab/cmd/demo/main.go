// Command demo shows the product's main job on a virtual machine: it starts the
// appliance in a lab, registers an empty machine that is off, has it provisioned,
// which switches it on over a power webhook, tells what happens, checks the
// installed system over SSH, and prints where the time went.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
)

const (
	machineName = "demo1"
	machineAddr = 11 // the n-th address of the network
	diskSize    = 6 << 30
	timeLimit   = 25 * time.Minute
)

// machineMAC is fixed, so that a pcap or a log of a demo can be searched for it.
var machineMAC = net.HardwareAddr{0x52, 0x54, 0x00, 0xde, 0x30, 0x01}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	bin := fs.String("rackstrap", "bin/rackstrap", "the binary")
	firmware := fs.String("firmware", "uefi", "one of "+fmt.Sprint(firmwares()))
	keep := fs.Bool("keep", true, "leave the appliance and the machine running")
	down := fs.Bool("down", false, "remove what a demo left, and end")
	if err := fs.Parse(args); err != nil {
		return err
	}
	cache, err := lab.CacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "demo")
	if *down {
		return tearDown(ctx, dir)
	}
	fw := lab.Firmware(*firmware)
	if !slices.Contains(firmwares(), fw) {
		return fmt.Errorf("firmware %q is not known (DEMO_FIRMWARE is one of %s)", *firmware, firmwares())
	}
	if _, err := lab.ReadState(dir); err == nil {
		fmt.Println("taking down the demo that is there")
	}
	if err := tearDown(ctx, dir); err != nil { // also what a failed one left to be looked at
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	d := &demo{say: newTeller(os.Stdout), firmware: fw}
	if err := d.prepare(ctx, dir, *bin); err != nil {
		return err
	}
	err = d.play(ctx)
	switch {
	case err == nil && *keep:
		if err := d.leave(ctx); err != nil {
			return err
		}
		d.invite()
		return nil
	case err != nil:
		err = fmt.Errorf("%w\nlook at %s and %s", err, d.rack.Appliance.Log, d.machine.SerialLog())
	}
	err = errors.Join(err, d.rack.Close())
	if err == nil {
		err = os.RemoveAll(dir)
	}
	return err
}

// firmwares are those of a machine that can be left running: a plain PXE one is at a
// switch that ends with this process.
func firmwares() []lab.Firmware {
	return slices.DeleteFunc(lab.Firmwares(), func(f lab.Firmware) bool { return f == lab.PlainPXE })
}

func tearDown(ctx context.Context, dir string) error {
	if err := lab.Clean(ctx, dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// demo is one run.
type demo struct {
	say      *teller
	firmware lab.Firmware
	rack     *rig.Rack
	machine  *lab.Machine
	image    lab.Image

	started, sshAt time.Time
}

// prepare builds the image and the lab, starts the appliance and fills its records.
func (d *demo) prepare(ctx context.Context, dir, bin string) (err error) {
	d.say.step("the OS image: Debian 12 for " + d.firmware.Arch() + ", built once with mmdebstrap and kept in the cache")
	if d.image, err = lab.DebianImageFor(ctx, d.firmware.Arch(), "", d.say.note); err != nil {
		return err
	}
	d.say.step("a LAN in a network namespace, and the appliance on it")
	if d.rack, err = rig.NewRack(ctx, "demo", dir, bin); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.rack.Close())
		}
	}()
	d.say.note(fmt.Sprintf("rackstrap serve is ready, pid %d, %s", d.rack.Appliance.PID(), d.rack.Lab.Gateway()))
	d.say.step(fmt.Sprintf("rackstrap image add %s (%.0f MB compressed, %.1f GB disk)", rig.ImageName, mb(d.image.Size), float64(d.image.VirtualSize)/1e9))
	if err = d.rack.AddImage(ctx, rig.ImageName, d.image, nil); err != nil {
		return err
	}
	d.say.step(fmt.Sprintf("rackstrap apply: hardware %s, MAC %s, address %s", machineName, machineMAC, d.rack.Addr(machineAddr)))
	d.machine, err = d.rack.AddPowered(ctx, lab.MachineSpec{
		Name: machineName, MAC: machineMAC, Firmware: d.firmware, RAM: 512, CPUs: 2,
		Disks: []lab.DiskSpec{{Size: diskSize, Serial: "DEMO-DISK-1"}},
	}, machineAddr)
	return err
}

// play installs the machine and checks it.
func (d *demo) play(ctx context.Context) error {
	d.started = time.Now()
	d.say.step(fmt.Sprintf("rackstrap provision %s --image %s (%s, 512 MB RAM, empty %d GB disk; it is off)", machineName, rig.ImageName, d.firmware, diskSize>>30))
	if _, err := d.rack.Appliance.Client.Provision(ctx, machineName, api.Provision{Image: rig.ImageName}); err != nil {
		return err
	}
	if err := d.follow(ctx); err != nil {
		return err
	}
	d.say.step("the machine restarts into the installed system")
	s, err := d.rack.Check(ctx, machineName, machineAddr)
	if err != nil {
		return err
	}
	defer s.Close()
	d.sshAt = time.Now()
	name, err := s.Run(". /etc/os-release; echo $PRETTY_NAME, kernel $(uname -r); df -h --output=size / | tail -n 1")
	if err != nil {
		return err
	}
	d.say.note("ssh debian@" + d.rack.Addr(machineAddr).String() + ": host name, address and key are right")
	d.say.note(name)
	prompt, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := d.machine.Console().Wait(prompt, 0, "login:"); err != nil {
		d.say.note("no login prompt on the serial line yet; the table goes without it")
	}
	return d.table(ctx)
}

// leave lets all go on without this process, which was the power controller: from
// then on a person would have to switch the machine.
func (d *demo) leave(ctx context.Context) error {
	noPower := map[string]any{"spec": map[string]any{"power": nil}}
	if _, err := d.rack.Appliance.Client.Hardware.Patch(ctx, machineName, 0, noPower); err != nil {
		return err
	}
	return d.rack.Lab.Detach()
}

// invite says how to look at what was left running.
func (d *demo) invite() {
	a := d.rack.Appliance
	ns := d.rack.Lab.Name()
	fmt.Printf(`
It all goes on running. Look at it:
  export RACKSTRAP_SOCKET=%[1]s
  bin/rackstrap hardware list
  bin/rackstrap timeline %[2]s
  bin/rackstrap explain %[2]s
  bin/rackstrap workflow list
  ip netns exec %[3]s ssh -i %[4]s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null debian@%[5]s
  less %[6]s
  less %[7]s
Remove it: make demo-down
`, a.Socket, machineName, ns, filepath.Join(d.rack.Lab.Dir(), "id_ed25519"), d.rack.Addr(machineAddr), a.Log, d.machine.SerialLog())
}

func mb(n int64) float64 { return float64(n) / 1e6 }
