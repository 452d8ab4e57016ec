package bolt

import (
	"fmt"
	"strconv"

	bbolt "go.etcd.io/bbolt"
)

var keySchema = []byte("schema")

// migration brings a file from the layout before it to the next.
type migration func(tx *bbolt.Tx) error

// migrations is the history of the layout: the entry at index n makes a file of
// layout n one of layout n+1. A new file goes through all of them. Entries are
// never changed once released; testdata has a file of each layout.
func migrations() []migration {
	return []migration{
		createBuckets,
	}
}

func createBuckets(tx *bbolt.Tx) error {
	for _, b := range [][]byte{bucketKV, bucketLog, bucketSessions, bucketLeases} {
		if _, err := tx.CreateBucketIfNotExists(b); err != nil {
			return err
		}
	}
	return nil
}

// migrate brings the file to the layout after the last step, each step in a
// transaction of its own.
func migrate(db *bbolt.DB, path string, steps []migration) error {
	have, err := schemaOf(db)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if have > len(steps) {
		return fmt.Errorf("open %s: its layout is %d, this rackstrap knows up to %d (start the newer rackstrap that wrote it, or restore a backup made before the upgrade)",
			path, have, len(steps))
	}
	for n := have; n < len(steps); n++ {
		err := db.Update(func(tx *bbolt.Tx) error {
			if err := steps[n](tx); err != nil {
				return err
			}
			meta, err := tx.CreateBucketIfNotExists(bucketMeta)
			if err != nil {
				return err
			}
			return meta.Put(keySchema, []byte(strconv.Itoa(n+1)))
		})
		if err != nil {
			return fmt.Errorf("open %s: migration from layout %d to %d: %w", path, n, n+1, diskError(path, err))
		}
	}
	return nil
}

// schemaOf reads the layout; 0 is an empty file.
func schemaOf(db *bbolt.DB) (int, error) {
	have := 0
	err := db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			if k, _ := tx.Cursor().First(); k != nil {
				return fmt.Errorf("is a bbolt file of another program (name another `data` directory in the configuration)")
			}
			return nil
		}
		n, err := strconv.Atoi(string(meta.Get(keySchema)))
		if err != nil || n < 1 {
			return fmt.Errorf("has no layout number; it is damaged or of another program")
		}
		have = n
		return nil
	})
	return have, err
}
