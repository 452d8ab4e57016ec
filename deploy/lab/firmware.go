package lab

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
)

// Firmware is what starts a machine.
type Firmware string

// The firmwares a machine can have.
const (
	// BIOS is SeaBIOS; the network card's ROM is iPXE.
	BIOS Firmware = "bios"
	// PlainPXE is SeaBIOS with a ROM that passes for one without iPXE: see l2.Port.
	PlainPXE Firmware = "pxe"
	// UEFI is OVMF without Secure Boot; its own PXE stack boots the network.
	UEFI Firmware = "uefi"
	// UEFIHTTP is UEFI whose owner chose HTTP boot over IPv4.
	UEFIHTTP Firmware = "http"
	// SecureBoot is OVMF with Microsoft's keys, which boots by PXE what they signed.
	SecureBoot Firmware = "secureboot"
	// SecureBootHTTP is SecureBoot whose owner chose HTTP boot over IPv4.
	SecureBootHTTP Firmware = "secureboot-http"
	// ARM64 is AAVMF on an emulated arm64 machine; its own PXE stack boots the network.
	ARM64 Firmware = "arm64"
	// ARM64HTTP is ARM64 whose owner chose HTTP boot over IPv4.
	ARM64HTTP Firmware = "arm64-http"
)

// Firmwares are all there are.
func Firmwares() []Firmware {
	return []Firmware{BIOS, PlainPXE, UEFI, UEFIHTTP, SecureBoot, SecureBootHTTP, ARM64, ARM64HTTP}
}

// Arch is the processor that a machine with this firmware has, as Go names it.
func (f Firmware) Arch() string {
	if platforms[f].binary == arm64 {
		return "arm64"
	}
	return "amd64"
}

// platform is what QEMU is told of a firmware.
type platform struct {
	binary  string
	machine string
	cpu     string
	// code and vars are the flash of a UEFI; both are empty for SeaBIOS.
	code, vars string
	args       []string
	// network is what FromNetwork means to it.
	network BootFrom
	// plainPXE has the switch hide that the ROM is iPXE.
	plainPXE bool
	// screen says that there is a VGA card.
	screen bool
}

const (
	x86   = "qemu-system-x86_64"
	arm64 = "qemu-system-aarch64"
)

// X86CPU is the processor that emulation shows: the x86-64-v2 level, which most
// distributions ask for, and a random number instruction. More costs time: with
// "max" guests choose instructions that emulation is slow at (rep movsb, AVX),
// five levels of page tables, and drivers for virtualisation that leads nowhere.
const X86CPU = "qemu64,-svm,+cx16,+lahf-lm,+popcnt,+ssse3,+sse4.1,+sse4.2,+rdrand"

// q35 without graphics makes SeaBIOS, and iPXE through it, speak on the serial port too.
const q35 = "q35,graphics=off"

// platforms are the firmwares; the files are those of Debian's ovmf and
// qemu-efi-aarch64.
var platforms = map[Firmware]platform{
	BIOS:     {binary: x86, machine: q35, cpu: X86CPU, network: FromNetwork, screen: true},
	PlainPXE: {binary: x86, machine: q35, cpu: X86CPU, network: FromNetwork, screen: true, plainPXE: true},
	UEFI: {
		binary: x86, machine: q35, cpu: X86CPU, network: FromNetwork, screen: true,
		code: "/usr/share/OVMF/OVMF_CODE_4M.fd", vars: "/usr/share/OVMF/OVMF_VARS_4M.fd",
	},
	UEFIHTTP: {
		binary: x86, machine: q35, cpu: X86CPU, network: fromHTTP, screen: true,
		code: "/usr/share/OVMF/OVMF_CODE_4M.fd", vars: "/usr/share/OVMF/OVMF_VARS_4M.fd",
	},
	SecureBoot: {
		// Only code in system management mode may write the keys.
		binary: x86, machine: q35 + ",smm=on", cpu: X86CPU, network: FromNetwork, screen: true,
		code: "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", vars: "/usr/share/OVMF/OVMF_VARS_4M.ms.fd",
		args: []string{"-global", "driver=cfi.pflash01,property=secure,value=on"},
	},
	SecureBootHTTP: {
		binary: x86, machine: q35 + ",smm=on", cpu: X86CPU, network: fromHTTP, screen: true,
		code: "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", vars: "/usr/share/OVMF/OVMF_VARS_4M.ms.fd",
		args: []string{"-global", "driver=cfi.pflash01,property=secure,value=on"},
	},
	ARM64: {
		binary: arm64, machine: "virt", cpu: "cortex-a57", network: FromNetwork,
		code: "/usr/share/AAVMF/AAVMF_CODE.fd", vars: "/usr/share/AAVMF/AAVMF_VARS.fd",
	},
	ARM64HTTP: {
		binary: arm64, machine: "virt", cpu: "cortex-a57", network: fromHTTP,
		code: "/usr/share/AAVMF/AAVMF_CODE.fd", vars: "/usr/share/AAVMF/AAVMF_VARS.fd",
	},
}

// uefi reports whether the firmware keeps its boot order in variables of its own.
func (p *platform) uefi() bool { return p.code != "" }

// meant is from as bootsFrom calls it for this firmware.
func (p *platform) meant(from BootFrom) BootFrom {
	if from == FromNetwork {
		return p.network
	}
	return from
}

// newVars are the variables of a machine that was never on.
func (p *platform) newVars(mac net.HardwareAddr, diskFirst bool) ([]byte, error) {
	vars, err := os.ReadFile(p.vars)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimRight(vars, "\x00")) == 0 { // as of AAVMF, which formats it at the first start
		vars = formatted(len(vars))
	}
	if diskFirst {
		return vars, nil
	}
	if vars, err = netbootFirst(vars, mac, p.network); err != nil {
		return nil, fmt.Errorf("%s: %w", p.vars, err)
	}
	return vars, nil
}

// writeVars leaves a hole where the flash is empty; AAVMF's has 64 MiB.
func writeVars(path string, vars []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.TrimRight(vars, "\x00"))
	return errors.Join(err, f.Truncate(int64(len(vars))), f.Close())
}
