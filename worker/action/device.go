package action

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blockSize is the unit in which images are written: large enough that neither
// disks nor flash see partial stripes.
const blockSize = 4 << 20

// device is an opened disk, or a file in its place. All offsets and lengths
// are multiples of sector, all buffers come from alignedBuffer.
type device struct {
	f      *os.File
	path   string
	size   int64
	sector int
	block  bool // a block device, not a file
	direct bool // the page cache is bypassed
}

// openDevice opens a disk for reading and writing. O_EXCL on a block device
// means that nothing has it mounted or is built on it.
func openDevice(path string) (*device, error) {
	return openWith(path, os.O_RDWR|unix.O_EXCL)
}

// openReadOnly opens a disk that others may use.
func openReadOnly(path string) (*device, error) {
	return openWith(path, os.O_RDONLY)
}

func openWith(path string, flags int) (*device, error) {
	d := &device{path: path, sector: 512, direct: true}
	flags |= unix.O_CLOEXEC
	f, err := os.OpenFile(path, flags|unix.O_DIRECT, 0)
	if errors.Is(err, unix.EINVAL) {
		d.direct = false
		f, err = os.OpenFile(path, flags, 0)
	}
	if errors.Is(err, unix.EBUSY) {
		return nil, fmt.Errorf("disk %s is in use: mounted or part of an array (netboot the machine again)", path)
	}
	if err != nil {
		return nil, err
	}
	d.f = f
	if err := d.measure(); err != nil {
		f.Close()
		return nil, err
	}
	return d, nil
}

func (d *device) measure() error {
	info, err := d.f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		d.size = info.Size() / int64(d.sector) * int64(d.sector)
		return nil
	}
	d.block = true
	if d.sector, err = unix.IoctlGetInt(int(d.f.Fd()), unix.BLKSSZGET); err != nil {
		return fmt.Errorf("%s: sector size: %w", d.path, err)
	}
	d.size, err = d.f.Seek(0, io.SeekEnd)
	return err
}

// Close closes the device without flushing it.
func (d *device) Close() error { return d.f.Close() }

// flush returns when the disk has everything on its medium.
func (d *device) flush() error {
	if err := d.f.Sync(); err != nil {
		return fmt.Errorf("flush %s: %w", d.path, err)
	}
	return nil
}

// ReadAt implements [io.ReaderAt] for any offset and length.
func (d *device) ReadAt(p []byte, offset int64) (int, error) {
	sector := int64(d.sector)
	start := offset / sector * sector
	buf := alignedBuffer(int((offset - start + int64(len(p)) + sector - 1) / sector * sector))
	n, err := d.f.ReadAt(buf, start)
	if n -= int(offset - start); n < 0 {
		n = 0
	}
	n = copy(p, buf[offset-start:][:min(n, len(p))])
	if n == len(p) {
		err = nil
	}
	return n, err
}

// writeAt writes an aligned buffer.
func (d *device) writeAt(p []byte, offset int64) error {
	if _, err := d.f.WriteAt(p, offset); err != nil {
		return fmt.Errorf("write %s at byte %d: %w", d.path, offset, err)
	}
	return nil
}

// writeAny writes whole sectors from a buffer of any alignment.
func (d *device) writeAny(p []byte, offset int64) error {
	buf := alignedBuffer(len(p))
	copy(buf, p)
	return d.writeAt(buf, offset)
}

// zero makes a range read as zeros. The kernel uses a command of the disk for
// that where there is one that keeps the promise, and writes zeros elsewhere;
// a discard alone promises nothing about what is read afterwards.
func (d *device) zero(r extent) error {
	if r.length <= 0 {
		return nil
	}
	if d.block {
		arg := [2]uint64{uint64(r.offset), uint64(r.length)}
		if err := d.ioctl(unix.BLKZEROOUT, unsafe.Pointer(&arg)); err == nil {
			return nil
		} else if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOTTY) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("write zeros to %s at byte %d: %w", d.path, r.offset, err)
		}
	}
	return d.writeZeros(r)
}

// writeZeros overwrites a range with plain writes, whatever commands the disk has.
func (d *device) writeZeros(r extent) error {
	zeros := alignedBuffer(int(min(r.length, blockSize)))
	for done := int64(0); done < r.length; {
		n := min(r.length-done, int64(len(zeros)))
		if err := d.writeAt(zeros[:n], r.offset+done); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// discard tells the disk that a range holds nothing any more.
func (d *device) discard(r extent) error {
	if !d.block {
		return unix.EOPNOTSUPP
	}
	arg := [2]uint64{uint64(r.offset), uint64(r.length)}
	return d.ioctl(unix.BLKDISCARD, unsafe.Pointer(&arg))
}

func (d *device) ioctl(request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// dropCache makes sure that what is read next comes from the disk.
func (d *device) dropCache() {
	if d.block {
		_ = d.ioctl(unix.BLKFLSBUF, nil)
	} else if !d.direct {
		_ = unix.Fadvise(int(d.f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
}

// remainsError says that a disk still holds something after it was wiped.
type remainsError struct {
	path   string
	offset int64 // of the first byte that is not zero
}

func (e remainsError) Error() string {
	return fmt.Sprintf("disk %s does not read zero at byte %d after it was wiped", e.path, e.offset)
}

// replace adds what to do about a disk that cannot be wiped.
func (e remainsError) replace() error {
	return permanentf("%w (the disk is broken or write-protected: replace it)", e)
}

// checkZero reads ranges back and returns an error naming the first byte that is not
// zero.
func (d *device) checkZero(ranges []extent) error {
	d.dropCache()
	buf := alignedBuffer(1 << 20)
	for _, r := range ranges {
		err := d.readsZero(r, buf)
		var remains remainsError
		if errors.As(err, &remains) {
			return remains.replace()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readsZero reads one range and returns a [remainsError] for the first byte that is
// not zero.
func (d *device) readsZero(r extent, buf []byte) error {
	for done := int64(0); done < r.length; {
		p := buf[:min(r.length-done, int64(len(buf)))]
		if _, err := d.f.ReadAt(p, r.offset+done); err != nil {
			return fmt.Errorf("read %s back at byte %d: %w", d.path, r.offset+done, err)
		}
		if n := firstNonZero(p); n >= 0 {
			return remainsError{d.path, r.offset + done + int64(n)}
		}
		done += int64(len(p))
	}
	return nil
}

// pageSize is more than the alignment that any disk asks of a buffer.
const pageSize = 4096

// alignedBuffer returns n zero bytes at an address that O_DIRECT accepts.
func alignedBuffer(n int) []byte {
	b := make([]byte, n+pageSize)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (pageSize - 1)
	return b[skip : skip+n : skip+n]
}

var zeroBlock = make([]byte, 64<<10)

// firstNonZero returns the index of the first byte of p that is not zero, or -1.
func firstNonZero(p []byte) int {
	for at := 0; at < len(p); at += len(zeroBlock) {
		part := p[at:min(at+len(zeroBlock), len(p))]
		if string(part) == string(zeroBlock[:len(part)]) {
			continue
		}
		for i, b := range part {
			if b != 0 {
				return at + i
			}
		}
	}
	return -1
}
