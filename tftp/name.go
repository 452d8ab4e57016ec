package tftp

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What is wrong with a name.
var (
	ErrNameEmpty   = errors.New("the name is empty")
	ErrNameLong    = errors.New("the name is too long")
	ErrNameOutside = errors.New("the name has a .. element")
	ErrNameChars   = errors.New("the name has control characters or is not UTF-8")
)

// MaxName is the longest name that is looked at, in bytes.
const MaxName = 255

// NameError is a refused name. Its Err is one of the ErrName values.
type NameError struct {
	Name string // as sent, cut to 64 bytes
	Err  error
}

func (e *NameError) Error() string { return fmt.Sprintf("%.64q: %v", e.Name, e.Err) }
func (e *NameError) Unwrap() error { return e.Err }

// CleanName turns a requested name into a slash-separated path relative to the
// root of what is served, valid for fs.FS: backslashes, which Windows loaders
// send, become slashes, and leading slashes, which GRUB and most ROMs send, are
// cut. The error is a *NameError.
func CleanName(name string) (string, error) {
	bad := func(err error) (string, error) {
		return "", &NameError{Name: name[:min(len(name), 64)], Err: err}
	}
	if len(name) > MaxName {
		return bad(ErrNameLong)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return bad(ErrNameChars)
	}
	s := strings.ReplaceAll(name, `\`, "/")
	for element := range strings.SplitSeq(s, "/") {
		// Even where it would stay inside: no boot loader needs it.
		if element == ".." {
			return bad(ErrNameOutside)
		}
	}
	if s = path.Clean(strings.TrimLeft(s, "/")); s == "." {
		return bad(ErrNameEmpty)
	}
	return s, nil
}
