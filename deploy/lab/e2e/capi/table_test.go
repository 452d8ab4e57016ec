package capi_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// tableEnv names a file to which the times are added.
const tableEnv = "RACKSTRAP_CAPI_TABLE"

// table is what took how long.
type table struct {
	steps []string
	nodes []string
	seen  map[string]bool // machines in nodes
}

// step notes how long something took.
func (t *table) step(what string, d time.Duration) {
	t.steps = append(t.steps, fmt.Sprintf("%-58s %6.0f s", what, d.Seconds()))
}

// node notes the parts of a machine's way to a Node: those that follow each other.
func (t *table) node(name string, parts ...time.Time) {
	line := fmt.Sprintf("%-34s", name)
	for i, p := range parts[1:] {
		line += fmt.Sprintf(" %8.0f", p.Sub(parts[i]).Seconds())
	}
	t.nodes = append(t.nodes, line+fmt.Sprintf(" %8.0f", parts[len(parts)-1].Sub(parts[0]).Seconds()))
}

func (t *table) String() string {
	head := fmt.Sprintf("%-34s %8s %8s %8s %8s %8s %8s   seconds", "machine", "waits", "worker", "install", "kubeadm", "ready", "all")
	return strings.Join(t.steps, "\n") + "\n\n" + head + "\n" + strings.Join(t.nodes, "\n") + "\n"
}

// publish prints the table, and writes it to a file where one is wanted.
func (t *table) publish(w *world) {
	w.Helper()
	w.Logf("\n%s", t)
	path := os.Getenv(tableEnv)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	w.must(err)
	_, err = fmt.Fprintf(f, "%s\n%s\n", w.Name(), t)
	w.must(errors.Join(err, f.Close()))
}

// times notes the way of each new Machine to its Node: from the Machine to the power, to the
// worker, to the installed disk, to the Node, to its being ready.
func (w *world) times() {
	w.Helper()
	machines, err := w.list("machines")
	w.must(err)
	infra, err := w.list("rackstrapmachines")
	w.must(err)
	nodes, err := w.nodes()
	w.must(err)
	if w.table.seen == nil {
		w.table.seen = map[string]bool{}
	}
	for _, m := range machines {
		if w.table.seen[m.Metadata.Name] {
			continue
		}
		w.table.seen[m.Metadata.Name] = true
		find := func(list []object, name string) object {
			i := slices.IndexFunc(list, func(o object) bool { return o.Metadata.Name == name })
			if i < 0 {
				w.Fatalf("no %s for machine %s", name, m.Metadata.Name)
			}
			return list[i]
		}
		node, of := find(nodes, m.Status.NodeRef.Name), find(infra, m.Metadata.Name)
		on, worker, installed := w.installed(of.Status.Hardware.Name)
		name := fmt.Sprintf("%s on %s", cmp.Or(m.Metadata.Labels["cluster.x-k8s.io/deployment-name"], "control plane"), of.Status.Hardware.Name)
		w.table.node(name, m.Metadata.CreationTimestamp, on, worker, installed, node.Metadata.CreationTimestamp, node.condition("Ready").LastTransitionTime)
	}
}

// installed says when the boot of a machine's last install began, when its worker was
// there, and when all was written.
func (w *world) installed(name string) (on, worker, done time.Time) {
	w.Helper()
	tl, err := w.rack.Appliance.Client.Timeline(w.ctx, name)
	w.must(err)
	for _, b := range slices.Backward(tl.Boots) {
		for _, l := range b.Lines {
			switch l.Reason {
			case hardware.ReasonWorkerConnected:
				worker = l.First
			case hardware.ReasonWorkflowSucceeded:
				done = l.First
			}
		}
		if !done.IsZero() {
			return b.Started, worker, done
		}
	}
	w.Fatalf("the timeline of %s has no install", name)
	return
}
