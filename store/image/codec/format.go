package codec

import (
	"bytes"
	"fmt"
)

// Format is how the source bytes are encoded.
type Format string

// The formats. Auto recognises the format by content and requires the decoded
// content to look like a disk; Raw, when asked for by name, takes the source
// bytes as they are, whatever they look like.
const (
	Auto  Format = ""
	Raw   Format = "raw"
	Gzip  Format = "gz"
	Xz    Format = "xz"
	Zstd  Format = "zst"
	Bzip2 Format = "bz2"
)

// ParseFormat reads the name of a format; "" and "auto" are [Auto].
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Auto, Raw, Gzip, Xz, Zstd, Bzip2:
		return f, nil
	case "auto":
		return Auto, nil
	}
	return Auto, fmt.Errorf("image format %q is not known (use auto, raw, gz, xz, zst or bz2)", s)
}

// SniffLen is how many leading bytes [Sniff] can make use of: the volume
// descriptor of ISO 9660 begins at 32 KiB.
const SniffLen = 36 << 10

// Sniff recognises the format of a source by its first bytes, at best
// [SniffLen] of them. It returns [Raw] only for content that begins like a
// disk. The error wraps [ErrFormat] and says what the content is instead and
// what to do about it.
func Sniff(head []byte) (Format, error) {
	if f := sniffCompressed(head); f != Auto {
		return f, nil
	}
	return Raw, checkDisk(head)
}

// sniffCompressed returns the compression format of head, or Auto.
func sniffCompressed(head []byte) Format {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b, 0x08}): // RFC 1952, section 2.3; 8 is deflate
		return Gzip
	case bytes.HasPrefix(head, []byte(xzMagic)):
		return Xz
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}): // RFC 8878, section 3.1.1
		return Zstd
	case len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18}):
		return Zstd // a skippable frame first, as pzstd writes; section 3.1.2
	case len(head) >= 10 && bytes.HasPrefix(head, []byte("BZh")) && head[3] >= '1' && head[3] <= '9' &&
		(string(head[4:10]) == "1AY&SY" || string(head[4:10]) == "\x17rE8P\x90"):
		return Bzip2
	}
	return Auto
}

// bootSignature is the end of the first sector of every MBR, and of every GPT
// disk, whose first sector is a protective MBR (UEFI 2.10, section 5.2.1).
var bootSignature = []byte{0x55, 0xaa}

const bootSignatureOffset = 510

// checkDisk refuses content that does not begin like a whole disk.
func checkDisk(head []byte) error {
	if len(head) == 0 {
		return formatError("the source is empty (check the URL)")
	}
	for _, k := range knownContent {
		if k.matches(head) {
			return formatError("it is %s (%s)", k.what, k.remedy)
		}
	}
	if len(head) >= bootSignatureOffset+2 && bytes.Equal(head[bootSignatureOffset:bootSignatureOffset+2], bootSignature) {
		return nil
	}
	for _, k := range knownText {
		if k.matches(head) {
			return formatError("it is %s (%s)", k.what, k.remedy)
		}
	}
	if what, ok := describeText(head); ok {
		return formatError("it is %s (%s)", what, checkURL)
	}
	if len(head) < bootSignatureOffset+2 {
		return formatError("it has only %d bytes (check the URL)", len(head))
	}
	return formatError("it has no partition table: no boot signature at byte 510 (use a whole-disk image; set format: raw to write it all the same)")
}
