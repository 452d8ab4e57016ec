package bmc

import (
	"context"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

var _ Driver = (*manual)(nil)

// manual tells a person what to do. It does not know what the person did.
type manual struct{ name, place string }

func newManual(h *hardware.Hardware, _ Options) (Driver, error) {
	return &manual{h.Meta.Name, place(h)}, nil
}

// place helps to find the machine; empty where the record says nothing that would.
func place(h *hardware.Hardware) string {
	var at []string
	for _, p := range []struct{ word, value string }{
		{"rack", h.Spec.Rack}, {"position", h.Spec.Position}, {"asset tag", h.Spec.AssetTag},
	} {
		if p.value != "" {
			at = append(at, p.word+" "+p.value)
		}
	}
	if len(at) == 0 && len(h.Spec.Interfaces) > 0 {
		at = append(at, "MAC "+h.Spec.Interfaces[0].MAC.String())
	}
	if len(at) == 0 {
		return ""
	}
	return " (" + strings.Join(at, ", ") + ")"
}

func (m *manual) Status(context.Context) (Answer, error) {
	return Answer{Message: "nothing tells whether " + m.name + " is on: look at it" + m.place}, nil
}

func (m *manual) On(context.Context) (Answer, error) {
	return Answer{}, &ByHand{"switch " + m.name + " on" + m.place}
}

func (m *manual) Off(context.Context) (Answer, error) {
	return Answer{}, &ByHand{"switch " + m.name + " off" + m.place}
}

func (m *manual) Cycle(context.Context) (Answer, error) {
	return Answer{}, &ByHand{"switch " + m.name + " on, or off and on again if it is on" + m.place}
}

func (m *manual) NextBoot(_ context.Context, from Device) (Answer, error) {
	if from == Disk {
		return Answer{}, &ByHand{"let it boot its disk"}
	}
	return Answer{}, &ByHand{"let it boot from the network"}
}
