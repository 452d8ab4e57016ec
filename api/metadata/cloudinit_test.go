package metadata

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// cloudInitPackages are cloud-init and what its Python modules import.
func cloudInitPackages() []string {
	return []string{
		"cloud-init", "python3-attr", "python3-certifi", "python3-chardet", "python3-configobj", "python3-idna",
		"python3-jinja2", "python3-json-pointer", "python3-jsonpatch", "python3-jsonschema", "python3-markupsafe",
		"python3-netifaces", "python3-oauthlib", "python3-pyrsistent", "python3-requests", "python3-serial",
		"python3-six", "python3-urllib3", "python3-yaml",
	}
}

const systemPython = "/usr/bin/python3" // what the packages are built for

// seen is what the NoCloud data source of cloud-init found in a seed.
type seen struct {
	InstanceID string   `json:"instanceID"`
	Hostname   string   `json:"hostname"`
	Keys       []string `json:"keys"`
	UserData   string   `json:"userData"`
	MACs       []string `json:"macs"`
	Names      []string `json:"names"`
	// Phone and FQDN are of the configuration that the modules of a first boot get.
	Phone string `json:"phone"`
	FQDN  string `json:"fqdn"`
	// Jinja is what templates read.
	Jinja map[string]string `json:"jinja"`
}

// TestCloudInit: the real cloud-init reads each seed as meant, and its renderers
// make of each network what the record says.
func TestCloudInit(t *testing.T) {
	t.Parallel()
	root := unpackCloudInit(t)
	seeds, out := t.TempDir(), t.TempDir()
	all := cases(t)
	for name, tc := range all {
		files, err := Seed(tc.hardware, subnets(), tc.in)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(seeds, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for f, data := range files {
			if err := os.WriteFile(filepath.Join(seeds, name, f), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), systemPython, filepath.Join("testdata", "feed_cloudinit.py"), seeds, out)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+filepath.Join(root, "usr/lib/python3/dist-packages"))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for name, tc := range all {
		checkSeen(t, filepath.Join(out, name, "seen.json"), tc)
		checkRendered(t, filepath.Join(out, name), tc)
	}
}

func checkSeen(t *testing.T, file string, tc seedCase) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got seen
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	h := tc.hardware
	want := []string{}
	for _, k := range keys(h, tc.in.Keys) {
		want = append(want, string(k))
	}
	if got.InstanceID != tc.in.InstanceID || got.Hostname != h.HostName() || !slices.Equal(got.Keys, want) {
		t.Errorf("%s: cloud-init found %+v", h.Meta.Name, got)
	}
	if got.Phone != tc.in.PhoneHome || (h.Meta.Name == "m7" && got.FQDN != "m7.x") {
		t.Errorf("%s: the modules get the phone %q, fqdn %q", h.Meta.Name, got.Phone, got.FQDN)
	}
	for name, want := range map[string]string{
		"ds.meta_data.name": h.Meta.Name, "ds.meta_data.uuid": h.Meta.UID, "ds.meta_data.hardware_uid": h.Meta.UID,
		"ds.meta_data.instance_id": tc.in.InstanceID, "ds.meta_data.local_hostname": h.HostName(),
		"ds.meta_data.provider_id": tc.in.ProviderID, "ds.meta_data.phone_home_url": tc.in.PhoneHome, "v1.availability_zone": failureDomain(h),
	} {
		if g, ok := got.Jinja[name]; !ok || g != want {
			t.Errorf("%s: {{ %s }} became %q, want %q", h.Meta.Name, name, g, want)
		}
	}
	if tc.in.UserData != "" && got.UserData != tc.in.UserData {
		t.Errorf("%s: user-data became %q", h.Meta.Name, got.UserData)
	}
	for i, m := range got.MACs {
		if !slices.ContainsFunc(h.Spec.Interfaces, func(n hardware.NIC) bool { return n.MAC.String() == m && n.Name == got.Names[i] }) {
			t.Errorf("%s: cloud-init found a NIC %s called %q", h.Meta.Name, m, got.Names[i])
		}
	}
}

// checkRendered looks for the record's addresses, and for one default route where
// there is a gateway, in what each renderer wrote.
func checkRendered(t *testing.T, dir string, tc seedCase) {
	t.Helper()
	for renderer, defaultRoute := range map[string]string{
		"eni": "post-up route add default gw", "netplan": "to: 0.0.0.0/0", "networkd": "Destination=0.0.0.0/0",
	} {
		var all strings.Builder
		err := filepath.WalkDir(filepath.Join(dir, renderer), func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(p)
			all.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		gateway := 0
		for _, n := range tc.hardware.Spec.Interfaces {
			for _, p := range n.Addresses {
				if !strings.Contains(all.String(), p.String()) {
					t.Errorf("%s, %s: no %s in\n%s", tc.hardware.Meta.Name, renderer, p, all.String())
				}
			}
			if len(ownSubnets(n, subnets())) > 0 {
				gateway = 1
			}
		}
		if got := strings.Count(all.String(), defaultRoute); got != gateway {
			t.Errorf("%s, %s: %d default routes, want %d, in\n%s", tc.hardware.Meta.Name, renderer, got, gateway, all.String())
		}
	}
}

// unpackCloudInit is the folder with Debian's cloud-init, unpacked and not
// installed: it would start a service.
func unpackCloudInit(t *testing.T) string {
	t.Helper()
	root, err := cachedCloudInit(t.Context())
	switch {
	case err == nil:
	case os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return root
}

func cachedCloudInit(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cache := os.Getenv("RACKSTRAP_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache", "rackstrap")
	}
	root := filepath.Join(cache, "cloud-init")
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(cache, ".cloud-init-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	debs, tree := filepath.Join(work, "debs"), filepath.Join(work, "tree")
	if err := os.Mkdir(debs, 0o755); err != nil {
		return "", err
	}
	if err := run(ctx, debs, "apt-get", append([]string{"download", "-q"}, cloudInitPackages()...)...); err != nil {
		return "", err
	}
	list, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, deb := range list {
		if err := run(ctx, work, "dpkg", "-x", deb, tree); err != nil {
			return "", err
		}
	}
	if err := os.Rename(tree, root); err != nil {
		if _, serr := os.Stat(root); serr != nil { // nobody else was faster
			return "", err
		}
	}
	return root, nil
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, args[0], err, said)
	}
	return nil
}
