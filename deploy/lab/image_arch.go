package lab

import "strings"

// imageArch is what differs between the images of two architectures.
type imageArch struct {
	debian   string // its name
	packages []string
	// The names of boot programs and of the serial line: see recipe/customize.sh.
	loader, shim, grub, signed, serial string
	bios                               bool
}

var imageArches = map[string]imageArch{
	"amd64": {
		debian: "amd64", packages: []string{"grub-efi-amd64-signed", "grub-pc-bin", "linux-image-cloud-amd64"},
		loader: "BOOTX64.EFI", shim: "shimx64.efi", grub: "grubx64.efi", signed: "x86_64-efi-signed", serial: "ttyS0", bios: true,
	},
	"arm64": {
		debian: "arm64", packages: []string{"grub-efi-arm64-signed", "linux-image-cloud-arm64"},
		loader: "BOOTAA64.EFI", shim: "shimaa64.efi", grub: "grubaa64.efi", signed: "arm64-efi-signed", serial: "ttyAMA0",
	},
}

// script is what runs inside the new root.
func (a imageArch) script() string {
	s := recipeScript
	if a.bios {
		s += recipeBIOS
	}
	return strings.NewReplacer("@ROOT@", rootUUID, "@ESP@", espID[:4]+"-"+espID[4:],
		"@LOADER@", a.loader, "@SHIM@", a.shim, "@GRUB@", a.grub, "@SIGNED@", a.signed, "@SERIAL@", a.serial).Replace(s)
}

// name is the image's in the cache.
func (a imageArch) name() string {
	if a.debian == "amd64" {
		return "debian-12"
	}
	return "debian-12-" + a.debian
}
