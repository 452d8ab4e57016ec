package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// The rack of the measurements.
const (
	machines  = 10_000
	perRack   = 40
	disks     = 6
	boots     = 20 // of every fifth machine
	perBoot   = 10 // events
	atOnce    = 256
	eventsMax = 40 // of one transaction
)

// fleet is a data directory with many machines, and secrets for its API.
type fleet struct {
	viewer, claimer string // tokens
}

const (
	dbFile     = "rackstrap.db"
	tokensFile = "tokens"
)

// fleetIn puts a fleet into dir: a copy of the one in keep, which is made first where
// it is missing, or a new one where keep is empty.
func fleetIn(ctx context.Context, keep, dir string) (fleet, error) {
	if keep == "" {
		return newFleet(ctx, dir)
	}
	if _, err := os.Stat(filepath.Join(keep, tokensFile)); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(keep, 0o700); err != nil {
			return fleet{}, err
		}
		if _, err := newFleet(ctx, keep); err != nil {
			return fleet{}, err
		}
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", keep+"/.", dir).CombinedOutput(); err != nil {
		return fleet{}, fmt.Errorf("copy %s: %w: %s", keep, err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, tokensFile))
	if err != nil {
		return fleet{}, err
	}
	viewer, claimer, _ := strings.Cut(string(b), " ")
	return fleet{viewer: viewer, claimer: claimer}, nil
}

// newFleet writes the records through the store itself, many at once, so that they
// share the syncs of the disk. Every fifth machine is claimed, was installed by a
// workflow that ended, and has a long timeline.
func newFleet(ctx context.Context, dir string) (f fleet, err error) {
	began := time.Now()
	kv, err := bolt.Open(filepath.Join(dir, dbFile), bolt.Options{})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	db, err := store.Open(ctx, kv, filepath.Join(dir, "seal.key"), store.Options{})
	if err != nil {
		return f, err
	}
	if err := db.CreateSubnet(ctx, &hardware.Subnet{Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix("10.0.0.0/8")}}); err != nil {
		return f, err
	}
	if f.viewer, err = db.CreateToken(ctx, &hardware.Token{Meta: hardware.Meta{Name: "viewer"}, Spec: hardware.TokenSpec{Role: hardware.RoleViewer}}); err != nil {
		return f, err
	}
	claimer := hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "bench", Selector: "site=ams1"}
	if f.claimer, err = db.CreateToken(ctx, &hardware.Token{Meta: hardware.Meta{Name: "claimer"}, Spec: claimer}); err != nil {
		return f, err
	}
	if err := each(machines, atOnce, func(i int) error { return addMachine(ctx, db, i) }); err != nil {
		return f, err
	}
	st, err := os.Stat(filepath.Join(dir, dbFile))
	if err != nil {
		return f, err
	}
	fmt.Printf("records written in %.1f s, a file of %.0f MB\n", time.Since(began).Seconds(), float64(st.Size())/1e6)
	return f, os.WriteFile(filepath.Join(dir, tokensFile), []byte(f.viewer+" "+f.claimer), 0o600)
}

// each calls do for 0 to n-1, several at once; the first error ends it.
func each(n, atOnce int, do func(i int) error) error {
	var wg sync.WaitGroup
	failed := make(chan error, atOnce)
	for w := range atOnce {
		wg.Go(func() {
			for i := w; i < n && len(failed) == 0; i += atOnce {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

func addMachine(ctx context.Context, db *store.DB, i int) error {
	h := aMachine(i)
	if err := db.CreateHardware(ctx, h); err != nil {
		return err
	}
	uid, name := h.Meta.UID, h.Meta.Name
	mc := &workflow.Machine{UID: uid, Status: hardware.Status{State: hardware.StateAvailable, Since: h.Meta.Created}}
	c := &workflow.Change{Machine: mc, Facts: factsOf(h, i)}
	if err := db.Commit(ctx, c); err != nil || i%5 != 0 {
		return err
	}
	claim := &hardware.Claim{Meta: hardware.Meta{Name: "c-" + name}, Spec: hardware.ClaimSpec{Owner: "capi/prod/" + name, Hardware: name}}
	if _, _, err := db.Claim(ctx, claim, hardware.Selector{}); err != nil {
		return err
	}
	events := timelineOf(h)
	for len(events) > 0 {
		n := min(eventsMax, len(events))
		if err := db.Commit(ctx, &workflow.Change{Events: events[:n]}); err != nil {
			return err
		}
		events = events[n:]
	}
	mc, err := db.Machine(ctx, uid)
	if err != nil {
		return err
	}
	mc.Status.State, mc.Status.Installed, mc.Status.Workflow = hardware.StateProvisioned, true, "install-"+name
	return db.Commit(ctx, &workflow.Change{Machine: mc, Workflow: installOf(h)})
}

// aMachine has two to four NICs, one with an address.
func aMachine(i int) *hardware.Hardware {
	h := &hardware.Hardware{Meta: hardware.Meta{
		Name: fmt.Sprintf("node-%05d", i),
		Labels: map[string]string{
			"rack": rackOf(i), "site": fmt.Sprintf("ams%d", 1+i%2), "tier": []string{"prod", "prod", "stage", "test"}[i%4],
			"generation": fmt.Sprintf("g%d", 9+i%3), "example.com/pool": []string{"workers", "storage"}[i%2],
		},
	}}
	h.Spec.Rack, h.Spec.Position, h.Spec.AssetTag = rackOf(i), fmt.Sprintf("U%d", 1+i%perRack), fmt.Sprintf("A%07d", i*7)
	h.Spec.SSHKeys = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFJhY2tzdHJhcCBiZW5jaG1hcmsga2V5IG5vdCByZWFs ops"}
	for n := range 2 + i%3 {
		nic := hardware.NIC{MAC: hardware.MAC{0x52, 0x54, byte(n), byte(i >> 16), byte(i >> 8), byte(i)}}
		if n == 0 {
			nic.Addresses = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(1 + i/62_500), byte(i / 250), byte(1 + i%250)}), 8)}
		}
		h.Spec.Interfaces = append(h.Spec.Interfaces, nic)
	}
	return h
}

func rackOf(i int) string { return fmt.Sprintf("r%03d", i/perRack) }

func factsOf(h *hardware.Hardware, i int) *hardware.Facts {
	f := &hardware.Facts{
		Collected: time.Now(), Firmware: "uefi", SecureBoot: "off", Arch: "amd64", CPUModel: "AMD EPYC 9354P 32-Core Processor", CPUs: 64,
		MemoryBytes: uint64(128+128*(i%3)) << 30, Vendor: "Example", Product: "R2600", Serial: fmt.Sprintf("SN%09d", i),
		UUID: fmt.Sprintf("4c4c4544-0031-3510-8056-%012d", i), Kernel: "6.1.0-31-cloud-amd64", Worker: "1.0.0",
	}
	for d := range disks {
		f.Disks = append(f.Disks, hardware.DiskFact{
			Path: fmt.Sprintf("/dev/nvme%dn1", d), Bytes: 3_840_755_982_336, Serial: fmt.Sprintf("S%08dN%d", i, d),
			WWN: fmt.Sprintf("eui.36344630%08d%d002538", i, d), Model: "EXAMPLE MZQL23T8HCLS-00A07", Transport: "nvme",
		})
	}
	for n, nic := range h.Spec.Interfaces {
		f.NICs = append(f.NICs, hardware.NICFact{Name: fmt.Sprintf("enp%ds0", n+1), MAC: nic.MAC, Driver: "mlx5_core", Link: n == 0, Mbps: 25_000})
	}
	return f
}

// timelineOf are the boots of a machine over some weeks.
func timelineOf(h *hardware.Hardware) []workflow.Event {
	reasons := []hardware.Reason{
		hardware.ReasonBootStarted, hardware.ReasonOffered, hardware.ReasonAcked, hardware.ReasonProgramSent, hardware.ReasonScriptSent,
		hardware.ReasonKernelSent, hardware.ReasonInitramfsSent, hardware.ReasonWorkerConnected, hardware.ReasonFactsReported, hardware.ReasonSentToDisk,
	}
	out := make([]workflow.Event, 0, boots*perBoot)
	for b := range boots {
		at := time.Now().Add(-time.Duration(boots-b) * 36 * time.Hour)
		boot := workflow.NewID(at)
		for _, r := range reasons[:perBoot] {
			at = at.Add(700 * time.Millisecond)
			out = append(out, workflow.Event{
				ID: workflow.NewID(at), Hardware: h.Meta.UID, Machine: h.Meta.Name, Boot: boot, Reason: r, First: at, Last: at, Count: 1,
				Detail: "10.1.2.3 over enp1s0, 850528 bytes",
			})
		}
	}
	return out
}

// installOf is a workflow that ended well.
func installOf(h *hardware.Hardware) *workflow.Workflow {
	end := time.Now()
	w := &workflow.Workflow{
		Meta: hardware.Meta{Name: "install-" + h.Meta.Name},
		Spec: workflow.WorkflowSpec{Hardware: h.Meta.Name, Template: "image", Purpose: workflow.PurposeInstall},
	}
	w.Status = workflow.Status{State: workflow.StateSucceeded, HardwareUID: h.Meta.UID, Started: end.Add(-3 * time.Minute), Finished: end}
	for _, k := range []workflow.Kind{workflow.KindImageWrite, workflow.KindReboot} {
		w.Status.Actions = append(w.Status.Actions, workflow.Action{
			Name: strings.ReplaceAll(string(k), ".", "-"), Kind: k, State: workflow.StateSucceeded, With: json.RawMessage(`{}`),
			Attempts: []workflow.Attempt{{Boot: workflow.NewID(end), State: workflow.StateSucceeded, Started: w.Status.Started, Finished: end, Message: "done"}},
		})
	}
	return w
}
