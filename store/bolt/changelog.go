package bolt

import (
	"encoding/binary"
	"errors"

	bbolt "go.etcd.io/bbolt"

	"github.com/rackstrap/rackstrap/store"
)

// logStats is the size of the change log.
type logStats struct {
	entries int
	bytes   int64
}

func (s *logStats) add(n int) { s.entries++; s.bytes += int64(n) }

func statLog(tx *bbolt.Tx) logStats {
	var s logStats
	c := tx.Bucket(bucketLog).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		s.add(len(v))
	}
	return s
}

// trimBurst bounds the log entries that one commit removes, so that a lowered
// bound does not hold up the writer.
const trimBurst = 2000

// trimLog removes the oldest entries beyond the bounds; the newest one stays.
func (w *writeTx) trimLog(entries int, bytes int64) error {
	c := w.logb.Cursor()
	for n := 0; n < trimBurst && w.log.entries > 1 && (w.log.entries > entries || w.log.bytes > bytes); n++ {
		_, v := c.First()
		w.log.entries--
		w.log.bytes -= int64(len(v))
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// One log entry is a sequence of changes: 'p' key value, or 'd' key, each text with
// its length before it as a uvarint.
const (
	opPut    = 'p'
	opDelete = 'd'
)

var errLogEntry = errors.New("change log entry is damaged")

func appendPut(b []byte, key string, value []byte) []byte {
	b = appendText(append(b, opPut), key)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

func appendDelete(b []byte, key string) []byte { return appendText(append(b, opDelete), key) }

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// readChanges decodes one log entry; nothing in the result points into b.
func readChanges(b []byte) ([]store.KeyChange, error) {
	var out []store.KeyChange
	for len(b) > 0 {
		op := b[0]
		key, rest, ok := cutText(b[1:])
		if !ok || (op != opPut && op != opDelete) {
			return nil, errLogEntry
		}
		c := store.KeyChange{Key: string(key), Deleted: op == opDelete}
		if op == opPut {
			var value []byte
			if value, rest, ok = cutText(rest); !ok {
				return nil, errLogEntry
			}
			c.Value = append(make([]byte, 0, len(value)), value...)
		}
		out = append(out, c)
		b = rest
	}
	return out, nil
}

func cutText(b []byte) (text, rest []byte, ok bool) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return nil, nil, false
	}
	return b[used : used+int(n)], b[used+int(n):], true
}
