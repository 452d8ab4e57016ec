package main

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/tftp"
)

// meteredTFTP counts what it hands on.
type meteredTFTP struct {
	tftp.Observer
	m *meters
}

// Done implements tftp.Observer.
func (o meteredTFTP) Done(t tftp.Transfer, err error) {
	r := tftpResult(err)
	o.m.tftp.WithLabelValues(r).Inc()
	o.m.tftpBytes.WithLabelValues(r).Add(float64(max(t.Bytes, 0)))
	o.Observer.Done(t, err)
}

// Refused implements tftp.Observer.
func (o meteredTFTP) Refused(client netip.AddrPort, name string, err error) {
	o.m.tftp.WithLabelValues(tftpResult(err)).Inc()
	o.Observer.Refused(client, name, err)
}

func tftpResult(err error) string {
	var name *tftp.NameError
	switch {
	case err == nil:
		return "sent"
	case errors.Is(err, tftp.ErrProbe):
		return "probe"
	case errors.Is(err, tftp.ErrStopped):
		return "stopped"
	case errors.Is(err, tftp.ErrTimeout):
		return "timeout"
	case errors.Is(err, tftp.ErrWrite):
		return "read-only"
	case errors.Is(err, tftp.ErrBusy):
		return "busy"
	case errors.Is(err, tftp.ErrMalformed):
		return "malformed"
	case errors.As(err, &name):
		return string(hardware.ReasonBadName)
	case errors.Is(err, fs.ErrNotExist):
		return string(hardware.ReasonFileNotFound)
	case errors.Is(err, context.Canceled):
		return "shutdown"
	}
	return "failed"
}

// meteredBoots counts what HTTP serves. It sees what was observed, not the bytes
// themselves: a wrapped connection would not be copied to by the kernel.
type meteredBoots struct {
	*httpBoots
	m *meters
}

// Observe implements ipxe.Scripts.
func (b meteredBoots) Observe(ctx context.Context, o ipxe.Observation) {
	b.m.http.WithLabelValues(string(o.Reason)).Inc()
	b.m.httpBytes.WithLabelValues(string(o.Reason)).Add(float64(max(o.Bytes, 0)))
	b.httpBoots.Observe(ctx, o)
}

// Image implements ipxe.Backend.
func (b meteredBoots) Image(ctx context.Context, digest string) (*os.File, error) {
	f, err := b.httpBoots.Image(ctx, digest)
	b.m.files.WithLabelValues("image", fileResult(err)).Inc()
	return f, err
}

func fileResult(err error) string {
	switch {
	case err == nil:
		return "found"
	case errors.Is(err, fs.ErrNotExist):
		return string(hardware.ReasonFileNotFound)
	}
	return "failed"
}
