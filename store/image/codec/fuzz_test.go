package codec

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/gzip"
)

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzReader: whatever the source is, nothing panics; a source that differs
// from the one its checksum was made for is never a success; and what is a
// success without a checksum is the same disk on every run.
func FuzzReader(f *testing.F) {
	if len(fixtures) == 0 {
		f.Fatal("no seeds")
	}
	original := gzipped(f, make([]byte, 100))
	sum := checksum(f, original)
	f.Add(original)
	for _, s := range fixtures {
		f.Add(fixture(f, s.name))
	}
	f.Add(fixture(f, "large-dictionary.xz"))
	f.Add(fixture(f, "no-check.zst"))
	f.Fuzz(func(t *testing.T, source []byte) {
		_, err := decode(source, Options{Checksum: sum, AnyContent: true})
		if err == nil && !bytes.Equal(source, original) {
			t.Fatal("success for a source that does not have the checksum")
		}
		a, errA := decode(source, Options{})
		b, errB := decode(source, Options{Size: int64(len(source)), Checksum: checksum(t, source)})
		if (errA == nil) != (errB == nil) || errA == nil && !bytes.Equal(a, b) {
			t.Fatalf("two readings differ: %v, %v", errA, errB)
		}
	})
}

// FuzzSniff: whatever is accepted as a disk has the boot signature.
func FuzzSniff(f *testing.F) {
	f.Add([]byte("<html>"))
	f.Add(append(make([]byte, 510), 0x55, 0xaa))
	f.Fuzz(func(t *testing.T, head []byte) {
		format, err := Sniff(head)
		if err == nil && format == Raw && (len(head) < 512 || !bytes.Equal(head[510:512], bootSignature)) {
			t.Fatal("not a disk")
		}
	})
}
