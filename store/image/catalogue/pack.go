package catalogue

import (
	"bytes"
	"io"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

const (
	// zeroRun is how many zeros are in one ready-made frame.
	zeroRun = 8 << 20
	// zeroBlock is what is looked at for zeros at a time.
	zeroBlock = 64 << 10
	// maxEncoders bounds the processors that packing takes.
	maxEncoders = 4
)

// packer writes a disk as zstd frames, which workers unpack faster than a disk takes
// them. Long runs of zeros are ready-made frames of a few hundred bytes: an empty
// terabyte takes a second. Frames may follow each other (RFC 8878 section 3).
type packer struct {
	w       io.Writer
	enc     *zstd.Encoder
	inFrame bool
	zeros   int64 // not written yet
	run     []byte
	blank   []byte
	n       int64 // of the disk
}

func newPacker(w io.Writer) (*packer, error) {
	enc, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(4<<20),
		zstd.WithEncoderConcurrency(min(maxEncoders, runtime.GOMAXPROCS(0))))
	if err != nil {
		return nil, err
	}
	return &packer{w: w, enc: enc, run: enc.EncodeAll(make([]byte, zeroRun), nil), blank: make([]byte, zeroBlock)}, nil
}

// Write takes data, which may hold zeros.
func (p *packer) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		block := rest[:min(len(rest), zeroBlock)]
		rest = rest[len(block):]
		if bytes.Equal(block, p.blank[:len(block)]) {
			p.Zero(int64(len(block)))
			continue
		}
		if err := p.flush(); err != nil {
			return 0, err
		}
		p.n += int64(len(block))
		p.inFrame = true
		if _, err := p.enc.Write(block); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// Zero takes n zeros.
func (p *packer) Zero(n int64) {
	p.n += n
	p.zeros += n
}

// flush writes the zeros that are due.
func (p *packer) flush() error {
	if p.zeros >= 2*zeroRun {
		if p.inFrame {
			if err := p.enc.Close(); err != nil {
				return err
			}
			p.enc.Reset(p.w)
			p.inFrame = false
		}
		for ; p.zeros >= zeroRun; p.zeros -= zeroRun {
			if _, err := p.w.Write(p.run); err != nil {
				return err
			}
		}
	}
	for p.zeros > 0 {
		n := min(p.zeros, zeroBlock)
		p.inFrame = true
		if _, err := p.enc.Write(p.blank[:n]); err != nil {
			return err
		}
		p.zeros -= n
	}
	return nil
}

// Close writes what is left.
func (p *packer) Close() error {
	if err := p.flush(); err != nil {
		_ = p.enc.Close()
		return err
	}
	if !p.inFrame {
		p.enc.Reset(io.Discard) // else it adds an empty frame
	}
	return p.enc.Close()
}
