package tftp

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

var nameTests = []struct {
	in, want string
	err      error
}{
	{"undionly.kpxe", "undionly.kpxe", nil},
	{"/undionly.kpxe", "undionly.kpxe", nil},
	{"//grub//x86_64-efi/command.lst", "grub/x86_64-efi/command.lst", nil},
	{"./grub/./grub.cfg", "grub/grub.cfg", nil},
	{`\boot\bootmgr.exe`, "boot/bootmgr.exe", nil},
	{"grub/machine/52:54:00:12:34:56", "grub/machine/52:54:00:12:34:56", nil},
	{"ein name mit ß", "ein name mit ß", nil},
	{"...", "...", nil},
	{"a..b", "a..b", nil},
	{"", "", ErrNameEmpty},
	{"/", "", ErrNameEmpty},
	{`\.\/`, "", ErrNameEmpty},
	{"../etc/passwd", "", ErrNameOutside},
	{`..\etc\passwd`, "", ErrNameOutside},
	{"a/../b", "", ErrNameOutside},
	{"/boot/..", "", ErrNameOutside},
	{"a\x00b", "", ErrNameChars},
	{"a\nb", "", ErrNameChars},
	{"a\x7f", "", ErrNameChars},
	{"a\xff", "", ErrNameChars},
	{strings.Repeat("a", MaxName), strings.Repeat("a", MaxName), nil},
	{strings.Repeat("a", MaxName+1), "", ErrNameLong},
}

func TestCleanName(t *testing.T) {
	t.Parallel()
	for _, tt := range nameTests {
		got, err := CleanName(tt.in)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("CleanName(%q) = %q, %v; want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
		var ne *NameError
		if err != nil && !errors.As(err, &ne) {
			t.Errorf("CleanName(%q): %T is not a *NameError", tt.in, err)
		}
	}
}

// A clean name is a path inside, and cleaning it again changes nothing.
func FuzzCleanName(f *testing.F) {
	if len(nameTests) == 0 {
		f.Fatal("no corpus")
	}
	for _, tt := range nameTests {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := CleanName(in)
		if err != nil {
			if got != "" {
				t.Fatalf("%q: a name %q with an error", in, got)
			}
			return
		}
		if !fs.ValidPath(got) || got == "." || strings.Contains(got, `\`) || len(got) > MaxName {
			t.Fatalf("%q: %q is not a path inside", in, got)
		}
		if again, err := CleanName(got); err != nil || again != got {
			t.Fatalf("%q: %q becomes %q, %v", in, got, again, err)
		}
	})
}
