package store

import (
	"maps"
	"slices"
	"strings"
)

// shelf is what the View knows of a kind whose records are one value each.
type shelf[T any] struct {
	kind  kind[T]
	byKey map[string]*T
	// sorted are all, by name. It is in readers' hands: a change makes a new one.
	sorted []*T
	stale  bool // sorted is not of byKey
}

func newShelf[T any](k kind[T]) shelf[T] { return shelf[T]{kind: k, byKey: map[string]*T{}} }

// has reports whether the key is one of the kind's.
func (s *shelf[T]) has(key string) bool { return strings.HasPrefix(key, s.kind.prefix) }

func (s *shelf[T]) put(db *DB, key string, value []byte, rev uint64) error {
	if old := s.byKey[key]; old != nil && s.kind.meta(old).Revision >= rev {
		return nil
	}
	v, err := s.kind.read(db, Entry{Key: key, Value: value, Revision: rev})
	if err != nil {
		return err
	}
	s.byKey[key], s.stale = v, true
	return nil
}

func (s *shelf[T]) delete(key string, rev uint64) {
	if v := s.byKey[key]; v != nil && s.kind.meta(v).Revision <= rev {
		delete(s.byKey, key)
		s.stale = true
	}
}

func (s *shelf[T]) sort() {
	if !s.stale {
		return
	}
	s.sorted = slices.SortedFunc(maps.Values(s.byKey), func(a, b *T) int {
		return strings.Compare(s.kind.meta(a).Name, s.kind.meta(b).Name)
	})
	s.stale = false
}
