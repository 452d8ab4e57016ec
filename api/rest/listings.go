package rest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// hardwareListing is what machines are found by.
func hardwareListing() listing[hardware.Hardware] {
	return listing[hardware.Hardware]{
		filters: map[string]func(string) (func(*hardware.Hardware) bool, error){
			"state": func(v string) (func(*hardware.Hardware) bool, error) {
				states, err := oneOf("state", v, hardware.States())
				return func(h *hardware.Hardware) bool { return slices.Contains(states, h.Status.State) }, err
			},
			"claimed":     flag("claimed", func(h *hardware.Hardware) bool { return h.Status.Claim != nil }),
			"hold":        flag("hold", func(h *hardware.Hardware) bool { return h.Status.Hold }),
			"maintenance": flag("maintenance", func(h *hardware.Hardware) bool { return h.Status.Maintenance }),
			"q": func(v string) (func(*hardware.Hardware) bool, error) {
				word := strings.ToLower(strings.TrimSpace(v))
				return func(h *hardware.Hardware) bool { return mentions(h, word) }, nil
			},
		},
		sorts: map[string]func(*hardware.Hardware) string{
			"state": func(h *hardware.Hardware) string {
				return fmt.Sprintf("%02d", slices.Index(hardware.States(), h.Status.State))
			},
			"since": func(h *hardware.Hardware) string { return timeKey(h.Status.Since) },
			"rack":  func(h *hardware.Hardware) string { return h.Spec.Rack + "\x00" + h.Spec.Position },
		},
	}
}

// mentions reports whether a machine has the word, in lower case, in what people know
// it by.
func mentions(h *hardware.Hardware, word string) bool {
	for _, s := range []string{h.Meta.Name, h.Spec.Hostname, h.Spec.AssetTag} {
		if strings.Contains(strings.ToLower(s), word) {
			return true
		}
	}
	if f := h.Facts; f != nil && (strings.Contains(strings.ToLower(f.Serial), word) || strings.EqualFold(f.UUID, word)) {
		return true
	}
	if strings.Trim(word, "0123456789abcdef:.-") != "" {
		return false
	}
	mac, buf := strings.ReplaceAll(word, "-", ":"), make([]byte, 0, 64)
	for _, n := range h.Spec.Interfaces {
		if strings.Contains(n.MAC.String(), mac) {
			return true
		}
		for _, p := range n.Addresses {
			if buf = p.Addr().AppendTo(buf[:0]); strings.Contains(string(buf), word) {
				return true
			}
		}
	}
	return false
}

func subnetListing() listing[hardware.Subnet] {
	return listing[hardware.Subnet]{sorts: map[string]func(*hardware.Subnet) string{
		"prefix": func(s *hardware.Subnet) string {
			return fmt.Sprintf("%x/%03d", s.Spec.Prefix.Addr().As16(), s.Spec.Prefix.Bits())
		},
	}}
}

func workflowListing() listing[workflow.Workflow] {
	return listing[workflow.Workflow]{
		filters: map[string]func(string) (func(*workflow.Workflow) bool, error){
			"state": func(v string) (func(*workflow.Workflow) bool, error) {
				states, err := oneOf("state", v, workflowStates())
				return func(w *workflow.Workflow) bool { return slices.Contains(states, w.Status.State) }, err
			},
			"hardware": func(v string) (func(*workflow.Workflow) bool, error) {
				return func(w *workflow.Workflow) bool { return w.Spec.Hardware == v }, nil
			},
		},
		sorts: map[string]func(*workflow.Workflow) string{
			"state": func(w *workflow.Workflow) string {
				return fmt.Sprintf("%02d", slices.Index(workflowStates(), w.Status.State))
			},
			"since":    func(w *workflow.Workflow) string { return timeKey(w.Status.Started) },
			"hardware": func(w *workflow.Workflow) string { return w.Spec.Hardware },
			"template": func(w *workflow.Workflow) string { return w.Spec.Template },
		},
	}
}

// workflowStates are all states, in the order of a workflow's life.
func workflowStates() []workflow.State {
	return []workflow.State{workflow.StatePending, workflow.StateRunning, workflow.StateSucceeded, workflow.StateFailed, workflow.StateTimedOut, workflow.StateCancelled}
}

// oneOf reads one or several of the known values, with commas between them.
func oneOf[S ~string](key, value string, known []S) ([]S, error) {
	var out []S
	for _, word := range strings.Split(value, ",") {
		s := S(strings.TrimSpace(word))
		if !slices.Contains(known, s) {
			words := make([]string, len(known))
			for i, k := range known {
				words[i] = string(k)
			}
			return nil, badRequest("several with commas: "+key+"="+words[0]+","+words[1], "%s=%.40q is not known (one of %s)", key, word, strings.Join(words, ", "))
		}
		out = append(out, s)
	}
	return out, nil
}

// flag is a filter that is true or false.
func flag[T any](key string, has func(*T) bool) func(string) (func(*T) bool, error) {
	return func(v string) (func(*T) bool, error) {
		want, err := boolean(map[string][]string{key: {v}}, key)
		return func(t *T) bool { return has(t) == want }, err
	}
}

// timeKey sorts as text as the times do, those before 1970 first.
func timeKey(t time.Time) string {
	if t.Year() < 1970 {
		return ""
	}
	return fmt.Sprintf("%020d", t.UnixNano())
}
