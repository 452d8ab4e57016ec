package rest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// subnetUsers names the machines that have an address in the subnet.
func subnetUsers(s HardwareRecords) func(context.Context, *hardware.Subnet) ([]string, error) {
	return func(_ context.Context, n *hardware.Subnet) ([]string, error) {
		var out []string
		for _, h := range s.HardwareIndex() {
			if addr, ok := addressIn(h, n); ok {
				out = append(out, fmt.Sprintf("hardware %q (%s)", h.Meta.Name, addr))
			}
		}
		return out, nil
	}
}

func addressIn(h *hardware.Hardware, n *hardware.Subnet) (string, bool) {
	for _, nic := range h.Spec.Interfaces {
		for _, p := range nic.Addresses {
			if n.Spec.Prefix.Contains(p.Addr()) {
				return p.Addr().String(), true
			}
		}
	}
	return "", false
}

// forceSubnet deletes a subnet that machines have addresses in. That is safe: their
// records and what is on their disks stay; they get no answer to DHCP until there is
// a subnet again.
func forceSubnet(s SubnetRecords) func(context.Context, *hardware.Subnet, uint64, []string) ([]string, error) {
	return func(ctx context.Context, n *hardware.Subnet, rev uint64, users []string) ([]string, error) {
		if err := s.DeleteSubnet(ctx, n.Meta.Name, rev); err != nil {
			return nil, err
		}
		skipped := make([]string, len(users))
		for i, u := range users {
			skipped[i] = u + " is in no subnet now: DHCP does not answer it"
		}
		return skipped, nil
	}
}

// imageUsers names the workflows that have yet to write the image: without its record
// they fail when they come to it. There is no force: cancel them.
func imageUsers(s WorkflowRecords) func(context.Context, *workflow.Image) ([]string, error) {
	return func(ctx context.Context, i *workflow.Image) ([]string, error) {
		active, err := s.ActiveWorkflows(ctx)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, w := range active {
			if namesImage(w, i.Meta.Name) {
				out = append(out, fmt.Sprintf("workflow %q on hardware %q", w.Meta.Name, w.Spec.Hardware))
			}
		}
		return out, nil
	}
}

// templateUsers names the rules that start workflows from the template. One that a
// workflow was made from can go: the workflow has its actions.
func templateUsers(s RuleRecords) func(context.Context, *workflow.Template) ([]string, error) {
	return func(ctx context.Context, t *workflow.Template) ([]string, error) {
		rules, err := s.ListRules(ctx)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, r := range rules {
			if p := r.Spec.Provision; p != nil && p.Template == t.Meta.Name {
				out = append(out, fmt.Sprintf("rule %q", r.Meta.Name))
			}
		}
		return out, nil
	}
}

// namesImage reports whether the workflow has yet to write the image of that name.
func namesImage(w *workflow.Workflow, name string) bool {
	for _, a := range w.Status.Actions {
		var o workflow.ImageWrite
		if a.Kind == workflow.KindImageWrite && !a.State.Ended() && json.Unmarshal(a.With, &o) == nil && o.Image == name {
			return true
		}
	}
	return false
}
