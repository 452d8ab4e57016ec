package ipxe

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// packedSuffix is the ending of a file that is embedded compressed: the kernel for
// arm64 is an image that nothing compressed, and its signature is for those bytes.
const packedSuffix = ".zst"

// unpacked are the files that were embedded packed and then asked for. Each is a file
// without a name, which ends with the process.
type unpacked struct {
	mu    sync.Mutex
	files map[string]part // guarded by mu
}

// openPacked opens a file that is embedded packed. The first call unpacks it.
func (a *Assets) openPacked(name string) (part, error) {
	a.unpacked.mu.Lock()
	defer a.unpacked.mu.Unlock()
	if p, ok := a.unpacked.files[name]; ok {
		return p, nil
	}
	p, err := a.unpack(name)
	if err != nil {
		return part{}, fmt.Errorf("boot file %q: %w", name, err)
	}
	if a.unpacked.files == nil {
		a.unpacked.files = map[string]part{}
	}
	a.unpacked.files[name] = p
	return p, nil
}

// unpack writes the file to the disk, where its pages cost memory only while they are
// read, or to memory where the disk takes nothing: a full disk must not keep machines
// from booting.
func (a *Assets) unpack(name string) (part, error) {
	if _, err := fs.Stat(a.builtin, name+packedSuffix); err != nil {
		return part{}, err
	}
	f, sum, err := a.unpackTo(name, func() (*os.File, error) { return onDisk(a.scratch) })
	if err != nil {
		var merr error
		if f, sum, merr = a.unpackTo(name, inMemory); merr != nil {
			return part{}, errors.Join(err, merr)
		}
	}
	info, err := f.Stat()
	if err == nil {
		err = a.sealed(name, sum)
	}
	if err != nil {
		return part{}, errors.Join(err, f.Close())
	}
	p := part{ReaderAt: f, Closer: io.NopCloser(nil), size: info.Size(), id: "embedded:" + name}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sums[p.id] = sum
	return p, nil
}

// unpackTo returns the unpacked file and its checksum.
func (a *Assets) unpackTo(name string, create func() (*os.File, error)) (*os.File, string, error) {
	packed, err := a.builtin.Open(name + packedSuffix)
	if err != nil {
		return nil, "", err
	}
	defer packed.Close()
	// One goroutine, and no more memory than the frame's window.
	z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, "", err
	}
	defer z.Close()
	f, err := create()
	if err != nil {
		return nil, "", err
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, h), z); err != nil {
		return nil, "", errors.Join(err, f.Close())
	}
	return f, hex.EncodeToString(h.Sum(nil)), nil
}

// sealed compares a checksum with what provenance.json says.
func (a *Assets) sealed(name, sum string) error {
	list, err := a.builtinProvenance()
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.File == name && p.SHA256 == sum {
			return nil
		}
	}
	return fmt.Errorf("unpacked it has sha256 %s, which provenance.json does not say (run `make assets` and build again)", sum)
}

// onDisk makes a file without a name below dir.
func onDisk(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".unpacked-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// inMemory makes a file without a name in memory.
func inMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("rackstrap boot file", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "boot file in memory"), nil
}
