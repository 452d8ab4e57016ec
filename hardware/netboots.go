package hardware

import "time"

// NetbootLimit is how often a machine may boot from the network without progress
// before it is stopped.
const NetbootLimit = 5

// diskRetry is how soon a machine netboots again whose disk does not start: its
// firmware goes on to the network at once, or restarts first, which is a self test.
// A machine that stayed away for longer ran its system.
const diskRetry = 15 * time.Minute

// netbootSpacing is how soon after one that counted a boot counts again. Firmware walks
// through several entries of its boot order within one power-on, PXE and HTTP or two
// NICs, and whoever forges first packets needs no time at all.
const netbootSpacing = 30 * time.Second

// Netboots counts boots from the network of which nothing came.
type Netboots struct {
	Count int `json:"count"`
	// Since is when the first of them began, Last when the newest that counts did.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// Phase is the furthest that one of them came.
	Phase Phase `json:"phase,omitempty"`
	// Target is what they booted: the worker, or their disk, which does not start.
	Target Target `json:"target"`
}

// Add counts b, the machine's boot before the one that begins at now, which boots
// next; it is called once for each boot. One of which something came ends the count.
// Not counted is one that got no boot program, or ran the operator's own script, of
// whose end nobody tells us; nor one within netbootSpacing of the last that was.
func (n *Netboots) Add(b *Boot, next Next, now time.Time) {
	switch {
	case b == nil || b.Progress || b.Next.Target != next.Target:
		*n = Netboots{}
		return
	case next.Target == TargetWorker && b.Phase >= PhaseAddress:
	case next.Target == TargetDisk && now.Sub(b.Started) < diskRetry:
	case next.Target == TargetWorker:
		return
	default:
		*n = Netboots{}
		return
	}
	if n.Target != next.Target {
		*n = Netboots{Since: b.Started, Target: next.Target}
	}
	n.Phase = max(n.Phase, b.Phase)
	if n.Count > 0 && b.Started.Sub(n.Last) < netbootSpacing {
		return
	}
	n.Count++
	n.Last = b.Started
}

// Looping reports whether it is time to stop.
func (n *Netboots) Looping() bool { return n.Count >= NetbootLimit }
