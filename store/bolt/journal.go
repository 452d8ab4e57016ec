package bolt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
)

// A journal file is the magic, then records: length of the payload and CRC-32C of
// it (4 bytes each, little endian), then the payload, one lease in JSON. A record
// that is cut short or does not match its sum ends the file: it was being written
// when the power went, and nobody was told that it is durable.
const (
	journalMagic = "RSLEASE1"
	frameHeader  = 8
	maxLease     = 16 << 10
)

// castagnoli is computed once; the table is read-only.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// leaseKey is what a lease is of.
type leaseKey struct {
	subnet string
	mac    hardware.MAC
}

// leaseRecord is one entry: the lease, or with Gone only its key.
type leaseRecord struct {
	Lease hardware.Lease `json:"lease"`
	Gone  bool           `json:"gone,omitempty"`
}

func (r *leaseRecord) key() leaseKey { return leaseKey{r.Lease.Subnet, r.Lease.MAC} }

// appendRecord frames one record.
func appendRecord(b []byte, r *leaseRecord) ([]byte, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return b, fmt.Errorf("lease of %s: %w", r.Lease.MAC, err)
	}
	if len(payload) > maxLease {
		return b, &store.LimitError{What: "bytes of the lease of " + r.Lease.MAC.String(), Have: len(payload), Limit: maxLease}
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, checksum(payload))
	return append(b, payload...), nil
}

var errNoJournal = errors.New("is not a lease journal")

// readJournal calls fn for each whole record and returns how many bytes they and
// the magic take; what follows is a torn tail.
func readJournal(b []byte, fn func(leaseRecord)) (int, error) {
	if len(b) < len(journalMagic) && bytes.HasPrefix([]byte(journalMagic), b) {
		return 0, nil // the power went when it was made
	}
	if !bytes.HasPrefix(b, []byte(journalMagic)) {
		return 0, errNoJournal
	}
	n := len(journalMagic)
	for {
		rest := b[n:]
		if len(rest) < frameHeader {
			return n, nil
		}
		size := binary.LittleEndian.Uint32(rest)
		if size == 0 || size > maxLease || int(size) > len(rest)-frameHeader {
			return n, nil
		}
		payload := rest[frameHeader : frameHeader+int(size)]
		if binary.LittleEndian.Uint32(rest[4:]) != checksum(payload) {
			return n, nil
		}
		var r leaseRecord
		if json.Unmarshal(payload, &r) != nil {
			return n, nil
		}
		fn(r)
		n += frameHeader + int(size)
	}
}
