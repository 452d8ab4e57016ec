package metadata

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rackstrap/rackstrap/hardware"
)

// entry is one key of the meta-data.
type entry struct {
	key   string
	value any
}

// ownMetaData is what we say of an install, in the order in which it is written.
// Nothing in it is a secret: cloud-init shows the meta-data to every user of the
// system (/run/cloud-init/instance-data.json). Templates read it as
// ds.meta_data.KEY, dashes as underscores: local-hostname is
// ds.meta_data.local_hostname too.
func ownMetaData(h *hardware.Hardware, in Input) []entry {
	var out []entry
	add := func(key, value string) {
		if value != "" {
			out = append(out, entry{key, text(value)})
		}
	}
	add("instance-id", in.InstanceID)
	add("local-hostname", h.HostName())
	add("name", h.Meta.Name)
	add("uuid", h.Meta.UID)
	add("hardware-uid", h.Meta.UID)
	add("provider-id", in.ProviderID)
	// cloud-init's name for a failure domain, also read as v1.availability_zone
	add("availability-zone", failureDomain(h))
	add("phone-home-url", in.PhoneHome)
	if len(h.Meta.Labels) > 0 {
		labels := map[text]text{}
		for k, v := range h.Meta.Labels {
			labels[text(k)] = text(v)
		}
		out = append(out, entry{"labels", labels})
	}
	// cloud-init gives them to the default user also where the operator's user-data
	// does not mention any
	if k := keys(h, in.Keys); len(k) > 0 {
		out = append(out, entry{"public-keys", k})
	}
	return out
}

// failureDomain is the machine's rack.
func failureDomain(h *hardware.Hardware) string {
	if rack := h.Meta.Labels["rack"]; rack != "" {
		return rack
	}
	return h.Spec.Rack
}

// metaData is ours, or the install's with what it lacks of ours before it.
func metaData(h *hardware.Hardware, in Input) ([]byte, error) {
	own := ownMetaData(h, in)
	if in.MetaData == "" {
		return marshalEntries(own)
	}
	return complete(in.MetaData, own)
}

func marshalEntries(list []entry) ([]byte, error) {
	var out []byte
	for _, e := range list {
		b, err := marshal(map[string]any{e.key: e.value})
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// complete puts the keys that given lacks before it, and changes nothing else.
func complete(given string, own []entry) ([]byte, error) {
	have, line, column, err := topKeys(given)
	if err != nil {
		return nil, err
	}
	own = slices.DeleteFunc(own, func(e entry) bool { return slices.Contains(have, e.key) })
	if len(own) == 0 {
		return []byte(given), nil
	}
	add, err := marshalEntries(own)
	if err != nil {
		return nil, err
	}
	noPlace := errors.New("metaData: has no place for " + own[0].key + " (write one `key: value` a line)")
	lines := strings.SplitAfter(given, "\n")
	if line > len(lines) { // to YAML 1.1, a carriage return or U+2028 ends a line too
		return nil, noPlace
	}
	out := slices.Clone(lines[:line-1])
	for l := range strings.Lines(string(add)) {
		out = append(out, strings.Repeat(" ", column-1)+l)
	}
	whole := strings.Join(append(out, lines[line-1:]...), "")
	if now, _, _, err := topKeys(whole); err != nil || len(now) != len(have)+len(own) {
		return nil, noPlace
	}
	return []byte(whole), nil
}

// Limits on meta-data that is parsed; the parser's tree takes 200 bytes a value.
const (
	maxMetaData  = 256 << 10
	maxMetaParts = 10000
)

// topKeys are the keys of a YAML block mapping, and where the first one stands
// (both from 1).
func topKeys(s string) (have []string, line, column int, err error) {
	if len(s) > maxMetaData || strings.Count(s, "\n")+strings.Count(s, ",")+strings.Count(s, "[")+strings.Count(s, "{") > maxMetaParts {
		return nil, 0, 0, fmt.Errorf("metaData: has more than %d bytes or %d lines and values", maxMetaData, maxMetaParts)
	}
	bad := errors.New("metaData: is not a YAML mapping (write it as `key: value` lines, like `local-hostname: m1`)")
	var doc, next yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(s))
	if dec.Decode(&doc) != nil || !errors.Is(dec.Decode(&next), io.EOF) {
		return nil, 0, 0, bad
	}
	m := doc.Content[0]
	if m.Kind != yaml.MappingNode || m.Style&yaml.FlowStyle != 0 || len(m.Content) == 0 {
		return nil, 0, 0, bad
	}
	for i := 0; i < len(m.Content); i += 2 {
		have = append(have, m.Content[i].Value)
	}
	return have, m.Content[0].Line, m.Content[0].Column, nil
}
