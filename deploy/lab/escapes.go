package lab

// escapes takes terminal control sequences (ECMA-48) out of a stream. Firmware
// paints its screen with cursor movements instead of line ends: those become
// one line end.
type escapes struct {
	state escapeState
	cr    bool // the last character was a carriage return
	last  byte // the last character that was let through
}

type escapeState int

const (
	escapeNone    escapeState = iota
	escapeStart               // after ESC
	escapeControl             // in ESC [ ...
	escapeString              // in ESC ] or ESC P ..., up to BEL or ESC \
)

func (e *escapes) strip(in []byte) string {
	out := make([]byte, 0, len(in))
	for _, b := range in {
		switch e.state {
		case escapeStart:
			switch b {
			case '[':
				e.state = escapeControl
			case ']', 'P', '_', '^':
				e.state = escapeString
			default:
				e.state = escapeNone
			}
		case escapeControl:
			if b >= 0x40 && b <= 0x7e {
				e.state = escapeNone
				if (b == 'H' || b == 'f') && e.last != '\n' && e.last != 0 {
					out = e.let(out, '\n')
				}
			}
		case escapeString:
			if b == 0x07 {
				e.state = escapeNone
			} else if b == 0x1b {
				e.state = escapeStart
			}
		default:
			out = e.plain(out, b)
		}
	}
	return string(out)
}

func (e *escapes) plain(out []byte, b byte) []byte {
	if b == 0x1b {
		e.state = escapeStart
		return out
	}
	// A lone carriage return rewrites the line, which reads as a new one.
	if e.cr && b != '\n' && b != '\r' && e.last != '\n' {
		out = e.let(out, '\n')
	}
	e.cr = b == '\r'
	if b == '\n' || b == '\t' || b >= 0x20 && b != 0x7f {
		out = e.let(out, b)
	}
	return out
}

func (e *escapes) let(out []byte, b byte) []byte {
	e.last = b
	return append(out, b)
}
