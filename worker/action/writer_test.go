package action

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// A disk that returns something else than was written is found out: in the
// first block always, elsewhere when the block was sampled, as all are here.
func TestVerifyFindsABrokenDisk(t *testing.T) {
	t.Parallel()
	image := testImage(3*blockSize + 1000)
	for _, at := range []int64{-1, 0, blockSize - 1, blockSize, 2*blockSize + 77, 3*blockSize + 999} {
		env := fakeMachine(t, fakeDisk{name: "sda", size: 5 * blockSize})
		dev, err := openDevice(filepath.Join(env.Sys.Dev, "sda"))
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		w := &diskWriter{dev: dev, moved: func(int64) {}, abort: func() {}, samples: newSampler()}
		if _, err := w.copyFrom(t.Context(), bytes.NewReader(image)); err != nil {
			t.Fatal(err)
		}
		if err := w.finish(); err != nil {
			t.Fatal(err)
		}
		if at >= 0 {
			sector := make([]byte, dev.sector)
			start := at / int64(dev.sector) * int64(dev.sector)
			if _, err := dev.ReadAt(sector, start); err != nil {
				t.Fatal(err)
			}
			sector[at-start] ^= 1
			if err := dev.writeAny(sector, start); err != nil {
				t.Fatal(err)
			}
		}
		err = w.verify()
		if at < 0 && err != nil || at >= 0 && (err == nil || !strings.Contains(err.Error(), "does not return what was written")) {
			t.Errorf("byte %d altered: %v", at, err)
		}
	}
}

// BenchmarkSampler is the cost of the samples to the thread that decodes.
func BenchmarkSampler(b *testing.B) {
	block := testImage(blockSize)
	b.SetBytes(200 * blockSize)
	for b.Loop() {
		s := newSampler()
		for n := range int64(200) {
			s.see(n*blockSize, block)
		}
	}
}
