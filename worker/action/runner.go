package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Env is what a runner may use of the machine.
type Env struct {
	// Workflow is the uid of the workflow that the action belongs to.
	Workflow string
	// Log gets what an operator should read about the action; never secrets.
	Log *slog.Logger
	// Progress may be nil. It is called from one goroutine at a time, a few
	// times a second, and must not block.
	Progress func(Progress)
	// HTTPBase is the appliance, such as http://192.0.2.1:7080; an image that is
	// a path is below it.
	HTTPBase string
	// MACs of the machine's NICs as aa:bb:cc:dd:ee:ff; may be empty.
	MACs []string
	// LoadModule loads a kernel module with what it depends on. nil where the
	// kernel loads modules by itself.
	LoadModule func(name string) error
	// Sys says where the kernel's file systems are; zero is the usual places.
	Sys Sys
}

// Sys are the places that tests replace.
type Sys struct {
	Block string // /sys/block
	Dev   string // /dev
	Mount string // directory for mount points: /mnt
	EFI   string // /sys/firmware/efi, which only UEFI machines have
}

func (s Sys) block() string { return orDefault(s.Block, "/sys/block") }
func (s Sys) dev() string   { return orDefault(s.Dev, "/dev") }
func (s Sys) mount() string { return orDefault(s.Mount, "/mnt") }
func (s Sys) efi() string   { return orDefault(s.EFI, "/sys/firmware/efi") }

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// Progress is how far an action is, in bytes.
type Progress struct {
	// Done of Total: of the source for an image, of the disk for a wipe. Total
	// is 0 when it is not known.
	Done, Total int64
	// Written to the disk so far, zeros included.
	Written int64
	// Note says what is being done, where that is not obvious.
	Note string
}

func (e Env) progress(p Progress) {
	if e.Progress != nil {
		e.Progress(p)
	}
}

// After says what the worker does once the success was acknowledged.
type After string

// What can come after an action. Everything is flushed to the disks and
// unmounted by then.
const (
	Continue After = ""
	Reboot   After = "reboot"
	PowerOff After = "poweroff"
)

// Result is what a successful action reports.
type Result struct {
	// Message is one sentence for people.
	Message string
	// SourceBytes were downloaded, WrittenBytes written to the disk.
	SourceBytes, WrittenBytes int64
	// Disk is the path of the disk that was worked on.
	Disk string
	// Checksum of the source that was verified, as sha256:<hex>; empty when
	// there was none to verify.
	Checksum string
	// Compared is what the source was compared with, as md5:<hex>, where that is weaker
	// than Checksum; else empty.
	Compared string
	// Wiped are the disks of a verified wipe.
	Wiped []hardware.WipedDisk
	// After is what comes next.
	After After
}

// Runner runs one kind of action.
type Runner interface {
	// Run does the action. It returns when ctx ends, leaving nothing half-done
	// that could boot. A failure that another attempt cannot mend is marked, see
	// [IsPermanent].
	Run(ctx context.Context, env Env, options json.RawMessage) (Result, error)
}

// Runners has a runner for every kind. They belong to one boot of one machine:
// the restart boots the disk that the others wrote.
func Runners() map[workflow.Kind]Runner {
	h := new(history)
	return map[workflow.Kind]Runner{
		workflow.KindDiskWipe:      typed[workflow.DiskWipe]{workflow.KindDiskWipe, h, diskWipe},
		workflow.KindImageWrite:    typed[workflow.ImageWrite]{workflow.KindImageWrite, h, imageWrite},
		workflow.KindDiskGrow:      typed[workflow.DiskGrow]{workflow.KindDiskGrow, h, diskGrow},
		workflow.KindFileWrite:     typed[workflow.FileWrite]{workflow.KindFileWrite, h, fileWrite},
		workflow.KindNetworkConfig: typed[workflow.NetworkConfig]{workflow.KindNetworkConfig, h, networkConfig},
		workflow.KindCloudInit:     typed[workflow.CloudInit]{workflow.KindCloudInit, h, cloudInit},
		workflow.KindIgnition:      typed[workflow.Ignition]{workflow.KindIgnition, h, ignition},
		workflow.KindSeedPartition: typed[workflow.SeedPartition]{workflow.KindSeedPartition, h, seedPartition},
		workflow.KindReboot:        typed[workflow.Reboot]{workflow.KindReboot, h, h.reboot},
		workflow.KindPowerOff:      typed[workflow.PowerOff]{workflow.KindPowerOff, h, powerOff},
	}
}

// typed decodes the options for a function that does the action.
type typed[O any] struct {
	kind workflow.Kind
	seen *history
	run  func(context.Context, Env, O) (Result, error)
}

// Run implements [Runner].
func (t typed[O]) Run(ctx context.Context, env Env, options json.RawMessage) (Result, error) {
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	decoded, err := workflow.DecodeOptions(t.kind, options)
	if err != nil {
		return Result{}, untouched(permanent(err))
	}
	o, ok := decoded.(any).(*O)
	if !ok {
		return Result{}, permanent(fmt.Errorf("%s: options are %T", t.kind, decoded))
	}
	out, err := t.run(ctx, env, *o)
	if err == nil {
		t.seen.add(t.kind, out.Disk)
	}
	return out, err
}

// permanentError marks a failure that another attempt cannot mend.
type permanentError struct{ error }

func (p permanentError) Unwrap() error { return p.error }

func permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

func permanentf(format string, args ...any) error { return permanent(fmt.Errorf(format, args...)) }

// untouchedError marks a failure before anything was written to a disk.
type untouchedError struct{ error }

func (u untouchedError) Unwrap() error { return u.error }

func untouched(err error) error {
	if err == nil {
		return nil
	}
	return untouchedError{err}
}

// Untouched reports whether the action that failed with err wrote nothing to a disk.
// False is: it may have.
func Untouched(err error) bool {
	var u untouchedError
	return errors.As(err, &u)
}

// IsPermanent reports whether err will come again with every attempt, because
// the options, the image or the machine have to change first.
func IsPermanent(err error) bool {
	var p permanentError
	return errors.As(err, &p)
}
