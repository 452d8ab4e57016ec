package efiboot

import (
	"encoding/binary"
	"fmt"
)

// Active is the attribute of a load option that the firmware may boot.
const Active = 1

// Option is an EFI_LOAD_OPTION, the content of a variable Boot#### (UEFI 2.10,
// section 3.1.3).
type Option struct {
	Attributes  uint32
	Description string
	// Paths has the device path of the file to boot first; others are the
	// firmware vendor's business.
	Paths []Path
	// Data is handed to the program.
	Data []byte
}

// Disk is the option that boots file, with backslashes, of a partition.
func Disk(description string, p Partition, file string) Option {
	return Option{Attributes: Active, Description: description, Paths: []Path{{p.Node(), FileNode(file)}}}
}

// Encode returns the bytes of o. It fails when the paths are longer than 64 KiB.
func (o Option) Encode() ([]byte, error) {
	var paths []byte
	for _, p := range o.Paths {
		for _, n := range p {
			if len(n.Data) > maxPaths-4 {
				return nil, fmt.Errorf("device path node of %d bytes is too long", len(n.Data))
			}
		}
		paths = p.append(paths)
	}
	if len(paths) > maxPaths {
		return nil, fmt.Errorf("device paths of %d bytes are too long", len(paths))
	}
	b := binary.LittleEndian.AppendUint32(nil, o.Attributes)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(paths)))
	b = appendText(b, o.Description)
	b = append(b, paths...)
	return append(b, o.Data...), nil
}

// Decode is the opposite of [Option.Encode]: what it accepts encodes to the same
// bytes. The option points into b. Its error wraps [ErrFormat].
func Decode(b []byte) (Option, error) {
	if len(b) < 6 {
		return Option{}, fmt.Errorf("%w: a load option of %d bytes", ErrFormat, len(b))
	}
	o := Option{Attributes: binary.LittleEndian.Uint32(b)}
	size := int(binary.LittleEndian.Uint16(b[4:]))
	text, rest, err := cutText(b[6:])
	if err != nil {
		return Option{}, err
	}
	if size > len(rest) {
		return Option{}, fmt.Errorf("%w: device paths of %d bytes in %d", ErrFormat, size, len(rest))
	}
	o.Description, o.Data = text, rest[size:]
	for paths := rest[:size]; len(paths) > 0; {
		var p Path
		if p, paths, err = cutPath(paths); err != nil {
			return Option{}, err
		}
		o.Paths = append(o.Paths, p)
	}
	return o, nil
}
