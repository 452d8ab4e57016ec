package metadata

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// TestCloudInitEC2: the Ec2 data source of the real cloud-init, configured as the
// documentation says, reads what we serve; its phone_home module reaches us.
func TestCloudInitEC2(t *testing.T) {
	t.Parallel()
	root := unpackCloudInit(t)
	k := newRack(t)
	m := k.machines["10.0.0.6"]
	m.Meta.Labels = map[string]string{"rack": "r1"}
	m.Spec.Hostname = "web.prod.example"
	m.Spec.Interfaces = append(m.Spec.Interfaces, hardware.NIC{MAC: mac(t, "52:54:00:00:00:02"), Addresses: prefixes("10.9.0.6/16", "10.9.0.7/16")})
	m.Status.Claim = &hardware.ClaimRef{ID: "c1"}
	k.machines["127.0.0.1"] = m
	srv := httptest.NewServer(k.handler(time.Now))
	defer srv.Close()

	cmd := exec.CommandContext(t.Context(), systemPython, filepath.Join("testdata", "ec2_cloudinit.py"), srv.URL, t.TempDir(), srv.URL+"/seed/T-1/phone-home")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "no_proxy=127.0.0.1", "PYTHONPATH="+filepath.Join(root, "usr/lib/python3/dist-packages"))
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var got struct {
		InstanceID, Hostname, FQDN, Zone, UserData, TokenUserData, Name, Strict string
		Keys                                                                    []string
		Network                                                                 struct {
			Version   int
			Ethernets map[string]struct {
				DHCP4, DHCP6 bool
				Addresses    []string
			}
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	const userData = "#cloud-config\n# of u-10.0.0.6\n\x00"
	if got.InstanceID != "i-10.0.0.6" || got.Hostname != "web" || got.FQDN != "web.prod.example" || got.Zone != "r1" || got.Name != "m6" ||
		got.UserData != userData || got.TokenUserData != userData || got.Strict != "false" {
		t.Errorf("cloud-init found %+v", got)
	}
	slices.Sort(got.Keys)
	if want := []string{key, "ssh-ed25519 AAAAinstallation ops"}; len(got.Keys) != 2 || !slices.Contains(got.Keys, want[0]) || !slices.Contains(got.Keys, want[1]) {
		t.Errorf("keys %q, want %q", got.Keys, want)
	}
	eth := got.Network.Ethernets
	if len(eth) != 2 || !eth["eth0"].DHCP4 || eth["eth0"].DHCP6 || len(eth["eth0"].Addresses) != 0 || !slices.Equal(eth["eth1"].Addresses, []string{"10.9.0.7/16"}) {
		t.Errorf("network %+v", got.Network)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Equal(k.calls, []string{"127.0.0.1"}) {
		t.Errorf("phone calls %v", k.calls)
	}
}
