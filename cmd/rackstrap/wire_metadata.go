package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/rackstrap/rackstrap/api/metadata"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/workflow"
)

// phoner is told that an installed system is up.
type phoner interface {
	PhoneHome(ctx context.Context, uid, workflowName string, from netip.Addr) error
}

// addressView finds machines by their reserved addresses.
type addressView interface {
	HardwareByAddress(a netip.Addr) (*hardware.Hardware, bool)
}

// installed is the rest of the appliance as installed systems see it.
type installed struct {
	seeds  *seeds
	view   addressView
	engine phoner
	log    *slog.Logger
	m      *meters
}

var (
	_ metadata.Machines = (*installed)(nil)
	_ metadata.Installs = (*installed)(nil)
)

// Machine implements metadata.Machines.
func (i *installed) Machine(a netip.Addr) (*hardware.Hardware, bool) {
	h, ok := i.view.HardwareByAddress(a)
	return h, ok
}

// Subnets implements metadata.Machines.
func (i *installed) Subnets() []*hardware.Subnet { return i.seeds.subnets() }

// UserData implements metadata.Machines. It is what the seed of the install has; a
// system that was not installed with a seed gets the record's, or the default.
func (i *installed) UserData(ctx context.Context, uid string) ([]byte, error) {
	h, err := i.seeds.hardware(ctx, uid)
	if errors.Is(err, workflow.ErrNotFound) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	w := &workflow.Workflow{Meta: hardware.Meta{UID: h.Meta.UID}}
	if in := h.Status.Install; in != nil {
		found, err := i.seeds.workflow(ctx, in.Workflow)
		switch {
		case err == nil && found.Meta.UID == in.UID && found.Status.HardwareUID == uid:
			w = found
		case err != nil && !errors.Is(err, workflow.ErrNotFound):
			return nil, err
		}
	}
	files, err := i.seeds.of(ctx, h, w)
	if errors.Is(err, fs.ErrNotExist) {
		files, err = i.seeds.seed(ctx, h, w, metadata.Input{})
	}
	if b, ok := files[metadata.FileUserData]; ok || err != nil {
		return b, err
	}
	return files[metadata.FileIgnition], nil // what Ignition reads on EC2
}

// Seed implements metadata.Installs.
func (i *installed) Seed(ctx context.Context, token, file string) ([]byte, error) {
	b, err := i.seeds.file(ctx, token, file)
	i.m.files.WithLabelValues("seed", fileResult(err)).Inc()
	return b, err
}

// PhoneHome implements metadata.Installs.
func (i *installed) PhoneHome(ctx context.Context, token string, from netip.Addr) error {
	w, h, err := i.seeds.open(ctx, scopePhone, token)
	if err == nil {
		err = i.engine.PhoneHome(ctx, h.Meta.UID, w.Meta.Name, from)
		if errors.Is(err, workflow.ErrNotFound) {
			err = fs.ErrNotExist
		}
	}
	i.m.files.WithLabelValues("phone-home", fileResult(err)).Inc()
	if err == nil {
		i.log.Info("phone home", "hardware", h.Meta.Name, "workflow", w.Meta.Name, "client", from)
	}
	return err
}

// withMetadata serves installed systems before next, which serves booting machines.
func (a *appliance) withMetadata(t *tracker, next http.Handler) http.Handler {
	i := &installed{seeds: a.seeds(), view: a.db.View(), engine: a.engine, log: a.log, m: a.meters}
	return metadata.NewHandler(metadata.Config{
		Machines: i, Installs: i, Keys: a.c.Metadata.SSHKeys, Installation: a.id.installation, SessionKey: a.id.tokenKey, Now: i.seeds.now, Log: a.log,
		Observe: func(ctx context.Context, o metadata.Observation) {
			t.saw(ctx, ipxe.Observation{Client: o.Client, MAC: o.MAC, Reason: o.Reason, Detail: o.Detail, Bytes: o.Bytes})
		},
	}, next)
}
