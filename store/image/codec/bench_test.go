package codec

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os/exec"
	"testing"
)

// BenchmarkDecode measures decoded bytes per second with the checksum, from
// sources that the real programs compressed. Half of the disk is zeros, the
// rest text-like.
func BenchmarkDecode(b *testing.B) {
	disk := make([]byte, 64<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([][]byte, 4096)
	for i := range words {
		words[i] = make([]byte, 3+rng.IntN(12))
		for j := range words[i] {
			words[i][j] = byte('a' + rng.IntN(26))
		}
	}
	for n := 0; n < len(disk)/2; {
		n += copy(disk[n:len(disk)/2], words[rng.IntN(len(words))])
	}
	copy(disk[510:], bootSignature)
	for _, tool := range [][]string{{"cat"}, {"gzip", "-c"}, {"bzip2", "-c"}, {"xz", "-1", "-c"}, {"zstd", "-q", "-c"}} {
		b.Run(tool[0], func(b *testing.B) {
			cmd := exec.Command(tool[0], tool[1:]...)
			cmd.Stdin = bytes.NewReader(disk)
			source, err := cmd.Output()
			if err != nil {
				b.Skipf("%s is not installed: %v", tool[0], err)
			}
			o := Options{Checksum: checksum(b, source), Size: int64(len(source))}
			b.SetBytes(int64(len(disk)))
			b.ReportAllocs()
			for b.Loop() {
				d, err := NewReader(bytes.NewReader(source), o)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, d, make([]byte, 4<<20)); err != nil {
					b.Fatal(err)
				}
				d.Close()
			}
		})
	}
}
