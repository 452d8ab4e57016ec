package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/worker/pid1"
	"github.com/rackstrap/rackstrap/worker/pid1/netup"
)

// httpPort is where the appliance serves images, if the script does not say.
const httpPort = 7080

// Life is the worker as the machine's only program, process 1. It does not return:
// it ends with a restart or with power off.
func Life(version string) {
	// Before anything else, so that all that follows can be printed and so that a
	// panic of the kernel restarts the machine.
	required := pid1.CreateAll(pid1.Required())
	console := pid1.OpenConsoles(pid1.Uptime)
	console.Say("Rackstrap worker %s", version)
	l := &life{version: version, console: console}
	end := l.guard(required)
	l.leave(end)
}

// life is the state of one boot.
type life struct {
	version string
	console *pid1.Console
	devices *devices
	wg      sync.WaitGroup
}

// guard turns a panic into an end. Panics of other goroutines end the process, and
// with it the kernel, which restarts the machine after half a minute.
func (l *life) guard(required error) (end End) {
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		cancel()
		if !waitFor(&l.wg, stopLimit) {
			l.console.Say("something of the worker does not stop; going on without it")
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			end = End{What: pid1.Restart, Fault: true, Reason: fmt.Sprintf("the worker broke: %v (a fault of Rackstrap: please report it)", p)}
		}
	}()
	end, err := l.run(ctx, required)
	if err != nil {
		return End{What: pid1.Restart, Fault: true, Reason: err.Error()}
	}
	return end
}

// run does everything from the mounts to the last report. Its error is why the
// machine cannot be worked with, and what to do.
func (l *life) run(ctx context.Context, required error) (End, error) {
	say := l.console.Say
	if required != nil {
		return End{}, fmt.Errorf("%w (the kernel lacks something that the worker needs)", required)
	}
	if err := pid1.CreateAll(pid1.Optional()); err != nil {
		say("%v", err)
	}
	pid1.LimitMemory()
	l.wg.Go(func() { _ = pid1.Reap(ctx) })

	// Devices first: their drivers take the longest, and everything below needs them.
	// A bad command line is found out at once all the same.
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return End{}, err
	}
	params, err := ParseCommandLine(string(line))
	if err != nil {
		return End{}, err
	}
	l.devices = startDevices(ctx, &l.wg, say)
	say("%v", params)
	if err := netup.Loopback(); err != nil {
		say("loopback: %v", err)
	}
	// The key is made while the card comes up.
	session, err := NewSession(l.config(params))
	if err != nil {
		return End{}, err
	}
	network := &netup.Network{MAC: params.MAC, Say: say, Resolver: pid1.Resolver}
	down := make(chan error, 1)
	l.wg.Go(func() { down <- network.Run(ctx) })
	select {
	case err := <-down:
		return End{}, err
	case <-network.Ready():
	}
	l.wg.Go(func() { l.watchdog(ctx) })

	sctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan End, 1)
	l.wg.Go(func() { ended <- session.Run(sctx) })
	select {
	case err := <-down:
		stop()
		<-ended
		return End{}, err
	case e := <-ended:
		return e, nil
	}
}

func (l *life) config(p Params) Config {
	base := p.HTTP
	if base == "" {
		base = "http://" + netip.AddrPortFrom(p.Server.Addr(), httpPort).String()
	}
	return Config{
		Params: p, Version: l.version, Runners: action.Runners(),
		Env: func() action.Env {
			return action.Env{HTTPBase: base, MACs: macs(), LoadModule: l.devices.Load}
		},
		Ready: l.devices.Ready, Facts: l.devices.Facts, Look: l.devices.layouts.Fill,
		SetClock: pid1.SetClock, Uptime: pid1.Uptime, Say: l.console.Say,
	}
}

// watchdog feeds the hardware watchdog, if there is one once the drivers are loaded.
func (l *life) watchdog(ctx context.Context) {
	l.devices.Ready(ctx)
	if err := pid1.Watchdog(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.console.Say("watchdog: %v", err)
	}
}

// countdown is how long a reason stays on the console before the machine restarts.
const countdown = 30 * time.Second

// leave prints the reason and leaves the machine.
func (l *life) leave(e End) {
	if e.What == "" {
		e.What = pid1.Restart
	}
	if e.Fault {
		l.console.Say("FAILED: %s", e.Reason)
		for left := countdown; left > 0; left -= 10 * time.Second {
			l.console.Say("this machine restarts in %v", left)
			time.Sleep(10 * time.Second)
		}
	}
	l.console.Say("%s: %s", e.What, e.Reason)
	err := pid1.Leave(e.What)
	l.console.Say("%s: the kernel refuses: %v", e.What, err)
	l.console.Flush(5 * time.Second)
	// The end of process 1 is a panic of the kernel, and that restarts the machine.
	os.Exit(1)
}
