package logs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/rackstrap/rackstrap/workflow"
)

// margin is how far a character can reach over the edge of a window.
const margin = utf8.UTFMax - 1

// Window reads about limit bytes of an attempt's log from byte offset on, as text: what
// is no UTF-8, and every character that would steer a terminal or turn the direction of
// writing around, reads as a question mark for each of its bytes. So an offset is one in
// the file, too, and windows that meet make the whole. A window begins and ends between
// characters: from is where it begins, offset or up to three bytes after it. size is that
// of the whole log; a character whose end was not written yet does not count. It returns
// workflow.ErrNotFound where nothing was written.
func (l *Logs) Window(a workflow.Assignment, offset int64, limit int) (text []byte, from, size int64, err error) {
	p, err := l.path(a)
	if err != nil {
		return nil, 0, 0, workflow.ErrNotFound
	}
	l.mu.Lock() // a note and the file of one moment
	whole, err := l.open(p, a)
	l.mu.Unlock()
	if err != nil {
		return nil, 0, 0, err
	}
	defer whole.close()
	size, err = whole.size()
	if err != nil {
		return nil, 0, 0, err
	}
	from = max(0, min(offset, size))
	end := min(from+int64(max(limit, 1)), size)
	low, high := max(from-margin, 0), min(end+2*margin, size) // a window of one byte may be a character after its own
	buf, err := whole.read(low, high)
	if err != nil {
		return nil, 0, 0, err
	}
	harmless(buf)
	for from < size && !utf8.RuneStart(buf[from-low]) {
		from++
	}
	for end > from && end < high && !utf8.RuneStart(buf[end-low]) {
		end--
	}
	if end <= from && from < size { // one character at least: whoever asks for the next must get on
		_, n := utf8.DecodeRune(buf[from-low:])
		end = from + int64(n)
	}
	return buf[from-low : max(from, end)-low], from, size, nil
}

// harmless makes text harmless in place and keeps the place of every byte.
func harmless(text []byte) {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if (r == utf8.RuneError && n == 1) || harms(r) {
			for i := range n {
				text[i] = '?'
			}
		}
		text = text[n:]
	}
}

func harms(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// source is a log: its file, if there is one, and the note of a loss that could not be
// written there.
type source struct {
	file  *os.File
	bytes int64 // of the file
	note  string
}

// open is called with the lock held.
func (l *Logs) open(path string, a workflow.Assignment) (source, error) {
	s := source{note: l.lost[a]}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if s.note == "" {
			return s, workflow.ErrNotFound
		}
		return s, nil
	}
	if err != nil {
		return s, err
	}
	st, err := f.Stat()
	if err != nil {
		return s, errors.Join(err, f.Close())
	}
	s.file, s.bytes = f, st.Size()
	return s, nil
}

func (s source) close() {
	if s.file != nil {
		_ = s.file.Close() // it was read only
	}
}

// size is how much of the log can be read: all but a character that is not whole.
func (s source) size() (int64, error) {
	size := s.bytes + int64(len(s.note))
	tail, err := s.read(max(size-margin, 0), size)
	if err != nil {
		return 0, err
	}
	for i := len(tail) - 1; i >= 0; i-- {
		if utf8.RuneStart(tail[i]) {
			if !utf8.FullRune(tail[i:]) {
				size -= int64(len(tail) - i)
			}
			break
		}
	}
	return size, nil
}

// read reads the bytes from low to high.
func (s source) read(low, high int64) ([]byte, error) {
	out := make([]byte, high-low)
	n := 0
	if low < s.bytes {
		n = int(min(high, s.bytes) - low)
		if _, err := s.file.ReadAt(out[:n], low); err != nil && err != io.EOF {
			return nil, err
		}
		low += int64(n)
	}
	if low < high {
		copy(out[n:], s.note[low-s.bytes:])
	}
	return out, nil
}
