package bolt

import (
	"errors"
	"fmt"
	"time"

	bbolt "go.etcd.io/bbolt"
)

// Check reads a database file that nobody writes from end to end and returns its
// layout. It errs for a file that is damaged, of another program, or of a layout
// newer than this program knows.
func Check(path string) (layout int, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second, PreLoadFreelist: false})
	if err != nil {
		return 0, openError(path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if layout, err = schemaOf(db); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if newest := len(migrations()); layout > newest {
		return layout, fmt.Errorf("%s: its layout is %d, this rackstrap knows up to %d (use the newer rackstrap that wrote it)", path, layout, newest)
	}
	return layout, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return fmt.Errorf("%s: damaged: %w", path, err)
		}
		return nil
	})
}
