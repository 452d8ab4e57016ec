package ipxe

import (
	"context"
	"net/netip"
	"os"
	"path"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Scripts decides what a machine boots, and is told what was sent.
type Scripts interface {
	// Script is what the boot script of a MAC contains for one asking address, and
	// what the timeline says once it was sent: ReasonScriptSent, ReasonScriptNoToken,
	// ReasonSentToDisk, ReasonUnknownMachine and so on. Asking never uses anything
	// up: HEAD asks too.
	Script(ctx context.Context, mac hardware.MAC, client netip.Addr) (ScriptInput, hardware.Reason)
	// Asks is the MAC whose boot has that address, for what is asked for without a MAC;
	// ok is false where no boot has it.
	Asks(ctx context.Context, client netip.Addr) (mac hardware.MAC, ok bool)
	// Observe is told what a client was sent or refused. It must not block.
	Observe(ctx context.Context, o Observation)
}

// Backend is what the HTTP handler needs of the rest of the appliance.
type Backend interface {
	Scripts
	// Image opens the kept image file with that SHA-256 (64 lower-case hex digits);
	// the handler closes it. An error wrapping fs.ErrNotExist where there is none.
	Image(ctx context.Context, digest string) (*os.File, error)
}

// Observation is one thing that a client was sent or refused.
type Observation struct {
	Client netip.Addr
	// MAC is known where the client named it, in the name of a script; else zero.
	MAC    hardware.MAC
	Reason hardware.Reason
	Detail string // plain text of bounded length
	Bytes  int64
	Took   time.Duration
}

const maxDetail = 160

// SentReason is what the timeline says when the asset of that name was sent whole,
// by HTTP or TFTP; ok is false for what is no asset of a boot, for example a script.
func SentReason(name string) (r hardware.Reason, ok bool) {
	base := strings.TrimPrefix(strings.TrimLeft(name, "/"), "boot/")
	switch {
	case strings.HasPrefix(base, "vmlinuz-"):
		return hardware.ReasonKernelSent, true
	case strings.HasPrefix(base, "initramfs-"):
		return hardware.ReasonInitramfsSent, true
	case strings.HasPrefix(base, "grub/"), isAutoexec(base):
		return "", false
	}
	return hardware.ReasonProgramSent, true
}

// autoexec is the file that iPXE 2 looks for beside itself.
const autoexec = "autoexec.ipxe"

func isAutoexec(name string) bool { return name == autoexec || strings.HasSuffix(name, "/"+autoexec) }

// Tried reports whether boot loaders try that name whether or not it is there: shim its
// revocations and certificates, GRUB its modules' lists and a configuration by CPU.
func Tried(name string) bool {
	dir, base := path.Split(strings.TrimLeft(name, "/"))
	return strings.HasPrefix(base, "revocations") || strings.HasPrefix(base, "shim_certificate_") ||
		strings.HasPrefix(dir, "grub/") && (strings.HasSuffix(base, ".lst") || base == "grub.cfg" || strings.HasSuffix(base, ".mo"))
}
