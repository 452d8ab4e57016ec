package rig

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// ImageName is the record of the lab's Debian image.
const ImageName = "debian-12"

// Rack is a lab with an appliance in it, power control, and a key for the machines
// it installs.
type Rack struct {
	Lab       *lab.Lab
	Appliance *Appliance
	Power     *Power
	Key       Key
	// Relay carries DHCP to the appliance; nil where it is on the LAN itself.
	Relay *lab.Peer
}

// Options say how a rack differs from one whose appliance is on the LAN and gives
// reserved addresses.
type Options struct {
	// Subnet changes the record of the lab's network before it is written.
	Subnet func(r *Rack, s *hardware.SubnetSpec)
	// Empty leaves the record out, as on the first day.
	Empty bool
	// Routed puts the appliance into a network behind a router, on which ISC's relay
	// runs.
	Routed bool
}

// NewRack makes a lab below dir and starts the appliance bin in it, with a record of
// the lab's network.
func NewRack(ctx context.Context, name, dir, bin string) (*Rack, error) {
	return NewRackWith(ctx, name, dir, bin, Options{})
}

// NewEmptyRack is NewRack without a record, as on the first day.
func NewEmptyRack(ctx context.Context, name, dir, bin string) (*Rack, error) {
	return NewRackWith(ctx, name, dir, bin, Options{Empty: true})
}

// NewRackWith is NewRack with options.
func NewRackWith(ctx context.Context, name, dir, bin string, o Options) (*Rack, error) {
	l, err := lab.New(ctx, lab.Options{Name: name, Dir: dir})
	if err != nil {
		return nil, err
	}
	r := &Rack{Lab: l}
	err = r.open(ctx, bin, o.Routed)
	if err == nil && !o.Empty {
		err = r.addSubnet(ctx, o.Subnet)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Rack) addSubnet(ctx context.Context, change func(*Rack, *hardware.SubnetSpec)) error {
	s := hardware.SubnetSpec{Prefix: r.Lab.Subnet(), Gateway: r.Lab.Gateway(), DNS: []netip.Addr{r.Lab.Gateway()}, Domain: "lab.test"}
	if change != nil {
		change(r, &s)
	}
	_, err := r.Appliance.Client.Subnets.Create(ctx, &hardware.Subnet{Meta: hardware.Meta{Name: "lan"}, Spec: s})
	return err
}

func (r *Rack) open(ctx context.Context, bin string, routed bool) (err error) {
	if r.Key, err = NewKey("lab"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.Lab.Dir(), "id_ed25519"), r.Key.PEM, 0o600); err != nil {
		return err
	}
	ns, iface := r.Lab.Namespace, r.Lab.Bridge()
	if routed {
		host, err := r.Lab.AddRouted(ctx, "site")
		if err != nil {
			return err
		}
		if r.Relay, err = r.Lab.Relay(ctx, host); err != nil {
			return err
		}
		ns, iface = host.Namespace, lab.ClientIface
	}
	if r.Power, err = StartPower(ctx, ns); err != nil {
		return err
	}
	if r.Appliance, err = NewAppliance(ns, iface, bin, filepath.Join(r.Lab.Dir(), "appliance")); err != nil {
		return err
	}
	return r.Appliance.Start(ctx)
}

// Addr is the n-th address of the lab's network.
func (r *Rack) Addr(n int) netip.Addr {
	a := r.Lab.Subnet().Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

// AddImage uploads an image file.
func (r *Rack) AddImage(ctx context.Context, name string, img lab.Image, progress func(sent int64)) error {
	f, err := os.Open(img.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = r.Appliance.Client.UploadImage(ctx, name, f, client.Upload{Checksum: "sha256:" + img.SHA256, Size: img.Size, Arch: img.Arch, Progress: progress})
	return err
}

// AddMachine adds a virtual machine to the lab and its record to the appliance,
// with the n-th address of the network. The record names no power control: the
// caller switches the machine.
func (r *Rack) AddMachine(ctx context.Context, spec lab.MachineSpec, n int) (*lab.Machine, error) {
	m, err := r.Lab.AddMachine(ctx, spec)
	if err != nil {
		return nil, err
	}
	h := r.Hardware(m, n)
	h.Spec.Power = nil
	_, err = r.Appliance.Client.Hardware.Create(ctx, h)
	return m, err
}

// AddPowered is AddMachine for a machine that the appliance switches.
func (r *Rack) AddPowered(ctx context.Context, spec lab.MachineSpec, n int) (*lab.Machine, error) {
	m, err := r.Lab.AddMachine(ctx, spec)
	if err != nil {
		return nil, err
	}
	_, err = r.Appliance.Client.Hardware.Create(ctx, r.Hardware(m, n))
	return m, err
}

// Hardware is the record of a machine of the lab, with the n-th address of the
// network and with power control, which it gets with this call.
func (r *Rack) Hardware(m *lab.Machine, n int) *hardware.Hardware {
	r.Power.Add(m)
	return &hardware.Hardware{
		Meta: hardware.Meta{Name: m.Name(), Labels: map[string]string{"lab": r.Lab.Name()}},
		Spec: hardware.Spec{
			Interfaces: []hardware.NIC{{MAC: hardware.MAC(m.MAC()), Addresses: []netip.Prefix{netip.PrefixFrom(r.Addr(n), r.Lab.Subnet().Bits())}}},
			SSHKeys:    []string{r.Key.Line},
			Arch:       m.Firmware().Arch(),
			Power:      r.Power.Control(),
		},
	}
}

// Install creates the install workflow of a machine.
func (r *Rack) Install(ctx context.Context, machine string, params map[string]any) (*api.Workflow, error) {
	all := map[string]any{"image": ImageName}
	for k, v := range params {
		all[k] = v
	}
	return r.Appliance.Client.Workflows.Create(ctx, &api.Workflow{Workflow: workflow.Workflow{
		Spec: workflow.WorkflowSpec{Hardware: machine, Template: "install", Params: all},
	}})
}

// Check logs in over SSH and compares host name and address with the record.
func (r *Rack) Check(ctx context.Context, machine string, n int) (*SSH, error) {
	s, err := DialSSH(ctx, r.Lab, r.Addr(n), "debian", r.Key)
	if err != nil {
		return nil, err
	}
	host, err := s.Run("hostname")
	if err != nil {
		return s, err
	}
	if host != machine {
		return s, fmt.Errorf("the installed system calls itself %q, the record %q", host, machine)
	}
	addrs, err := s.Run("ip -4 -o addr show scope global")
	if err != nil {
		return s, err
	}
	want := netip.PrefixFrom(r.Addr(n), r.Lab.Subnet().Bits()).String()
	if !containsWord(addrs, want) {
		return s, fmt.Errorf("the installed system has not %s but: %s", want, addrs)
	}
	return s, nil
}

// Close stops the appliance in order and takes the lab down.
func (r *Rack) Close() error {
	var err error
	if r.Appliance != nil && r.Appliance.cmd != nil {
		err = r.Appliance.Stop()
	}
	if r.Power != nil {
		err = errors.Join(err, r.Power.Close())
	}
	return errors.Join(err, r.Lab.Close())
}

func containsWord(text, word string) bool {
	for f := range strings.FieldsSeq(text) {
		if f == word {
			return true
		}
	}
	return false
}
