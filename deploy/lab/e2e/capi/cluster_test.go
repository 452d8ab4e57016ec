package capi_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/hardware"
)

// realEnv says how much is done: small leaves out what comes after the first two nodes
// but for the end.
const realEnv = "CAPI_REAL"

// patience bounds the way of one machine to a node, where others use the processor too.
const patience = 25 * time.Minute

// guest is something that runs on a worker: it has to go somewhere else before its node
// may.
const guest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: guest, namespace: default}
spec:
  selector: {matchLabels: {app: guest}}
  template:
    metadata: {labels: {app: guest}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      containers: [{name: guest, image: %q, imagePullPolicy: Never}]
`

// TestCluster: a released template becomes a cluster of machines that boot from the
// network and are installed; it grows, one of its machines is replaced, and at its end
// every machine is free, with disks that were read back as zero.
func TestCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 80*time.Minute)
	defer cancel()
	small := os.Getenv(realEnv) == "small"
	machines := []machine{
		{role: "control-plane", rack: "a", firmware: lab.UEFI, memory: 3072},
		{role: "worker", rack: "b", firmware: lab.UEFI, memory: 1536},
		{role: "worker", rack: "b", firmware: lab.BIOS, memory: 1536},
	}
	if small {
		machines = machines[:2]
	}
	t.Setenv("CONTROL_PLANE_ENDPOINT_HOST", fmt.Sprintf("10.77.0.%d", firstAddress))
	w := newWorld(t, ctx, machines)
	defer w.table.publish(w)

	w.step("kubectl apply to a control plane and a worker, both ready", func() {
		w.must(w.plane.Apply(ctx, w.manifests(1)))
		w.within(2*patience, "two nodes", func() error { return w.running(2) })
	})
	w.times()
	if !small {
		w.step("one worker more", func() {
			w.kubectl("scale", "machinedeployment", cluster+"-md-0", "--replicas=2")
			w.within(patience, "three nodes", func() error { return w.running(3) })
		})
		w.times()
		w.step("a worker replaced: drained, stopped, wiped, installed", w.replace)
		w.times()
	}
	w.step("kubectl delete cluster to all machines wiped", w.end)
}

// step takes the time of a part of the test.
func (w *world) step(what string, do func()) {
	w.Helper()
	began := time.Now()
	do()
	w.table.step(what, time.Since(began))
}

// replace deletes the Machine whose node has a guest.
func (w *world) replace() {
	w.Helper()
	_, err := w.there("apply", "-f", w.file("guest.yaml", fmt.Sprintf(guest, w.pauseImage())))
	w.must(err)
	var node string
	w.within(patience, "the guest runs", func() (err error) {
		node, err = w.guestNode()
		return err
	})
	machines, err := w.list("machines")
	w.must(err)
	i := slices.IndexFunc(machines, func(o object) bool { return o.Status.NodeRef.Name == node })
	if i < 0 {
		w.Fatalf("no machine has the guest's node %s", node)
	}
	old := machines[i]
	infra, err := w.list("rackstrapmachines")
	w.must(err)
	i = slices.IndexFunc(infra, func(o object) bool { return o.Metadata.Name == old.Metadata.Name })
	if i < 0 {
		w.Fatalf("no RackstrapMachine %s", old.Metadata.Name)
	}
	w.kubectl("delete", "machine", old.Metadata.Name, "-n", "default", "--wait=false")
	w.within(patience, "the old machine is gone", func() error {
		machines, err := w.list("machines")
		if slices.ContainsFunc(machines, func(o object) bool { return o.Metadata.UID == old.Metadata.UID }) {
			return fmt.Errorf("%s is there", old.Metadata.Name)
		}
		return err
	})
	w.stopped(infra[i].Spec.ClaimID)
	w.within(2*patience, "the new one is a node", func() error { return w.running(3) })
	now, err := w.guestNode()
	w.must(err)
	w.Logf("the guest was on %s and is on %s", node, now)
	nodes, err := w.nodes()
	w.must(err)
	for _, o := range nodes {
		if o.Spec.ProviderID == old.Spec.ProviderID {
			w.Errorf("the node %s of the machine that was deleted is there", o.Metadata.Name)
		}
	}
}

// guestNode is where the guest runs.
func (w *world) guestNode() (string, error) {
	text, err := w.there("get", "pods", "-l", "app=guest", "-o", "json")
	pods, err := w.decode(text, err)
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		if p.Status.Phase == "Running" && p.Metadata.DeletionTimestamp == nil {
			return p.Spec.NodeName, nil
		}
		err = fmt.Errorf("pod %s is %s on %q", p.Metadata.Name, p.Status.Phase, p.Spec.NodeName)
	}
	if err == nil {
		err = fmt.Errorf("no pod")
	}
	return "", err
}

// stopped wants a proof that the system which was installed under a claim runs no more:
// its Node is gone, and two must not think that they are one.
func (w *world) stopped(claim string) {
	w.Helper()
	c, err := w.rack.Appliance.Client.Claims.Get(w.ctx, claim)
	w.must(err)
	if p := c.Status.Stopped; c.Status.Ended.IsZero() || p == nil || (p.By != hardware.StoppedByPowerOff && p.By != hardware.StoppedByWorker) {
		w.Errorf("the claim %s of the machine that is gone says %+v", claim, c.Status)
	}
}

// end deletes the cluster.
func (w *world) end() {
	w.Helper()
	w.kubectl("delete", "cluster", cluster, "-n", "default", "--wait=false")
	w.within(patience, "the cluster is gone", func() error {
		out, err := w.plane.Kubectl(w.ctx, "get", "cluster,machines,rackstrapmachines,rackstrapcluster", "-n", "default", "-o", "name")
		if err == nil && strings.TrimSpace(out) != "" {
			return fmt.Errorf("there are %s", strings.Join(strings.Fields(out), ", "))
		}
		return err
	})
	w.within(patience, "every machine is available", func() error {
		list, err := w.rack.Appliance.Client.Hardware.List(w.ctx)
		if err != nil {
			return err
		}
		var wrong []string
		for i := range list {
			if s := &list[i].Status; s.State != hardware.StateAvailable || s.Claim != nil {
				wrong = append(wrong, fmt.Sprintf("%s is %s", list[i].Meta.Name, s.State))
			}
		}
		return joined(wrong)
	})
	w.wiped()
}

// wiped wants a proof of a wipe in each record, and zeroes on each disk.
func (w *world) wiped() {
	w.Helper()
	list, err := w.rack.Appliance.Client.Hardware.List(w.ctx)
	w.must(err)
	for i := range list {
		h := &list[i]
		if p := h.Status.Wiped; p == nil || len(p.Disks) != 1 || p.Disks[0].Bytes != 6<<30 || p.Disks[0].Verified == 0 {
			w.Errorf("%s: the proof of its wipe is %+v", h.Meta.Name, p)
		}
	}
	for _, m := range w.machines {
		select {
		case <-m.Done():
		case <-w.ctx.Done():
			w.Fatalf("%s did not switch itself off after the wipe", m.Name())
		}
		if err := lab.Zero(m.Disk(0)); err != nil {
			w.Error(err)
		}
	}
}
