package metadata

import (
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

type cloudConfig struct {
	Hostname       text       `yaml:"hostname"`
	FQDN           text       `yaml:"fqdn,omitempty"`
	ManageEtcHosts text       `yaml:"manage_etc_hosts"`
	Keys           []text     `yaml:"ssh_authorized_keys,omitempty"`
	PhoneHome      *phoneHome `yaml:"phone_home,omitempty"`
}

// phoneHome is cloud-init's module of that name. It runs in the last stage of the
// first boot of an instance, and never again.
type phoneHome struct {
	URL text `yaml:"url"`
	// Tries, 3 s apart. Few: the end of the first boot waits for them where the
	// system's network does not reach us.
	Tries int `yaml:"tries"`
}

func newPhoneHome(url string) *phoneHome {
	if url == "" {
		return nil
	}
	return &phoneHome{URL: text(url), Tries: 5}
}

// userData is the install's, then the record's, then a default that gives the
// system its name, the default user its keys, and phones home.
func userData(h *hardware.Hardware, subnets []*hardware.Subnet, in Input) ([]byte, error) {
	if given := givenUserData(h, in); given != "" {
		return []byte(given), nil
	}
	label, domain := names(h, subnets)
	cfg := cloudConfig{Hostname: text(label), ManageEtcHosts: "localhost", Keys: keys(h, in.Keys), PhoneHome: newPhoneHome(in.PhoneHome)}
	if domain != "" {
		cfg.FQDN = text(label + "." + domain)
	}
	return cloudConfigFile(cfg)
}

func givenUserData(h *hardware.Hardware, in Input) string {
	if in.UserData != "" {
		return in.UserData
	}
	return h.Spec.UserData
}

// vendorData is the install's. Where it has none and the user-data is not ours,
// it phones home: cloud-init takes from vendor-data the modules that user-data does
// not mention, unless that says `vendor_data: {enabled: false}`.
func vendorData(h *hardware.Hardware, in Input) ([]byte, error) {
	if in.VendorData != "" || in.PhoneHome == "" || givenUserData(h, in) == "" {
		return []byte(in.VendorData), nil
	}
	return cloudConfigFile(struct {
		PhoneHome *phoneHome `yaml:"phone_home"`
	}{newPhoneHome(in.PhoneHome)})
}

func cloudConfigFile(v any) ([]byte, error) {
	body, err := marshal(v)
	if err != nil {
		return nil, err
	}
	return append([]byte("#cloud-config\n"), body...), nil
}

// names are the machine's host label and its domain: the host name's own, else that
// of the first subnet that the machine has an address in.
func names(h *hardware.Hardware, subnets []*hardware.Subnet) (label, domain string) {
	label, domain, _ = strings.Cut(h.HostName(), ".")
	if domain == "" {
		domain = firstDomain(h, subnets)
	}
	return label, domain
}

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

// keys are the record's SSH keys and the installation's, each once: what makes a
// key is its type and its base64, not the comment.
func keys(h *hardware.Hardware, installation []string) []text {
	var out []text
	seen := map[string]bool{}
	for _, k := range slices.Concat(h.Spec.SSHKeys, installation) {
		k = strings.TrimSpace(k)
		id := k
		if f := strings.Fields(k); len(f) >= 2 {
			id = f[0] + " " + f[1]
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, text(k))
		}
	}
	return out
}
