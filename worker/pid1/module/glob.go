package module

// match reports whether s matches the pattern, as fnmatch(3) without flags does:
// * any text, ? any byte, [a-f] one of a set, [!a-f] none of it. An unclosed [
// matches itself.
func match(pattern, s string) bool {
	// star and mark are where to go on after the last *: iteration instead of
	// recursion, so that a hostile pattern costs len(pattern)*len(s) at most.
	p, i := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, mark = p, i
				p++
				continue
			}
			if n, ok := matchByte(pattern[p:], s[i]); ok {
				p += n
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, i = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchByte matches one byte against the first element of the pattern and says how
// long that element is.
func matchByte(pattern string, c byte) (int, bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if n := setLength(pattern); n > 0 {
			return n, inSet(pattern[1:n-1], c)
		}
	}
	return 1, pattern[0] == c
}

// setLength is the length of the [set] at the start of the pattern, 0 if it is not closed.
func setLength(pattern string) int {
	// A ] that comes first (after an optional !) is a member.
	start := 1
	if start < len(pattern) && pattern[start] == '!' {
		start++
	}
	for i := start + 1; i < len(pattern); i++ {
		if pattern[i] == ']' {
			return i + 1
		}
	}
	return 0
}

func inSet(set string, c byte) bool {
	negated := false
	if len(set) > 0 && set[0] == '!' {
		negated, set = true, set[1:]
	}
	for i := 0; i < len(set); i++ {
		lo, hi := set[i], set[i]
		if i+2 < len(set) && set[i+1] == '-' {
			hi = set[i+2]
			i += 2
		}
		if lo <= c && c <= hi {
			return !negated
		}
	}
	return negated
}

// literal is the start of a pattern that has no special bytes.
func literal(pattern string) string {
	for i := range len(pattern) {
		switch pattern[i] {
		case '*', '?', '[':
			return pattern[:i]
		}
	}
	return pattern
}
