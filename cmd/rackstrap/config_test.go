package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "rackstrap.yaml")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSampleConfigIsTheDefault keeps what init writes true.
func TestSampleConfigIsTheDefault(t *testing.T) {
	t.Parallel()
	got, err := loadConfig(writeConfig(t, sampleConfig))
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	got.Interfaces, got.Worker.KernelArgs, got.Worker.Consoles, got.Metadata.SSHKeys = nil, nil, nil, nil // [] in the file
	got.DHCP.Programs = nil                                                                               // {} in the file
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"dhpc: {enabled: false}":                      "dhpc",
		"data: var/lib":                               `data: "var/lib" is not an absolute path`,
		"http: {listen: 7080}":                        `"7080" is not a listen address (write it as ":7080"`,
		"log: {level: loud}":                          `log.level: "loud" is not known`,
		"http: {bootRate: 2001}":                      "http.bootRate: 2001 is not a rate in MB/s",
		"worker: {kernelArgs: ['a b']}":               "which a boot script would read as its own",
		"worker: {kernelArgs: [rackstrap.ca=x]}":      "is set by the appliance itself",
		"worker: {consoles: [console=tty0]}":          "worker.consoles[0]: \"console=tty0\" is not a kernel console",
		"metadata: {sshKeys: [a b]}":                  `metadata.sshKeys[0]: "a b" is not a public key line`,
		`dhcp: {programs: {"x64": a.efi}}`:            `dhcp.programs: "x64" is not an architecture code`,
		`dhcp: {programs: {"6": ../a.efi}}`:           `dhcp.programs.6: "../a.efi" is not the name of a boot program`,
		`dhcp: {programs: {"6": a.efi, "06": b.efi}}`: "dhcp.programs: architecture 6 has both",
		"interfaces: {a: b}":                          "interfaces",
		"[":                                           "rackstrap.yaml",
		"data: /a\n---\ndata: /b":                     "2 documents",
	} {
		_, err := loadConfig(writeConfig(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want it to say %q", text, err, want)
		}
	}
}

// The consoles that init once wrote as the default must not be those of arm64.
func TestConsolesOfAnOldConfig(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`worker: {consoles: ["tty0", "ttyS0,115200"]}`: 0,
		`worker: {consoles: ["tty0", "ttyS1,115200"]}`: 2,
	} {
		if c, err := loadConfig(writeConfig(t, text)); err != nil || len(c.Worker.Consoles) != want {
			t.Errorf("%s: %q, %v", text, c.Worker.Consoles, err)
		}
	}
}

func TestEmptyConfigIsTheDefault(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# only a comment\n"} {
		c, err := loadConfig(writeConfig(t, text))
		if err != nil || c.Data != defaultConfig().Data {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	if _, err := loadConfig(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "rackstrap init") {
		t.Errorf("a missing file that was named: %v", err)
	}
}

// The keys are numbers, with quotes or without.
func TestConfigPrograms(t *testing.T) {
	t.Parallel()
	c, err := loadConfig(writeConfig(t, "dhcp: {programs: {6: bootia32.efi, \"15\": vendor/ia32.efi}}"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.DHCP.programs()
	if want := map[uint16]string{6: "bootia32.efi", 15: "vendor/ia32.efi"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
