package metadata

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/rackstrap/rackstrap/hardware"
)

var update = flag.Bool("update", false, "write the golden files (the test still fails)")

func TestSeed(t *testing.T) {
	t.Parallel()
	for name, tc := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := Seed(tc.hardware, subnets(), tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if len(files) != len(FileNames()) {
				t.Fatalf("%d files, want %v", len(files), FileNames())
			}
			for _, f := range FileNames() {
				golden(t, filepath.Join("testdata", name, f), files[f])
			}
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%s: got\n%s\nwant (error %v)\n%s", file, got, err, want)
}

func TestUserDataOrder(t *testing.T) {
	t.Parallel()
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{UserData: "#!/bin/sh\ntrue"}}
	for _, tc := range []struct{ given, want string }{{"", "#!/bin/sh\ntrue"}, {"\x00\xff", "\x00\xff"}} {
		files, err := Seed(h, nil, Input{InstanceID: "i", UserData: tc.given})
		if err != nil || string(files[FileUserData]) != tc.want {
			t.Errorf("given %q: %q, %v, want %q", tc.given, files[FileUserData], err, tc.want)
		}
	}
}

func TestMetaData(t *testing.T) {
	t.Parallel()
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}}
	const name = "name: \"m1\"\n"
	const both = "instance-id: \"i\"\nlocal-hostname: \"m1\"\n" + name
	for name, tc := range map[string]struct{ given, want, err string }{
		"none":        {"", both, ""},
		"complete":    {"{}", "", "is not a YAML mapping"},
		"all there":   {"instance-id: x\nname: z\nlocal-hostname: y", "instance-id: x\nname: z\nlocal-hostname: y", ""},
		"one missing": {"instance-id: x\n", "local-hostname: \"m1\"\n" + name + "instance-id: x\n", ""},
		"one key":     {"a: b", both + "a: b", ""},
		"comment":     {"# c\n\na: b\nc: d\n", "# c\n\n" + both + "a: b\nc: d\n", ""},
		"document":    {"---\na: b\nc:\n- d\n", "---\n" + both + "a: b\nc:\n- d\n", ""},
		"indented":    {"  a: b\n", "  instance-id: \"i\"\n  local-hostname: \"m1\"\n  " + name + "  a: b\n", ""},
		"inner key":   {"a:\n  instance-id: x\nlocal-hostname: y\n", "instance-id: \"i\"\n" + name + "a:\n  instance-id: x\nlocal-hostname: y\n", ""},
		"list":        {"- a", "", "is not a YAML mapping"},
		"text":        {"hello", "", "is not a YAML mapping"},
		"broken":      {"a: [", "", "is not a YAML mapping"},
		"two":         {"a: b\n---\nc: d\n", "", "is not a YAML mapping"},
		"empty":       {"# nothing\n", "", "is not a YAML mapping"},
		"odd break":   {"# a\u2028# b\u2028a: b\n", "", "no place"},
		"explicit":    {"? a\n: b\n", "", "no place"},
		"deep":        {"a: " + strings.Repeat("[", 20000), "", "more than"},
		"deeper":      {"a:\n " + strings.Repeat("- ", 20000), "", "is not a YAML mapping"},
		"long":        {"a: " + strings.Repeat("x", 300<<10), "", "more than"},
	} {
		files, err := Seed(h, nil, Input{InstanceID: "i", MetaData: tc.given})
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want one with %q", name, err, tc.err)
			}
			continue
		}
		if err != nil || string(files[FileMetaData]) != tc.want {
			t.Errorf("%s: got %q, %v\nwant %q", name, files[FileMetaData], err, tc.want)
		}
	}
	if _, err := Seed(h, nil, Input{}); err == nil {
		t.Error("no instance id: no error")
	}
}

// FuzzSeed: whatever a record says, each value comes back as the text it was, and
// nothing becomes a key of its own.
func FuzzSeed(f *testing.F) {
	seeds := cases(f)
	for _, tc := range seeds {
		f.Add(tc.hardware.Meta.Name, key, tc.in.InstanceID, tc.hardware.Spec.Interfaces[0].Name)
	}
	f.Add("a\nb: c", "k\r\n- x", "\"\\\u2028", "{")
	if len(seeds) == 0 {
		f.Fatal("empty corpus")
	}
	f.Fuzz(func(t *testing.T, name, sshKey, id, nic string) {
		if id == "" {
			return
		}
		h := &hardware.Hardware{Meta: hardware.Meta{Name: name, Labels: map[string]string{nic: name}}, Spec: hardware.Spec{
			SSHKeys: []string{sshKey}, Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, 1}, Name: nic}},
		}}
		files, err := Seed(h, nil, Input{InstanceID: id})
		if err != nil {
			t.Fatal(err)
		}
		var meta struct {
			ID     string            `yaml:"instance-id"`
			Name   string            `yaml:"local-hostname"`
			Record string            `yaml:"name"`
			Labels map[string]string `yaml:"labels"`
			Keys   []string          `yaml:"public-keys"`
		}
		strict(t, files[FileMetaData], &meta)
		valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
		if len(meta.Keys) != 1 || !same(meta.ID, id) || !same(meta.Name, name) || !same(meta.Record, name) || len(meta.Labels) != 1 || !same(meta.Keys[0], strings.TrimSpace(sshKey)) {
			t.Fatalf("%q %q %q became %+v", valid(id), valid(name), valid(sshKey), meta)
		}
		var net struct {
			Version   int                       `yaml:"version"`
			Ethernets map[string]map[string]any `yaml:"ethernets"`
		}
		strict(t, files[FileNetworkConfig], &net)
		if net.Version != 2 || len(net.Ethernets) != 1 || len(net.Ethernets["nic0"]) > 3 {
			t.Fatalf("network config became %+v", net)
		}
	})
}

// same compares up to the replacement of bytes that are no UTF-8, which differs
// in their number only.
func same(got, want string) bool {
	squeeze := func(s string) string {
		return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\ufffd", "")
	}
	return squeeze(got) == squeeze(want)
}

func strict(t *testing.T, data []byte, v any) {
	t.Helper()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
}
