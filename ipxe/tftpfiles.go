package ipxe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// TFTPFile is one file for one client.
type TFTPFile interface {
	io.ReadCloser
	// Size in bytes.
	Size() int64
}

// TFTPFiles serves by TFTP what NewHandler serves by HTTP to firmware and to GRUB:
// boot programs, boot/ with kernel and initramfs, and GRUB's commands.
type TFTPFiles struct {
	assets  *Assets
	scripts Scripts
	port    uint16 // of our HTTP listener
	log     *slog.Logger
}

// NewTFTPFiles makes a TFTPFiles; httpPort is that of NewHandler's listener.
func NewTFTPFiles(assets *Assets, scripts Scripts, httpPort uint16, log *slog.Logger) *TFTPFiles {
	return &TFTPFiles{assets: assets, scripts: scripts, port: httpPort, log: log}
}

// machinePrefix is where grub.cfg looks for a machine's commands.
const machinePrefix = "grub/machine/"

// Open returns the file of that name for that client. fs.ErrNotExist, wrapped, is
// the normal answer to names that boot loaders try, and to bad names. What a client
// took of assets the TFTP server knows best (see SentReason); of a machine's
// commands Scripts is told here, when they were read to their end.
func (t *TFTPFiles) Open(ctx context.Context, client netip.AddrPort, name string) (TFTPFile, error) {
	name = strings.TrimLeft(name, "/")
	asking := client.Addr().Unmap().WithZone("")
	if mac, ok := strings.CutPrefix(name, machinePrefix); ok {
		return t.machine(ctx, asking, mac)
	}
	asset := name
	if kernel, ok := strings.CutPrefix(name, "boot/"); ok {
		asset = kernel
	}
	f, err := t.assets.Open(asset)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, ErrAssetName):
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case name == "grub/grub.cfg" && errors.Is(err, fs.ErrNotExist):
		return &memoryFile{Reader: bytes.NewReader(GrubConfig())}, nil
	case isAutoexec(name) && errors.Is(err, fs.ErrNotExist):
		mac, _ := t.scripts.Asks(ctx, asking)
		in, reason := ask(ctx, t.scripts, mac, asking)
		if mac.IsZero() {
			in.HTTP = netip.AddrPortFrom(netip.IPv4Unspecified(), t.port)
		}
		return t.script(ctx, asking, in, reason, Autoexec), nil
	}
	return nil, err
}

// anyMachine is the name of the commands for whoever asks, by its boot's address.
const anyMachine = "auto"

// machine is a machine's commands for GRUB. A MAC without a record gets commands
// that say so.
func (t *TFTPFiles) machine(ctx context.Context, client netip.Addr, name string) (TFTPFile, error) {
	mac, err := hardware.ParseMAC(name)
	if name == anyMachine {
		mac, _ = t.scripts.Asks(ctx, client)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	in, reason := ask(ctx, t.scripts, mac, client)
	if in.Next.Target == hardware.TargetCustom {
		reason = hardware.ReasonOwnNeedsIPXE
	}
	return t.script(ctx, client, in, reason, Grub), nil
}

// script is a file with what write makes of in; its end is observed with reason.
func (t *TFTPFiles) script(ctx context.Context, client netip.Addr, in ScriptInput, reason hardware.Reason, write func(ScriptInput) ([]byte, error)) TFTPFile {
	start := time.Now()
	body, err := write(in)
	if err != nil {
		t.log.LogAttrs(ctx, slog.LevelError, "boot script not served", slog.String("client", client.String()), slog.Any("error", err))
	}
	return &memoryFile{Reader: bytes.NewReader(body), end: func() {
		t.scripts.Observe(context.WithoutCancel(ctx), Observation{Client: client, MAC: in.MAC, Reason: reason, Bytes: int64(len(body)), Took: time.Since(start)})
	}}
}

// ask is what the script of a MAC contains; where that is zero, nobody knows who asks,
// and the script says so.
func ask(ctx context.Context, s Scripts, mac hardware.MAC, client netip.Addr) (ScriptInput, hardware.Reason) {
	if mac.IsZero() {
		return ScriptInput{}, hardware.ReasonUnknownMachine
	}
	in, reason := s.Script(ctx, mac, client)
	in.MAC = mac
	return in, reason
}

// memoryFile is a file in memory that tells its end whether it was read.
type memoryFile struct {
	*bytes.Reader
	end func() // may be nil
}

func (f *memoryFile) Close() error {
	if f.end != nil && f.Len() == 0 {
		f.end()
	}
	f.end = nil
	return nil
}
