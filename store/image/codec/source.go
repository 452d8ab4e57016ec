package codec

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"sync/atomic"
)

const (
	chunkSize  = 256 << 10
	chunkCount = 8
)

// source reads ahead of the decoder in a goroutine of its own, counting and
// hashing. Its consumer sees io.EOF only when the source ended where it was
// announced to end and has the expected checksum; so no decoder, however
// lenient, can turn an altered source into a success.
type source struct {
	r        io.Reader
	size     int64 // bytes announced, negative when unknown
	checksum Checksum
	hash     hash.Hash // nil when there is no checksum
	sha256   hash.Hash // nil unless the checksum is weak

	full    chan chunk
	free    chan []byte
	quit    chan struct{}
	done    chan struct{}
	fetched atomic.Int64

	// Consumer side.
	current []byte // the buffer that rest is a part of
	rest    []byte
	err     error
}

type chunk struct {
	data []byte
	err  error // what ended the source, after data
}

func newSource(r io.Reader, size int64, checksum Checksum) *source {
	s := &source{
		r: r, size: size, checksum: checksum, hash: checksum.newHash(),
		full: make(chan chunk, chunkCount),
		free: make(chan []byte, chunkCount),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
	if checksum.Weak() {
		s.sha256 = sha256.New()
	}
	for range chunkCount {
		s.free <- nil // made when it is first needed
	}
	go s.fetch()
	return s
}

// fetch owns s.r and the hashes. It ends with the source, or when quit is closed.
func (s *source) fetch() {
	defer close(s.done)
	for {
		var buf []byte
		select {
		case buf = <-s.free:
		case <-s.quit:
			return
		}
		if buf == nil {
			buf = make([]byte, chunkSize)
		}
		n, err := s.fill(buf)
		// full has room for every buffer that exists.
		s.full <- chunk{buf[:n], err}
		if err != nil {
			return
		}
	}
}

// fill reads until buf is full or the source ends.
func (s *source) fill(buf []byte) (n int, err error) {
	empty := 0
	for n < len(buf) && err == nil {
		var k int
		k, err = s.r.Read(buf[n:])
		n += k
		total := s.fetched.Add(int64(k))
		if s.size >= 0 && total > s.size {
			n -= int(total - s.size)
			err = fmt.Errorf("%w: more than %d bytes", ErrLength, s.size)
		}
		if empty++; k > 0 {
			empty = 0
		} else if empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	if s.hash != nil {
		s.hash.Write(buf[:n])
	}
	if s.sha256 != nil {
		s.sha256.Write(buf[:n])
	}
	if err == io.EOF {
		err = s.verify()
	}
	return n, err
}

// verify judges the source at its end: io.EOF when it is what was announced.
func (s *source) verify() error {
	if got := s.fetched.Load(); s.size >= 0 && got != s.size {
		return truncated("got %d of %d bytes", got, s.size)
	}
	if s.hash == nil {
		return io.EOF
	}
	sum := s.hash.Sum(nil)
	if subtle.ConstantTimeCompare(sum, s.checksum.Digest) == 1 {
		return io.EOF
	}
	return fmt.Errorf("%w: the source has %s:%s, expected %s (if the image was replaced on purpose, correct the checksum)",
		ErrChecksum, s.checksum.Algorithm, hex.EncodeToString(sum), s.checksum)
}

// next makes rest non-empty or returns what ended the source, again and again.
func (s *source) next() error {
	for len(s.rest) == 0 {
		if s.err != nil {
			return s.err
		}
		if s.current != nil {
			s.free <- s.current[:chunkSize]
			s.current = nil
		}
		c := <-s.full
		s.current, s.rest, s.err = c.data[:0], c.data, c.err
	}
	return nil
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.next(); err != nil {
		return 0, err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// ReadByte implements [io.ByteReader].
func (s *source) ReadByte() (byte, error) {
	if err := s.next(); err != nil {
		return 0, err
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b, nil
}

// head returns up to [SniffLen] bytes without consuming them, fewer when the
// source ends first. It may only be called before the first Read.
func (s *source) head() []byte {
	if s.next() != nil {
		return nil
	}
	return bytes.Clone(s.rest[:min(len(s.rest), SniffLen)])
}

// close ends fetch. The caller has made sure that r does not block.
func (s *source) close() {
	close(s.quit)
	<-s.done
}
