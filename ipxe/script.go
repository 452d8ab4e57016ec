package ipxe

import (
	"bytes"
	"embed"
	"fmt"
	"net/netip"
	"strings"
	"text/template"

	"github.com/rackstrap/rackstrap/hardware"
)

//go:embed scripts
var scripts embed.FS

// ScriptInput is all that a boot script may contain.
type ScriptInput struct {
	MAC hardware.MAC
	// Machine is the record's name; empty where no record has the MAC.
	Machine string
	Next    hardware.Next
	// Why is shown to the person at the console; the sentence of Next.Reason where
	// empty.
	Why string
	// HTTP is our HTTP listener and Worker our worker listener, both with the address
	// that this machine was told; needed for a machine that boots the worker. HTTP with
	// the address 0.0.0.0 is at the server that the machine's DHCP named (next-server),
	// which [Autoexec] alone can say.
	HTTP, Worker netip.AddrPort
	// Token lets the worker of this boot in; empty where the asking address is not
	// this boot's.
	Token string
	// CA is the SHA-256 of the installation's CA certificate (DER), in hex.
	CA string
	// Arch is amd64 or arm64, as the record says; Firmware is what the boot began with.
	Arch     string
	Firmware hardware.Firmware
	// Consoles are kernel consoles, like ttyS0,115200; the last one is /dev/console.
	// Where there are none: the screen and the first serial line of the architecture.
	Consoles []string
	// KernelArgs are the operator's, appended.
	KernelArgs []string
	// Own is what the record boots instead; needed where Next is TargetCustom.
	Own *hardware.OwnScript
}

// Script is the machine's boot script for iPXE. It always is one: where a value
// cannot be written into it (white space in a kernel argument, for example), the
// script says so to the person at the console, and the error is the same.
func Script(in ScriptInput) ([]byte, error) { return render(in, "ipxe") }

// Autoexec is [Script] for an iPXE that finds it as autoexec.ipxe beside itself, as
// iPXE 2 does: it has no address yet.
//
// Where nobody knows who asks, it asks again by the MAC once it has an address.
func Autoexec(in ScriptInput) ([]byte, error) {
	body, err := Script(in)
	v := &view{}
	if shape(&in) == "nobody" && in.HTTP.IsValid() {
		host := in.HTTP.String()
		if in.HTTP.Addr().IsUnspecified() {
			host = fmt.Sprintf("${next-server}:%d", in.HTTP.Port())
		}
		v.Script = "http://" + host + scriptPath("${netX/mac}")
	}
	head, herr := execute("autoexec.ipxe.tmpl", v)
	if herr != nil {
		return nil, herr
	}
	_, rest, _ := bytes.Cut(body, []byte("\n"))
	return append(head, rest...), err
}

// Grub is the machine's commands for GRUB, as [GrubConfig] asks for them. Result
// and error are like those of [Script].
func Grub(in ScriptInput) ([]byte, error) { return render(in, "grub") }

// GrubConfig is grub/grub.cfg, the same for all machines: it hands over to
// grub/machine/<MAC>.
func GrubConfig() []byte {
	b, err := scripts.ReadFile("scripts/grub.cfg")
	if err != nil {
		panic("ipxe: the embed directive and the file name differ: " + err.Error())
	}
	return b
}

// shape names the template for in.
func shape(in *ScriptInput) string {
	switch {
	case in.Machine == "" && in.MAC.IsZero():
		return "nobody"
	case in.Machine == "":
		return "unknown"
	case in.Next.Target == hardware.TargetDisk:
		return "disk"
	case in.Next.Target == hardware.TargetCustom && in.Own != nil:
		return "own"
	case in.Next.Target == hardware.TargetHalt:
		return "halt"
	case in.Next.Target != hardware.TargetWorker:
		return "none"
	case in.Token == "":
		return "notoken"
	}
	return "worker"
}

// view is what the templates print; nothing in it means anything to iPXE or, in
// quotes, to GRUB.
type view struct {
	Title, Machine, MAC, Why string
	Base, Script             string // URLs
	Host, Files              string // our address; GRUB's prefix of files at it
	Kernel, Initramfs        string // file names
	Args                     string // kernel command line
	Words                    []string
	Loader, Shim             string // boot loaders on a disk
	Own                      string // URL that the record chains to
}

func render(in ScriptInput, language string) ([]byte, error) {
	name := shape(&in)
	if name == "own" && language == "ipxe" {
		if in.Own.Script != "" {
			return ownScript(&in)
		}
		name = "chain"
	}
	v, err := newView(&in, name, language)
	if err != nil {
		return refused(&in, language, err)
	}
	return execute(name+"."+language+".tmpl", v)
}

// refused is a script that says to the person at the console why there is none, and
// the error is the same.
func refused(in *ScriptInput, language string, err error) ([]byte, error) {
	v := text(in)
	v.Why = plain(err.Error())
	err = fmt.Errorf("boot script for %s: %w", v.Title, err)
	out, rerr := execute("refused."+language+".tmpl", v)
	if rerr != nil {
		return nil, rerr
	}
	return out, err
}

// ownScript is the script of the record as it stands there. Its line end is added
// where it has none: iPXE does not run a last line without one.
func ownScript(in *ScriptInput) ([]byte, error) {
	if err := hardware.ValidOwnScript(in.Own.Script); err != nil {
		return refused(in, "ipxe", fmt.Errorf("spec.netboot.ipxe.script: %w", err))
	}
	return []byte(strings.TrimRight(in.Own.Script, "\n") + "\n"), nil
}

// text is the part of the view that is there for every script.
func text(in *ScriptInput) *view {
	v := &view{Machine: plain(in.Machine), MAC: in.MAC.String(), Why: plain(in.Why)}
	if in.Why == "" {
		v.Why = plain(in.Next.Reason.Sentence())
	}
	v.Title = v.Machine + " (" + v.MAC + ")"
	return v
}

func newView(in *ScriptInput, shape, language string) (*view, error) {
	v := text(in)
	switch {
	case shape == "disk":
		return v, v.addLoaders(in)
	case shape == "worker":
		if err := v.addServer(in); err != nil {
			return nil, err
		}
		if err := v.addLoaders(in); err != nil {
			return nil, err
		}
		if a := in.Firmware.Arch(); a != "" && a != in.Arch {
			return nil, fmt.Errorf("spec.arch: the record says %s, and the firmware is of an %s machine (set spec.arch: %s)", in.Arch, a, a)
		}
		v.Kernel, v.Initramfs = "vmlinuz-"+in.Arch, "initramfs-"+in.Arch
		var err error
		v.Words, v.Args, err = commandLine(in)
		return v, err
	case shape == "halt":
		if err := v.addServer(in); err != nil {
			v.Script = ScriptPath(in.MAC) // it stops all the same, and asks whoever it asked before
		}
		return v, nil
	case shape == "notoken" && language == "ipxe":
		return v, v.addServer(in)
	case shape == "chain":
		if err := hardware.ValidChainURL(in.Own.URL); err != nil {
			return nil, fmt.Errorf("spec.netboot.ipxe.url: %w", err)
		}
		v.Own = in.Own.URL
	}
	return v, nil
}

// addServer adds what depends on our address.
func (v *view) addServer(in *ScriptInput) error {
	a := in.HTTP.Addr()
	if !in.HTTP.IsValid() || a.Zone() != "" || a.IsUnspecified() {
		return fmt.Errorf("%q is no address that a machine could reach us at (set the Subnet's advertise)", in.HTTP)
	}
	v.Base = "http://" + in.HTTP.String()
	v.Script = v.Base + ScriptPath(in.MAC)
	v.Host = a.String()
	v.Files = "(tftp," + v.Host + ")/boot/"
	return nil
}

// addLoaders checks the architecture, and adds the names that its boot loaders
// have on a disk.
func (v *view) addLoaders(in *ScriptInput) error {
	switch in.Arch {
	case "amd64":
		v.Loader, v.Shim = "BOOTX64.EFI", "shimx64.efi"
	case "arm64":
		v.Loader, v.Shim = "BOOTAA64.EFI", "shimaa64.efi"
	default:
		return fmt.Errorf("spec.arch: %.20q is not known (amd64 or arm64)", in.Arch)
	}
	return nil
}

// ScriptPath is the path of a machine's boot script below our HTTP base.
func ScriptPath(m hardware.MAC) string { return scriptPath(m.String()) }

func scriptPath(mac string) string { return "/ipxe/script/" + mac + "/auto.ipxe" }

func execute(name string, v *view) ([]byte, error) {
	t, err := template.New(name).Funcs(template.FuncMap{"quote": grubQuote}).ParseFS(scripts, "scripts/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
