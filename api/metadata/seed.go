package metadata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rackstrap/rackstrap/hardware"
)

// The names of the files of a NoCloud seed.
const (
	FileMetaData      = "meta-data"
	FileUserData      = "user-data"
	FileVendorData    = "vendor-data"
	FileNetworkConfig = "network-config"
)

// FileNames lists the files of a seed, sorted.
func FileNames() []string {
	return []string{FileMetaData, FileNetworkConfig, FileUserData, FileVendorData}
}

// Files are the files of one seed by name. They may hold secrets.
type Files map[string][]byte

// Input is what an install adds to the record.
type Input struct {
	// InstanceID is new for each install: cloud-init does its first-boot work once
	// per instance id.
	InstanceID string
	// UserData is handed on byte by byte; the record's, then a default, where empty.
	UserData string
	// VendorData is handed on byte by byte.
	VendorData string
	// MetaData is a YAML mapping that replaces ours; instance-id, local-hostname and
	// public-keys are put before it where it lacks them.
	MetaData string
}

// Seed makes the files of a NoCloud seed for one install of h. All of
// [FileNames] are there; vendor-data may be empty. It errs without an instance
// id, and for meta-data that is no YAML mapping.
func Seed(h *hardware.Hardware, subnets []*hardware.Subnet, in Input) (Files, error) {
	if in.InstanceID == "" {
		return nil, errors.New("instance id: is empty (every install needs a new one)")
	}
	meta, err := metaData(h, in)
	if err != nil {
		return nil, err
	}
	user, err := userData(h, subnets, in)
	if err != nil {
		return nil, err
	}
	network, err := NetworkConfig(h, subnets)
	if err != nil {
		return nil, err
	}
	return Files{
		FileMetaData: meta, FileUserData: user,
		FileVendorData: []byte(in.VendorData), FileNetworkConfig: network,
	}, nil
}

type metaDoc struct {
	InstanceID    text   `yaml:"instance-id,omitempty"`
	LocalHostname text   `yaml:"local-hostname,omitempty"`
	PublicKeys    []text `yaml:"public-keys,omitempty"`
}

// metaData has the record's keys too: cloud-init gives them to the default user
// also where the operator's user-data does not mention any.
func metaData(h *hardware.Hardware, in Input) ([]byte, error) {
	doc := metaDoc{InstanceID: text(in.InstanceID), LocalHostname: text(h.HostName()), PublicKeys: keys(h)}
	if in.MetaData != "" {
		return complete(in.MetaData, doc)
	}
	return marshal(doc)
}

// complete puts the keys that given lacks before it, and changes nothing else.
func complete(given string, doc metaDoc) ([]byte, error) {
	have, line, column, err := topKeys(given)
	if err != nil {
		return nil, err
	}
	add := 0
	for _, own := range []struct {
		key   string
		empty bool
		leave func()
	}{
		{"instance-id", doc.InstanceID == "", func() { doc.InstanceID = "" }},
		{"local-hostname", doc.LocalHostname == "", func() { doc.LocalHostname = "" }},
		{"public-keys", len(doc.PublicKeys) == 0, func() { doc.PublicKeys = nil }},
	} {
		switch {
		case slices.Contains(have, own.key):
			own.leave()
		case !own.empty:
			add++
		}
	}
	if add == 0 {
		return []byte(given), nil
	}
	own, err := marshal(doc)
	if err != nil {
		return nil, err
	}
	noPlace := errors.New("metaData: has no place for instance-id (write one `key: value` a line)")
	lines := strings.SplitAfter(given, "\n")
	if line > len(lines) { // to YAML 1.1, a carriage return or U+2028 ends a line too
		return nil, noPlace
	}
	out := slices.Clone(lines[:line-1])
	for l := range strings.Lines(string(own)) {
		out = append(out, strings.Repeat(" ", column-1)+l)
	}
	whole := strings.Join(append(out, lines[line-1:]...), "")
	if now, _, _, err := topKeys(whole); err != nil || len(now) != len(have)+add {
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

type cloudConfig struct {
	Hostname       text   `yaml:"hostname"`
	FQDN           text   `yaml:"fqdn,omitempty"`
	ManageEtcHosts text   `yaml:"manage_etc_hosts"`
	Keys           []text `yaml:"ssh_authorized_keys,omitempty"`
}

// userData is the install's, then the record's, then a default that gives the
// system its name and the default user its keys.
func userData(h *hardware.Hardware, subnets []*hardware.Subnet, in Input) ([]byte, error) {
	for _, given := range []string{in.UserData, h.Spec.UserData} {
		if given != "" {
			return []byte(given), nil
		}
	}
	label, domain, _ := strings.Cut(h.HostName(), ".")
	cfg := cloudConfig{Hostname: text(label), ManageEtcHosts: "localhost", Keys: keys(h)}
	if domain == "" {
		domain = firstDomain(h, subnets)
	}
	if domain != "" {
		cfg.FQDN = text(label + "." + domain)
	}
	body, err := marshal(cfg)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte("#cloud-config\n"), body}, nil), nil
}

// firstDomain is the domain of the first subnet that the machine has an address in.
func firstDomain(h *hardware.Hardware, subnets []*hardware.Subnet) string {
	for _, n := range h.Spec.Interfaces {
		for _, s := range ownSubnets(n, subnets) {
			if s.Spec.Domain != "" {
				return s.Spec.Domain
			}
		}
	}
	return ""
}

func keys(h *hardware.Hardware) []text {
	var out []text
	for _, k := range h.Spec.SSHKeys {
		out = append(out, text(strings.TrimSpace(k)))
	}
	return out
}
