package image

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// fetching begins the names of files that are fetched in several tries, also over
	// restarts.
	fetching = ".fetch-"
	// marked ends the names of the files that say what those are.
	marked = ".mark"
	// maxMark bounds one of them.
	maxMark = 16 << 10
)

// Partial is a file that grows over several tries, which a restart does not end. It
// counts against the quota. Not for concurrent use.
type Partial struct {
	grower
	name   string
	mark   string
	synced int64 // what survives a power cut
}

// markFile is what is on the disk beside a Partial.
type markFile struct {
	Mark   string `json:"mark"`
	Synced int64  `json:"synced"`
}

// Partial opens the file of that key, or begins it. A key has one Partial at a time.
// Bytes that a power cut may have lost are dropped.
func (s *Store) Partial(ctx context.Context, key string) (*Partial, error) {
	if _, err := hex.DecodeString(key); err != nil || key == "" || len(key) > 64 {
		return nil, fmt.Errorf("%.70q is no key", key)
	}
	name := filepath.Join(s.dir, fetching+key)
	var m markFile
	if b, err := readSmall(name + marked); err == nil && json.Unmarshal(b, &m) != nil {
		m = markFile{}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	p := &Partial{grower: grower{s: s, ctx: ctx, f: f}, name: name, mark: m.Mark, synced: m.Synced}
	st, err := f.Stat()
	if err == nil {
		p.size = st.Size()
		err = p.cut(max(0, min(p.size, m.Synced)))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxMark))
}

// Size is how many bytes are there.
func (p *Partial) Size() int64 { return p.size }

// Mark is what Begin was told of these bytes.
func (p *Partial) Mark() string { return p.mark }

// Room says whether n more bytes fit: ErrQuota, ErrNoSpace.
func (p *Partial) Room(n int64) error { return p.s.Room(n) }

// Begin drops what is there and begins anew, with a mark that tells this file from
// its other versions.
func (p *Partial) Begin(mark string) error {
	if len(mark) > maxMark/2 {
		return fmt.Errorf("a mark of %d bytes", len(mark))
	}
	if err := p.cut(0); err != nil {
		return err
	}
	p.mark, p.synced = mark, 0
	return p.save()
}

// Write appends: ErrQuota, ErrNoSpace, or the ctx's error.
func (p *Partial) Write(b []byte) (int, error) {
	n, err := p.grower.Write(b)
	if err == nil && p.size-p.synced >= step {
		err = p.save()
	}
	return n, err
}

func (p *Partial) cut(n int64) error {
	if err := p.f.Truncate(n); err != nil {
		return err
	}
	p.s.give(p.size - n)
	p.size, p.until = n, 0
	_, err := p.f.Seek(n, io.SeekStart)
	return err
}

// save makes what is there survive a power cut: first the bytes, then their number.
func (p *Partial) save() error {
	if err := p.f.Sync(); err != nil {
		return p.s.explain(err, p.size)
	}
	b, err := json.Marshal(markFile{p.mark, p.size})
	if err == nil {
		err = os.WriteFile(p.name+marked+"~", b, 0o600)
	}
	if err == nil {
		err = os.Rename(p.name+marked+"~", p.name+marked)
	}
	if err != nil {
		return p.s.explain(err, p.size)
	}
	p.synced = p.size
	return nil
}

// Keep makes the file a blob, if it has the checksum, which is as in Put. It calls
// progress with the bytes that were hashed. ErrChecksum removes the file, and so
// does success, and a directory that cannot be made durable.
func (p *Partial) Keep(want string, progress func(done int64)) (Blob, error) {
	sums, err := newSums(want)
	if err != nil {
		return Blob{}, err
	}
	buf := make([]byte, chunk)
	for at := int64(0); at < p.size; {
		if err := p.ctx.Err(); err != nil {
			return Blob{}, err
		}
		n, err := p.f.ReadAt(buf[:min(chunk, p.size-at)], at)
		if n == 0 && err != nil {
			return Blob{}, err
		}
		sums.write(buf[:n])
		at += int64(n)
		progress(at)
	}
	b := Blob{Bytes: p.size}
	if b.Digest, err = sums.check(); err != nil {
		p.Remove()
		return Blob{}, err
	}
	kept, err := p.s.keep(p.f, b.Digest)
	switch {
	case err != nil:
		err = p.s.explain(err, p.size)
		if _, gone := os.Lstat(p.name); errors.Is(gone, fs.ErrNotExist) {
			p.Remove() // it had its new name already: its room is free again
		}
		return Blob{}, err
	case kept:
		_ = os.Remove(p.name + marked) // else SweepPartials does it
	default:
		p.Remove()
	}
	p.Close()
	return b, nil
}

// Close leaves the file for another try.
func (p *Partial) Close() {
	if p.f != nil && p.size > p.synced && p.ctx.Err() != nil {
		_ = p.save() // else what is there is fetched again
	}
	_ = p.f.Close()
}

// Remove gives up.
func (p *Partial) Remove() {
	p.remove()
	p.size, p.synced = 0, 0
	_ = os.Remove(p.name + marked)
	_ = p.f.Close()
}

// SweepPartials removes the files of keys that nobody needs.
func (s *Store) SweepPartials(needed func(key string) bool) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		key, ok := strings.CutPrefix(strings.TrimSuffix(strings.TrimSuffix(e.Name(), "~"), marked), fetching)
		if !ok || needed(key) {
			continue
		}
		st, err := e.Info()
		if err == nil {
			err = os.Remove(filepath.Join(s.dir, e.Name()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if e.Name() == fetching+key {
			s.give(st.Size())
		}
	}
	return nil
}
