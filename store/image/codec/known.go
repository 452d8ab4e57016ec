package codec

import (
	"bytes"
	"strings"
)

// known is content that people mistake for a disk image.
type known struct {
	offset int
	magic  string
	what   string
	remedy string
}

func (k known) matches(head []byte) bool {
	if len(head) < k.offset {
		return false
	}
	return bytes.HasPrefix(head[k.offset:], []byte(k.magic))
}

const (
	toRaw      = "convert it: qemu-img convert -O raw IN OUT, then compress OUT with zstd"
	unpack     = "unpack it and use the disk image inside"
	recompress = "decompress it and compress the disk image with zstd"
	wholeDisk  = "use a whole-disk image with a partition table; set format: raw to write it all the same"
	twice      = "it was compressed twice: decompress it once"
	checkURL   = "check the URL: a server answered with a page instead of the image"
)

// knownContent is recognised before the boot signature is looked at: each has
// a magic that no boot sector has.
var knownContent = []known{
	{0, "QFI\xfb", "a qcow2 image", "the appliance converts it: rackstrap image add NAME FILE|URL; or do it yourself: qemu-img convert -O raw IN OUT"},
	{0, "QED\x00", "a QED image", toRaw},
	{0, "KDMV", "a VMDK image", toRaw},
	{0, "COWD", "a VMDK image", toRaw},
	{0, "# Disk DescriptorFile", "a VMDK descriptor", toRaw},
	{0, "vhdxfile", "a VHDX image", toRaw},
	{0, "conectix", "a VHD image", toRaw},
	{64, "\x7f\x10\xda\xbe", "a VirtualBox VDI image", toRaw},
	{0, "\x3a\xff\x26\xed", "an Android sparse image", "convert it with simg2img"},
	{0, "MSWIM\x00\x00\x00", "a Windows WIM archive", "use a whole-disk image"},
	{0, "PK\x03\x04", "a zip archive", unpack},
	{0, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive", unpack},
	{0, "Rar!\x1a\x07", "a RAR archive", unpack},
	{257, "ustar", "a tar archive", unpack},
	{0, "070701", "a cpio archive", "use a whole-disk image"},
	{0, "!<arch>\n", "a Debian package or ar archive", "use a whole-disk image"},
	{0, "\x04\x22\x4d\x18", "compressed with lz4", recompress},
	{0, "LZIP", "compressed with lzip", recompress},
	{0, "\x89LZO\x00", "compressed with lzop", recompress},
	{0, "\x5d\x00\x00", "compressed with the old lzma format", recompress},
	{0, "\x1f\x9d", "compressed with compress", recompress},
	{0, "hsqs", "a squashfs filesystem", wholeDisk},
	{0, "sqsh", "a squashfs filesystem", wholeDisk},
	{32769, "CD001", "an ISO 9660 image (an installer or live medium)", "use a disk image of the installed system; set format: raw to write it all the same"},
	{0, "LUKS\xba\xbe", "an encrypted LUKS volume", wholeDisk},
	{0, "\x7fELF", "an ELF program", "use a whole-disk image"},
	{0, "version https://git-lfs", "a Git LFS pointer", "fetch the real file: git lfs pull"},
	{0, "%PDF-", "a PDF document", checkURL},
	{0, "-----BEGIN PGP", "a signature", "use the URL of the image, not of its signature"},
}

// knownText is only looked at when there is no boot signature: short or vague
// magics, which machine code could begin with by accident.
var knownText = []known{
	{0, "MZ", "a Windows or EFI program", "use a whole-disk image"},
	{0, "XFSB", "an XFS filesystem without a partition table", wholeDisk},
	{1080, "\x53\xef", "an ext2, ext3 or ext4 filesystem without a partition table", wholeDisk},
	{0, "{", "a JSON document", checkURL},
}

// describeText names a web page or other text; ok is false for binary content.
func describeText(head []byte) (what string, ok bool) {
	head = head[:min(len(head), 512)]
	for _, b := range head {
		if b < 0x20 && b != '\n' && b != '\r' && b != '\t' && b != '\f' || b == 0x7f {
			return "", false
		}
	}
	text := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(head), "\ufeff")))
	switch {
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"), strings.Contains(text, "<head"):
		return "an HTML page", true
	case strings.HasPrefix(text, "<?xml"), strings.HasPrefix(text, "<"):
		return "an XML document", true
	}
	return "a text", true
}
