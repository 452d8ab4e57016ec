package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
)

// rackFile is a rack as an operator writes it.
const rackFile = `apiVersion: rackstrap/v1
kind: Subnet
metadata: {name: lan}
spec:
  prefix: %s
  gateway: %s
  dns: [%[2]s]
---
apiVersion: rackstrap/v1
kind: Hardware
metadata:
  name: m1
  labels: {tier: test}
spec:
  interfaces:
    - mac: %s
      addresses: [%s]
  rack: a1
  position: "12"
  sshKeys: [%q]
  power:
    driver: webhook
    url: %s
    secret: %s
`

// TestALifeThroughTheCLI: a rack in one file, applied twice; a machine that is off
// is claimed, installed until its system phones home, and given back, over a kill -9
// of the daemon; then every byte of its disks is zero. All of it is typed.
func TestALifeThroughTheCLI(t *testing.T) {
	t.Parallel()
	r := makeRack(t, "life", rig.NewEmptyRack)
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	o := &operator{t, ctx, r}
	img, err := lab.DebianImage(ctx, "", func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Lab.AddMachine(ctx, lab.MachineSpec{Name: "m1", Firmware: lab.BIOS, CPUs: 2, Disks: []lab.DiskSpec{
		{Size: 4 << 30, Serial: "D1"},
		{Size: 1 << 30, Serial: "D2", From: oldData(t, 1<<30), NoDiscard: true},
	}})
	if err != nil {
		t.Fatal(err)
	}

	o.register(m)
	if got := o.run("image", "add", rig.ImageName, img.Path, "--sha256", img.SHA256, "--os", "debian", "--os-version", "12"); !strings.Contains(got, "image/"+rig.ImageName) {
		t.Errorf("image add: %s", got)
	}
	if got := o.run("validate", "m1", "--image", rig.ImageName, "--disk", "serial=D1"); got == "" {
		t.Error("validate said nothing")
	}
	o.install(m)
	o.release(m)
	for i := range 2 {
		if err := lab.Zero(m.Disk(i)); err != nil {
			t.Errorf("disk %d: %v", i, err)
		}
	}
}

// register applies the rack file twice.
func (o *operator) register(m *lab.Machine) {
	o.t.Helper()
	r := o.r
	h := r.Hardware(m, 11)
	file := filepath.Join(workDir(o.t), "rack.yaml")
	text := fmt.Sprintf(rackFile, r.Lab.Subnet(), r.Lab.Gateway(), m.MAC(), h.Spec.Interfaces[0].Addresses[0], r.Key.Line, h.Spec.Power.URL, h.Spec.Power.Secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	for _, word := range []string{"created", "unchanged"} {
		want := fmt.Sprintf("subnet/lan %s\nhardware/m1 %[1]s\n", word)
		if got := o.run("apply", "-f", file); got != want {
			o.t.Errorf("apply says %q, want %q", got, want)
		}
	}
	// what is printed can be applied again, though it hides the secret
	printed := filepath.Join(filepath.Dir(file), "printed.yaml")
	text = o.run("hardware", "get", "m1", "-o", "yaml")
	if strings.Contains(text, h.Spec.Power.Secret) {
		o.t.Error("the webhook's secret is printed")
	}
	if err := os.WriteFile(printed, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	if got := o.run("apply", "-f", printed); got != "hardware/m1 unchanged\n" {
		o.t.Errorf("apply of what was printed says %q", got)
	}
	o.power("off")
}

// install takes the machine, which is off, to a system that phoned home.
func (o *operator) install(m *lab.Machine) {
	o.t.Helper()
	if got := o.run("claim", "create", "web-1", "--owner", "lab/web", "-l", "tier=test"); got != "claim/web-1 has hardware/m1\n" {
		o.t.Errorf("claim create says %q", got)
	}
	installed := o.begin("provision", "m1", "--image", rig.ImageName, "--disk", "serial=D1", "--claim", "web-1", "--phone-home", "--wait")
	o.sees([]string{"timeline", "m1", "--follow"}, "cycle, next boot from network")
	o.explains("no packet came yet")
	o.sees([]string{"timeline", "m1", "--follow"}, "action started", "write-image")
	o.explains("write-image")
	o.backup()
	if err := installed(); err != nil {
		o.t.Fatal(err)
	}
	if got := o.states(); got.State != hardware.StateProvisioned || got.OSUp.IsZero() {
		o.t.Errorf("after provision --wait: %+v", got)
	}
	o.power("on")
	if got := o.run("issue", "list"); strings.Contains(got, "m1") {
		o.t.Errorf("there are issues: %s", got)
	}
	o.timeline(hardware.ReasonClaimed, hardware.ReasonWorkflowCreated, hardware.ReasonPowerDone, hardware.ReasonBootStarted, hardware.ReasonScriptSent,
		hardware.ReasonWorkerConnected, hardware.ReasonWorkflowStarted, hardware.ReasonActionSucceeded, hardware.ReasonWorkflowSucceeded, hardware.ReasonOSUp)
	o.run("explain", "m1")
	if text, err := os.ReadFile(m.Disk(0)); err != nil || len(text) < 512 || text[510] != 0x55 {
		o.t.Errorf("there is no boot sector on the installed disk (%v)", err)
	}
}

// explains wants the words in the first line of what explain says.
func (o *operator) explains(words string) {
	o.t.Helper()
	if first, _, _ := strings.Cut(o.run("explain", "m1"), "\n"); !strings.Contains(first, words) {
		o.t.Errorf("explain begins with %q, which has no %q", first, words)
	}
}

// backup saves the records while the machine is installed, and restores them beside.
func (o *operator) backup() {
	o.t.Helper()
	dir := workDir(o.t)
	pass, file := filepath.Join(dir, "pass"), filepath.Join(dir, "rack.tar.zst")
	if err := os.WriteFile(pass, []byte("correct horse battery staple\n"), 0o600); err != nil {
		o.t.Fatal(err)
	}
	o.run("backup", file, "--passphrase-file", pass)
	o.run("restore", file, "--data", filepath.Join(dir, "restored"), "--passphrase-file", pass)
}

// timeline wants these Reasons in this order, from the machine's first event on.
func (o *operator) timeline(want ...hardware.Reason) {
	o.t.Helper()
	if last := o.run("timeline", "m1"); !strings.Contains(last, "cycle, next boot from network") || !strings.Contains(last, "phoned home from ") {
		o.t.Error("the timeline's last part does not go from power to the installed system")
	}
	var tl api.Timeline
	o.get(&tl, "timeline", "m1", "--all")
	left := want
	for _, b := range tl.Boots {
		if !slices.IsSortedFunc(b.Lines, func(a, b api.TimelineLine) int { return a.First.Compare(b.First) }) {
			o.t.Errorf("boot %s is not in order", b.Boot)
		}
		for _, l := range b.Lines {
			if len(left) > 0 && l.Reason == left[0] {
				left = left[1:]
			}
		}
	}
	if len(left) > 0 {
		o.t.Errorf("the timeline has not, in this order: %v", left)
	}
}

// release gives the machine back; the daemon is killed in the middle of the wipe.
func (o *operator) release(m *lab.Machine) {
	o.t.Helper()
	_, workflow, ok := strings.Cut(strings.TrimSpace(o.run("release", "m1", "--claim", "web-1", "--reason", "the test is over")), "hardware/m1 is wiped by workflow/")
	if !ok {
		o.t.Fatal("release does not name the workflow that wipes")
	}
	released := o.begin("release", "m1", "--claim", "web-1", "--wait") // the same again, in another terminal
	o.sees([]string{"events", "--workflow", workflow, "--follow"}, "action started", "wipe")
	if err := o.r.Appliance.Kill(); err != nil {
		o.t.Fatal(err)
	}
	if err := o.r.Appliance.Start(o.ctx); err != nil {
		o.t.Fatal(err)
	}
	if err := released(); err != nil {
		o.t.Fatal(err)
	}
	got := o.states()
	if got.State != hardware.StateAvailable || got.Claim != nil || got.Install != nil || got.Wiped == nil || len(got.Wiped.Disks) != 2 {
		o.t.Fatalf("after release --wait: %+v", got)
	}
	// the kernel names disks in any order
	for serial, size := range map[string]int64{"D1": 4 << 30, "D2": 1 << 30} {
		if !slices.ContainsFunc(got.Wiped.Disks, func(d hardware.WipedDisk) bool { return d.Serial == serial && d.Bytes == size && d.Verified > 0 }) {
			o.t.Errorf("the proof does not have disk %s of %d bytes: %+v", serial, size, got.Wiped.Disks)
		}
	}
	var c hardware.Claim
	if o.get(&c, "claim", "get", "web-1"); c.Status.Ended.IsZero() {
		o.t.Errorf("the claim still holds the machine: %+v", c.Status)
	}
	select {
	case <-m.Done():
	case <-o.ctx.Done():
		o.t.Fatal("the machine did not switch itself off after the release")
	}
	o.power("off")
	if last := o.run("timeline", "m1"); strings.Contains(last, "phoned home") || !strings.Contains(last, "every disk was wiped and read back") {
		o.t.Error("the release is not a boot of its own")
	}
	o.run("explain", "m1")
	var w api.Workflow
	o.get(&w, "workflow", "get", got.Wiped.Workflow)
	if n := len(w.Status.Actions[0].Attempts); n != 1 {
		o.t.Errorf("the wipe took %d attempts over a kill of the daemon, want the worker to go on", n)
	}
}

// states is the status of the machine's record.
func (o *operator) states() hardware.Status {
	o.t.Helper()
	var h hardware.Hardware
	o.get(&h, "hardware", "get", "m1")
	return h.Status
}

// power wants the machine's controller to say so.
func (o *operator) power(want string) {
	o.t.Helper()
	if got := o.run("power", "m1", "status"); got != "hardware/m1 "+want+"\n" {
		o.t.Errorf("power status says %q, want %s", got, want)
	}
}

// oldData is a disk of that size with a GPT, of which the other half is at its end,
// an ext4 file system with a file in it, and the signature of an old RAID member,
// which is at the end, too.
func oldData(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(workDir(t), "old.raw")
	secret := filepath.Join(filepath.Dir(path), "tree", "secret")
	if err := os.MkdirAll(filepath.Dir(secret), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, bytes.Repeat([]byte("the last tenant's data\n"), 1<<18), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	run(t, "sgdisk", "-n", "1:2048:0", "-t", "1:8300", path)
	run(t, "mkfs.ext4", "-q", "-F", "-d", filepath.Dir(secret), "-E", "offset=1048576", path, fmt.Sprintf("%dk", (size-2<<20)>>10))
	// md 1.0 keeps its superblock 8 KiB before the end, here of the partition; GPT the last 33 sectors
	if _, err := f.WriteAt([]byte{0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0}, size-33*512-8<<10); err != nil {
		t.Fatal(err)
	}
	if err := lab.Zero(path); err == nil {
		t.Fatal("the old data reads zero")
	}
	return path
}
