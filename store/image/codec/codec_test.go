package codec

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// diskSHA256 is that of the 200 KiB disk which every fixture in testdata holds,
// made with the real gzip, bzip2, xz and zstd programs.
const diskSHA256 = "eb62a6f67a6924122673c92b34d6038f0e0e457d33b758356aa0bc1fb8e3c293"

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func disk(t testing.TB) []byte {
	t.Helper()
	b, err := decode(fixture(t, "disk.gz"), Options{})
	if err != nil || sum256(b) != diskSHA256 {
		t.Fatalf("disk.gz: %v, sha256 %s", err, sum256(b))
	}
	return b
}

func sum256(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func decode(source []byte, o Options) ([]byte, error) {
	return decodeFrom(bytes.NewReader(source), o)
}

func decodeFrom(r io.Reader, o Options) ([]byte, error) {
	d, err := NewReader(r, o)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return io.ReadAll(d)
}

func checksum(t testing.TB, source []byte) Checksum {
	t.Helper()
	c, err := ParseChecksum("sha256:" + sum256(source))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var fixtures = []struct {
	name   string
	format Format
}{
	{"disk.gz", Gzip},
	{"members.gz", Gzip},
	{"disk.bz2", Bzip2},
	{"members.bz2", Bzip2},
	{"disk.xz", Xz},
	{"blocks.xz", Xz},
	{"none.xz", Xz},
	{"crc32.xz", Xz},
	{"sha256.xz", Xz},
	{"members.xz", Xz},
	{"disk.zst", Zstd},
	{"members.zst", Zstd},
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			source := fixture(t, f.name)
			for _, o := range []Options{
				{},
				{Size: int64(len(source)), Checksum: checksum(t, source)},
				{Format: f.format},
			} {
				d, err := NewReader(iotest.HalfReader(bytes.NewReader(source)), o)
				if err != nil {
					t.Fatalf("%+v: %v", o, err)
				}
				h := sha256.New()
				_, err = io.Copy(h, iotest.OneByteReader(d))
				if got := hex.EncodeToString(h.Sum(nil)); err != nil || got != diskSHA256 {
					t.Errorf("%+v: %v, sha256 %s", o, err, got)
				}
				if d.Format() != f.format || d.SourceBytes() != int64(len(source)) {
					t.Errorf("format %q, %d source bytes of %d", d.Format(), d.SourceBytes(), len(source))
				}
				if _, err := d.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("read after the end: %v", err)
				}
				if err := d.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		})
	}
}

func TestDecodeRaw(t *testing.T) {
	t.Parallel()
	source := disk(t)
	sum := sha512.Sum512(source)
	got, err := decode(source, Options{
		Size:     int64(len(source)),
		Checksum: Checksum{Algorithm: "sha512", Digest: sum[:]},
	})
	if err != nil || !bytes.Equal(got, source) {
		t.Fatalf("raw: %v, %d bytes", err, len(got))
	}
	page := []byte("<!DOCTYPE html><html>not found</html>")
	if got, err := decode(page, Options{Format: Raw}); err != nil || !bytes.Equal(got, page) {
		t.Errorf("format raw takes anything: %v", err)
	}
	if got, err := decode(fixture(t, "disk.gz"), Options{Format: Raw}); err != nil || sum256(got) == diskSHA256 {
		t.Errorf("format raw does not decode: %v", err)
	}
}

func TestTruncated(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			source := fixture(t, f.name)
			for n := 0; n < len(source); n++ {
				if n > 24 && n < len(source)-36 && n%3001 != 0 {
					continue
				}
				o := Options{Size: int64(len(source))}
				if _, err := decode(source[:n], o); err == nil {
					t.Fatalf("%d of %d bytes announced were a success", n, len(source))
				} else if n > 600 && !errors.Is(err, ErrTruncated) {
					t.Fatalf("%d of %d bytes: %v, want ErrTruncated", n, len(source), err)
				}
				got, err := decode(source[:n], Options{})
				// Without a length a cut between two members cannot be seen.
				if err == nil && !strings.HasPrefix(f.name, "members") {
					t.Fatalf("%d of %d bytes were a success with %d bytes", n, len(source), len(got))
				}
			}
		})
	}
}

func TestAlteredIsNeverASuccess(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			source := fixture(t, f.name)
			o := Options{Checksum: checksum(t, source)}
			for n := 0; n < len(source); n += 1709 {
				altered := bytes.Clone(source)
				altered[n] ^= 1 << (n % 8)
				if _, err := decode(altered, o); err == nil {
					t.Fatalf("byte %d altered, success", n)
				}
				got, err := decode(altered, Options{})
				if err == nil && sum256(got) != diskSHA256 && f.name != "none.xz" {
					t.Fatalf("byte %d altered, another disk and success", n)
				}
			}
		})
	}
}

func TestTrailingGarbage(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures {
		for _, tail := range []string{"x", "garbage after the end", "\x00", strings.Repeat("\x00", 1<<16)} {
			if f.format == Xz && strings.Trim(tail, "\x00") == "" && len(tail)%4 == 0 {
				continue // stream padding
			}
			source := append(fixture(t, f.name), tail...)
			if _, err := decode(source, Options{}); err == nil {
				t.Errorf("%s followed by %d bytes was a success", f.name, len(tail))
			}
			_, err := decode(source, Options{Size: int64(len(source) - len(tail))})
			if !errors.Is(err, ErrLength) {
				t.Errorf("%s longer than announced: %v", f.name, err)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 64<<10)
	at := func(offset int, s string) []byte {
		b := bytes.Clone(zeros)
		copy(b[510:], "\x55\xaa")
		copy(b[offset:], s)
		return b
	}
	gz := fixture(t, "disk.gz")
	wrong := Checksum{Algorithm: "sha256", Digest: make([]byte, 32)}
	for _, tt := range []struct {
		name   string
		source []byte
		o      Options
		is     error
		says   string
	}{
		{"empty", nil, Options{}, ErrFormat, "empty"},
		{"zeros", zeros, Options{}, ErrFormat, "no partition table"},
		{"short", []byte{1, 2, 3}, Options{}, ErrFormat, "only 3 bytes"},
		{"web page", []byte("\n<!DOCTYPE html><html><body>404"), Options{}, ErrFormat, "HTML page"},
		{"json", []byte(`{"error":"no"}`), Options{}, ErrFormat, "JSON"},
		{"xml", []byte(`<?xml version="1.0"?><Error>`), Options{}, ErrFormat, "XML"},
		{"text", []byte("not found\n"), Options{}, ErrFormat, "a text"},
		{"qcow2", at(0, "QFI\xfb"), Options{}, ErrFormat, "qemu-img convert"},
		{"vmdk", at(0, "KDMV"), Options{}, ErrFormat, "VMDK"},
		{"vhdx", at(0, "vhdxfile"), Options{}, ErrFormat, "VHDX"},
		{"zip", at(0, "PK\x03\x04"), Options{}, ErrFormat, "zip"},
		{"tar", at(257, "ustar"), Options{}, ErrFormat, "tar archive"},
		{"iso", at(32769, "CD001"), Options{}, ErrFormat, "ISO 9660"},
		{"squashfs", at(0, "hsqs"), Options{}, ErrFormat, "squashfs"},
		{"lz4", at(0, "\x04\x22\x4d\x18"), Options{}, ErrFormat, "lz4"},
		{"bare ext4", append(make([]byte, 1080), "\x53\xef and more"...), Options{}, ErrFormat, "ext4"},
		{"named wrongly", gz, Options{Format: Xz}, ErrFormat, "format: xz was asked for, it is gz"},
		{"not compressed", at(0, ""), Options{Format: Xz}, ErrFormat, "not compressed"},
		{"large xz dictionary", fixture(t, "large-dictionary.xz"), Options{}, ErrLimit, "512 MiB"},
		{"large zstd window", fixture(t, "large-window.zst"), Options{}, ErrLimit, "--long"},
		{"xz filter", fixture(t, "x86.xz"), Options{}, ErrFormat, "filter"},
		{"checksum", gz, Options{Checksum: wrong}, ErrChecksum, "expected sha256:0000"},
		{"checksum of raw", at(0, ""), Options{Checksum: wrong}, ErrChecksum, "expected"},
		{"raw too short", at(0, ""), Options{Size: 1 << 20}, ErrTruncated, "65536 of 1048576"},
		{"raw too long", at(0, ""), Options{Size: 1000}, ErrLength, "1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := decode(tt.source, tt.o)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %v that says %q", err, tt.is, tt.says)
			}
		})
	}
}

// A broken connection must stay recognisable, and must not end an image at a
// place where it could have ended.
func TestSourceError(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{io.ErrUnexpectedEOF, errors.New("connection reset")} {
		for _, f := range fixtures {
			source := fixture(t, f.name)
			for _, n := range []int{0, 3, len(source)} {
				_, err := decodeFrom(io.MultiReader(bytes.NewReader(source[:n]), iotest.ErrReader(broken)), Options{})
				if !errors.Is(err, broken) {
					t.Errorf("%s cut at %d: %v, want %v", f.name, n, err, broken)
				}
			}
		}
	}
}

func TestCloseInTheMiddle(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	go func() {
		_, _ = pw.Write(fixture(t, "disk.zst")[:20000])
		// Never more: the source stalls.
	}()
	done := make(chan error, 1)
	d, err := NewReader(struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(bytes.Repeat(disk(t), 20)), pr), pr}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- d.Close() }()
	if err := <-done; err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := d.Read(make([]byte, 10)); err == nil {
		t.Error("read after close")
	}
	if err := d.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// A source that was compared with MD5 is known by its SHA-256 afterwards, packed or not.
func TestWeakChecksum(t *testing.T) {
	t.Parallel()
	for _, source := range [][]byte{disk(t), fixture(t, "disk.gz")} {
		sum := md5.Sum(source)
		for _, tc := range []struct {
			digest []byte
			ok     bool
		}{{sum[:], true}, {make([]byte, md5.Size), false}} {
			r, err := NewReader(bytes.NewReader(source), Options{Size: int64(len(source)), Checksum: Checksum{Algorithm: "md5", Digest: tc.digest}})
			if err == nil {
				_, err = io.Copy(io.Discard, r)
			}
			if tc.ok && (err != nil || r.Strong().String() != "sha256:"+sum256(source)) {
				t.Errorf("%d bytes: %v, %v", len(source), err, r.Strong())
			}
			if !tc.ok && !errors.Is(err, ErrChecksum) {
				t.Errorf("%d bytes: another one is %v", len(source), err)
			}
		}
	}
}

func TestParseChecksum(t *testing.T) {
	t.Parallel()
	h256, h512 := strings.Repeat("ab", 32), strings.Repeat("cd", 64)
	for _, tt := range []struct{ in, wrong string }{
		{"", ""},
		{"sha256:" + h256, ""},
		{"sha512:" + h512, ""},
		{h256, "write it as sha256:" + h256},
		{h512, "write it as sha512:"},
		{"hello", "write it as sha256:<hex>"},
		{"md5:" + h256[:32], ""},
		{h256[:32], "write it as md5:"},
		{"md5:abcd", "has 4 hexadecimal digits, md5 has 32"},
		{"sha1:abcd", "not supported"},
		{"sha256:xyz", "not hexadecimal"},
		{"sha256:abcd", "has 4 hexadecimal digits, sha256 has 64"},
		{"sha512:" + h256, "sha512 has 128"},
	} {
		c, err := ParseChecksum(tt.in)
		switch {
		case tt.wrong == "" && (err != nil || c.String() != tt.in):
			t.Errorf("%q: %v, %v", tt.in, c, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%q: %v, want %q", tt.in, err, tt.wrong)
		}
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "auto", "raw", "gz", "xz", "zst", "bz2"} {
		if _, err := ParseFormat(s); err != nil {
			t.Error(err)
		}
	}
	if _, err := ParseFormat("qcow2"); err == nil {
		t.Error("qcow2 is no format")
	}
}

func TestNested(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		inner []byte
		says  string
	}{
		{fixture(t, "disk.xz"), "compressed twice"},
		{[]byte("<html>"), "HTML page"},
		{append(make([]byte, 257), "ustar and so on"...), "tar archive"},
	} {
		_, err := decode(gzipped(t, tt.inner), Options{})
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("got %v, want %q", err, tt.says)
		}
		if _, err := decode(gzipped(t, tt.inner), Options{AnyContent: true}); err != nil {
			t.Errorf("any content: %v", err)
		}
	}
}
