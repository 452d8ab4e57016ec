package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// tableEnv names the files that the times of the netboots are written to, but for their
// ends .txt and .json.
const tableEnv = "RACKSTRAP_LAB_TABLE"

// netbootTimes is one line of the table: seconds from power-on, and of its parts.
type netbootTimes struct {
	Firmware string `json:"firmware"`
	Mode     string `json:"mode"`
	// Firmware's own time to its first packet; from there to the boot script; kernel and
	// initramfs; from their end to the first RPC. Zero: not seen.
	Packet float64 `json:"firstPacket,omitempty"`
	Script float64 `json:"script,omitempty"`
	Files  float64 `json:"files,omitempty"`
	Worker float64 `json:"worker,omitempty"`
	Total  float64 `json:"total,omitempty"`
	Failed bool    `json:"failed,omitempty"`
	Why    string  `json:"why,omitempty"`
}

// read takes the times from a machine's events.
func (n *netbootTimes) read(on time.Time, events []api.Event) {
	from := on
	part := func(to *float64, reason hardware.Reason) {
		i := slices.IndexFunc(events, func(e api.Event) bool { return e.Reason == reason && !e.First.Before(from) })
		if i >= 0 {
			*to = events[i].First.Sub(from).Seconds()
			from = events[i].First
		}
	}
	part(&n.Packet, hardware.ReasonBootStarted)
	part(&n.Script, hardware.ReasonScriptSent)
	part(&n.Files, hardware.ReasonInitramfsSent)
	part(&n.Worker, hardware.ReasonWorkerConnected)
	if n.Worker > 0 {
		n.Total = from.Sub(on).Seconds()
	}
}

// netbootTable gathers the lines of tests that run at once.
type netbootTable struct {
	mu    sync.Mutex
	lines []netbootTimes
}

// netboots is what this run of the tests measured; TestMain prints it.
var netboots netbootTable

func (t *netbootTable) add(n netbootTimes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, n)
}

// print writes the table, sorted, and what failed with its reason.
func (t *netbootTable) print(w io.Writer) {
	slices.SortFunc(t.lines, func(a, b netbootTimes) int {
		return strings.Compare(a.Firmware+" "+a.Mode, b.Firmware+" "+b.Mode)
	})
	fmt.Fprintf(w, "\npower-on to the worker's first RPC, in seconds\n%-11s %-12s %8s %8s %8s %8s %8s\n",
		"firmware", "network", "packet", "script", "files", "worker", "total")
	for _, n := range t.lines {
		fmt.Fprintf(w, "%-11s %-12s", n.Firmware, n.Mode)
		for _, s := range []float64{n.Packet, n.Script, n.Files, n.Worker, n.Total} {
			if s == 0 {
				fmt.Fprintf(w, " %8s", "-")
			} else {
				fmt.Fprintf(w, " %8.1f", s)
			}
		}
		if n.Failed {
			fmt.Fprint(w, "  FAILED "+n.Why)
		}
		fmt.Fprintln(w)
	}
}

// write makes the two files.
func (t *netbootTable) write(path string) error {
	var text strings.Builder
	t.print(&text)
	b, err := json.MarshalIndent(t.lines, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+".txt", []byte(text.String()), 0o644), os.WriteFile(path+".json", append(b, '\n'), 0o644))
}

// TestMain prints the table of the netboots at the end.
func TestMain(m *testing.M) {
	code := m.Run()
	if len(netboots.lines) > 0 {
		netboots.print(os.Stdout)
		if path := os.Getenv(tableEnv); path != "" {
			if err := netboots.write(path); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}
