package hardware

import "strings"

// maxPattern bounds a pattern in bytes; facts are no longer than maxFactText.
const maxPattern = 256

// like reports whether text is what the pattern says, whatever the case: * is any
// text, ? is one character, everything else is itself. It never needs more steps than
// the length of the one times that of the other: after a mismatch only the last * takes
// one character more, since what an earlier one could take the last one can too.
func like(pattern, text string) bool {
	p, t := []rune(strings.ToLower(pattern)), []rune(strings.ToLower(text))
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
