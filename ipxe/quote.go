package ipxe

import (
	"fmt"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Everything from records and from the network passes through one of these
// functions on its way into a boot script.
//
// iPXE knows no quotes: it expands ${…} anywhere in a line, then splits it at
// white space, and the words #, || and && end a command (core/exec.c of iPXE).
// So text loses the characters all that is made of, and an argument that has one
// is refused. GRUB takes everything between single quotes as it is.

// maxText bounds what one value adds to a script line.
const maxText = 200

// plain makes s printable ASCII of at most maxText bytes without the characters
// that either language reads as its own, for a comment or a sentence.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() == maxText {
			break
		}
		if r < ' ' || r > '~' || strings.ContainsRune("$#|&\\{}", r) {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// grubQuote joins the parts with blanks into one word of GRUB's script language.
func grubQuote(parts ...string) string {
	return "'" + strings.ReplaceAll(strings.Join(parts, " "), "'", `'\''`) + "'"
}

// argument is one word of a kernel command line that holds a value of ours. It
// errs where the value could be read as more than that. The error does not hold
// the value, which may be a token.
func argument(key, value string) (string, error) {
	if value == "" {
		return "", fmt.Errorf("%s: is empty", key)
	}
	if hardware.ValidKernelArg(value) != nil {
		return "", fmt.Errorf("%s: has white space, quotes or another character that a boot script would read as its own", key)
	}
	return key + "=" + value, nil
}
