package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testSeal(b byte) *Seal { return NewSeal([32]byte{b}) }

func TestSealOpens(t *testing.T) {
	t.Parallel()
	s := testSeal(1)
	for _, plain := range []string{"", "x", strings.Repeat("secret ", 10_000)} {
		a, b := s.Seal("k", []byte(plain)), s.Seal("k", []byte(plain))
		if bytes.Equal(a, b) {
			t.Error("the same value sealed twice is the same: the nonce is not random")
		}
		if len(a) != len(plain)+sealOverhead || (len(plain) > 9 && bytes.Contains(a, []byte(plain[:10]))) {
			t.Errorf("sealed %d bytes into %d", len(plain), len(a))
		}
		if got, err := s.Open("k", a); err != nil || string(got) != plain {
			t.Errorf("opened %d bytes, %v", len(got), err)
		}
		if _, err := s.Open("other", a); !errors.Is(err, ErrDamaged) {
			t.Errorf("under another key of the store: %v", err)
		}
		if _, err := testSeal(2).Open("k", a); !errors.Is(err, ErrWrongKey) {
			t.Errorf("with another key file: %v", err)
		}
		for i := range a {
			bad := bytes.Clone(a)
			bad[i] ^= 0x10
			if _, err := s.Open("k", bad); err == nil {
				t.Fatalf("byte %d changed: opened", i)
			}
			if i > 200 {
				break
			}
		}
	}
}

// FuzzSealOpen: only what was sealed opens, under its own key of the store.
func FuzzSealOpen(f *testing.F) {
	s := testSeal(1)
	f.Add("hardware/x/spec", []byte("plain"), []byte{})
	f.Add("k", []byte{}, s.Seal("k", []byte("foreign")))
	f.Add("", []byte("p"), []byte{sealVersion})
	f.Fuzz(func(t *testing.T, key string, plain, wild []byte) {
		sealed := s.Seal(key, plain)
		if got, err := s.Open(key, sealed); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("what was sealed does not open: %v", err)
		}
		if _, err := s.Open(key+"/", sealed); err == nil {
			t.Fatal("opens under another key")
		}
		if got, err := s.Open(key, wild); err == nil && key != "k" {
			t.Fatalf("wild bytes open: %q", got)
		}
	})
}

// FuzzKeyParts: the parts of a key can be told apart again, whatever they hold, and
// make a valid key.
func FuzzKeyParts(f *testing.F) {
	f.Add("01J0000000000000000000000A", "-", "id")
	f.Add("a/b", "%2f", "\x00\xff ü")
	f.Fuzz(func(t *testing.T, uid, boot, id string) {
		if len(uid)+len(boot)+len(id) > 100 {
			t.Skip()
		}
		for _, s := range []string{uid, boot, id} {
			p := part(s)
			if strings.Contains(p, "/") || unpart(p) != s {
				t.Fatalf("%q became %q", s, p)
			}
		}
		k := keyInBoot(uid, boot, id)
		if err := CheckKey(k); err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(k, "/"); len(got) != 4 || unpart(got[1]) != uid || unpart(got[3]) != id {
			t.Fatalf("%q %q %q became %q", uid, boot, id, k)
		}
		if got, what, ok := splitHardware(keySpec(uid)); !ok || what != partSpec || unpart(got) != uid {
			t.Fatalf("%q became %q", uid, keySpec(uid))
		}
	})
}

// unpart undoes part.
func unpart(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		const digits = "0123456789abcdef"
		b.WriteByte(byte(strings.IndexByte(digits, s[i+1])<<4 | strings.IndexByte(digits, s[i+2])))
		i += 2
	}
	return b.String()
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seal.key")
	if _, err := LoadSeal(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no file: %v", err)
	}
	if _, err := sealFor(path, false); err == nil || !strings.Contains(err.Error(), "put it back") {
		t.Errorf("lost key: %v", err)
	}
	made, err := sealFor(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	loaded, err := LoadSeal(path)
	if err != nil || loaded.ID() != made.ID() {
		t.Fatalf("loaded %v, %v", loaded, err)
	}
	if _, err := CreateSeal(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made over another: %v", err)
	}
	good, _ := os.ReadFile(path)
	for name, tc := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"others read":  {string(good), 0o640, "chmod 600"},
		"cut short":    {string(good[:40]), 0o600, "cut short"},
		"empty":        {"", 0o600, "cut short"},
		"something":    {"-----BEGIN PRIVATE KEY-----", 0o600, "is not a rackstrap key file"},
		"too long":     {strings.TrimSpace(string(good)) + "00", 0o600, "is not a rackstrap key file"},
		"not hex":      {keyFilePrefix + strings.Repeat("z", 64), 0o600, "is not a rackstrap key file"},
		"no line feed": {strings.TrimSpace(string(good)), 0o600, ""},
	} {
		if err := errors.Join(os.WriteFile(path, []byte(tc.content), 0o600), os.Chmod(path, tc.mode)); err != nil {
			t.Fatal(err)
		}
		_, err := sealFor(path, true)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %v, wanted %q", name, err, tc.want)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("files are left behind: %v", entries)
	}
}
