package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

// row is one line of the table: a step, when it ended, how long it took.
type row struct {
	step  string
	at    time.Time
	took  time.Duration
	bytes int64
}

// table prints where the time went, from power-on to SSH.
func (d *demo) table(ctx context.Context) error {
	events, _, err := d.rack.Appliance.Client.ListEvents(ctx, client.Filter{Hardware: machineName, Limit: 500})
	if err != nil {
		return err
	}
	rows := d.rows(events)
	fmt.Printf("\n%-34s %9s %9s %10s %9s\n", "step", "at", "took", "MB", "MB/s")
	for _, r := range rows {
		fmt.Printf("%-34s %8.1fs %8.2fs", r.step, r.at.Sub(d.started).Seconds(), r.took.Seconds())
		if r.bytes > 0 && r.took > 0 {
			fmt.Printf(" %10.1f %9.1f", mb(r.bytes), mb(r.bytes)/r.took.Seconds())
		}
		fmt.Println()
	}
	now, peak := d.rack.Appliance.MemoryMiB()
	fmt.Printf("\nappliance: %.0f MB resident now, %.0f MB at most (embedded boot files included)\n", now, peak)
	return nil
}

// rows turns the machine's events into the steps of its boot. Each step begins
// where the one before ended, but for those that were timed by themselves.
func (d *demo) rows(events []api.Event) []row {
	var out []row
	last := d.started
	add := func(step string, at time.Time, bytes int64, took time.Duration) {
		if took == 0 {
			took = at.Sub(last)
		}
		out = append(out, row{step, at, took, bytes})
		last = at
	}
	var installed time.Time
	for i := range events {
		e := &events[i]
		if e.First.Before(d.started) {
			continue
		}
		if !installed.IsZero() {
			break // what comes now is another boot
		}
		took := time.Duration(e.Took)
		switch e.Reason {
		case hardware.ReasonBootStarted:
			add("power-on to first DHCP packet", e.First, 0, 0)
		case hardware.ReasonBootProgram:
			add("DHCP of the firmware", e.Last, 0, 0)
		case hardware.ReasonProgramSent:
			add("TFTP: "+strings.TrimSuffix(e.Detail, " by TFTP"), e.First, e.Bytes, took)
		case hardware.ReasonBootScript:
			add("DHCP of iPXE", e.Last, 0, 0)
		case hardware.ReasonScriptSent:
			add("boot script", e.First, 0, 0)
		case hardware.ReasonKernelSent:
			add("HTTP: kernel", e.First, e.Bytes, took)
		case hardware.ReasonInitramfsSent:
			add("HTTP: initramfs", e.First, e.Bytes, took)
		case hardware.ReasonWorkerConnected:
			add("kernel start to worker's first RPC", e.First, 0, 0)
		case hardware.ReasonActionSucceeded:
			add("action "+e.Action, e.First, e.Bytes, took)
		case hardware.ReasonWorkflowSucceeded:
			installed = e.First
			last = e.First
		}
	}
	if at, ok := d.lineAfter("Linux version", installed); ok {
		add("restart to the installed kernel", at, 0, 0)
	}
	up, seen := d.lineAfter("login:", installed)
	if seen && up.Before(d.sshAt) {
		add("OS up (login prompt)", up, 0, 0)
	}
	add("SSH: host name, address, key", d.sshAt, 0, 0)
	if seen && !up.Before(d.sshAt) {
		add("OS up (login prompt)", up, 0, 0)
	}
	return out
}

// lineAfter is when the console first said text after a moment.
func (d *demo) lineAfter(text string, after time.Time) (time.Time, bool) {
	for _, l := range d.machine.Console().Lines() {
		if l.At.After(after) && strings.Contains(l.Text, text) {
			return l.At, true
		}
	}
	return time.Time{}, false
}
