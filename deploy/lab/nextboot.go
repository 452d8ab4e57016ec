package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// BootFrom is what a machine boots from.
type BootFrom string

// What a machine can boot from.
const (
	FromNetwork BootFrom = "network"
	FromDisk    BootFrom = "disk"
)

// fromHTTP is what FromNetwork means to UEFIHTTP.
const fromHTTP BootFrom = "http"

// SetNextBoot has the next PowerOn boot from the network or a disk, as a BMC does
// it: once, whatever the machine's own order says, which counts again when the guest
// restarts. It returns an error that is errors.ErrUnsupported for the disk of a UEFI
// machine that never ran: its firmware has not yet seen what disks it has.
func (m *Machine) SetNextBoot(from BootFrom) error {
	if from != FromNetwork && from != FromDisk {
		return fmt.Errorf("machine %s: boots from network or disk, not from %q", m.spec.Name, from)
	}
	if from == FromDisk && len(m.spec.Disks) == 0 {
		return fmt.Errorf("machine %s: has no disk: %w", m.spec.Name, errors.ErrUnsupported)
	}
	if p := platforms[m.spec.Firmware]; p.uefi() {
		store, err := os.ReadFile(filepath.Join(m.dir, varsFile))
		if err != nil {
			return err
		}
		if _, err := bootNext(store, m.spec.MAC, p.meant(from)); err != nil {
			return fmt.Errorf("machine %s: %w", m.spec.Name, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = from
	return nil
}

// nextBoot is what SetNextBoot asked for, or nothing.
func (m *Machine) nextBoot() BootFrom {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next
}

// bootSpec is the machine's description for one PowerOn. SeaBIOS takes the boot order
// from the command line, OVMF from its variables.
func (m *Machine) bootSpec(next BootFrom) (MachineSpec, error) {
	spec := m.spec
	p := platforms[spec.Firmware]
	switch {
	case next == "":
		return spec, nil
	case !p.uefi():
		spec.DiskFirst = next == FromDisk
		return spec, nil
	}
	path := filepath.Join(m.dir, varsFile)
	store, err := os.ReadFile(path)
	if err != nil {
		return spec, err
	}
	if store, err = bootNext(store, spec.MAC, p.meant(next)); err != nil {
		return spec, err
	}
	return spec, writeVars(path, store)
}

// restoreOrder gives SeaBIOS the machine's own order again. QEMU shows it to the
// guest from the next reset on; the boot that has just begun keeps the other.
func (m *Machine) restoreOrder(ctx context.Context, q *qmpConn) error {
	if p := platforms[m.spec.Firmware]; p.uefi() {
		return nil // OVMF forgets BootNext by itself
	}
	set := func(device, index int) error {
		return q.run(ctx, "qom-set", map[string]any{"path": "/machine/peripheral/" + deviceID(device), "property": "bootindex", "value": index}, nil)
	}
	for device := -1; device < len(m.spec.Disks); device++ { // no two may have one at any time
		if err := set(device, -1); err != nil {
			return err
		}
	}
	for device := -1; device < len(m.spec.Disks); device++ {
		if err := set(device, bootindex(m.spec, device)); err != nil {
			return err
		}
	}
	return nil
}
