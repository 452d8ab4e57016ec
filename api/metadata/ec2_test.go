package metadata

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// TestEC2Tree compares what each machine is told with a golden file.
func TestEC2Tree(t *testing.T) {
	t.Parallel()
	for name, tc := range cases(t) {
		h := *tc.hardware
		h.Status.Install = &hardware.InstallRef{UID: tc.in.InstanceID}
		if tc.in.ProviderID != "" {
			h.Status.Claim = &hardware.ClaimRef{ID: "capi-web-1"}
		}
		tree := ec2Tree(&h, subnets(), &Config{Keys: tc.in.Keys, Installation: "01JC0000000000000000000000"})
		if tree["provider-id"] != tc.in.ProviderID {
			t.Errorf("%s: provider-id %q, the seed has %q", name, tree["provider-id"], tc.in.ProviderID)
		}
		var b strings.Builder
		for _, p := range slices.Sorted(maps.Keys(tree)) {
			b.WriteString(p + " = " + strings.ReplaceAll(tree[p], "\n", " | ") + "\n")
		}
		golden(t, filepath.Join("testdata", name, "ec2"), []byte(b.String()))
	}
}

func TestEC2Listings(t *testing.T) {
	t.Parallel()
	tc := cases(t)["claimed"]
	tree := ec2Tree(tc.hardware, subnets(), &Config{Keys: tc.in.Keys})
	const macs = "network/interfaces/macs/52:54:00:12:34:66"
	for path, want := range map[string]string{
		"":                              "hardware-uid\nhostname\ninstance-id\nlocal-hostname\nlocal-ipv4\nmac\nname\nnetwork/\nplacement/\npublic-keys/\nuuid",
		"instance-id":                   "01JH0000000000000000000006",
		"public-keys":                   "0=key-0\n1=key-1",
		"public-keys/0":                 "openssh-key",
		"public-keys/1/openssh-key":     tc.in.Keys[0],
		"network":                       "interfaces/",
		"network/interfaces/macs":       "52:54:00:12:34:66/",
		macs:                            "device-number\nlocal-hostname\nlocal-ipv4s\nmac\nsubnet-ipv4-cidr-block",
		macs + "/local-ipv4s":           "10.0.0.66",
		"placement/availability-zone":   "r1",
		"public-keys/2":                 "-",
		"public-keys/0/openssh-key/x":   "-",
		"instance":                      "-",
		"public-ipv4":                   "-",
		"ami-id":                        "-",
		"iam/security-credentials":      "-",
		"public-keys/00/openssh-key":    "-",
		"network/interfaces/macs/52:54": "-",
	} {
		got, ok := tree.get(split(path))
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	many := tree
	for i := range 12 {
		many["public-keys/"+string(rune('0'+i%10))+strings.Repeat("0", i/10)+"/openssh-key"] = "k"
	}
	if list, _ := many.get([]string{"public-keys"}); !strings.HasSuffix(list, "9=key-9\n10=key-10") {
		t.Errorf("ten and more keys: %q", list)
	}
}

func TestPublicAddress(t *testing.T) {
	t.Parallel()
	for a, want := range map[string]bool{"10.0.0.1": false, "192.168.1.1": false, "172.16.0.1": false, "100.64.0.1": false, "169.254.1.1": false, "127.0.0.1": false, "192.0.3.1": true, "100.128.0.1": true} {
		if got := public(addrs(a)[0]); got != want {
			t.Errorf("%s: %t", a, got)
		}
	}
}
