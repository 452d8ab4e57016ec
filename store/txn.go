package store

import (
	"fmt"
	"unicode/utf8"
)

// Check says why a transaction is refused whatever the store holds: a *LimitError
// for what is too large, another error for what has no meaning (an empty key, a
// key written twice). Backends call it first.
func (t *Txn) Check() error {
	if n := len(t.If); n > MaxOps {
		return &LimitError{"compares of a transaction", n, MaxOps}
	}
	if n := len(t.Puts) + len(t.Deletes); n > MaxOps {
		return &LimitError{"operations of a transaction", n, MaxOps}
	}
	size := 0
	for _, c := range t.If {
		if err := CheckKey(c.Key); err != nil {
			return err
		}
	}
	seen := make(map[string]struct{}, len(t.Puts)+len(t.Deletes))
	once := func(key string) error {
		if err := CheckKey(key); err != nil {
			return err
		}
		if _, ok := seen[key]; ok {
			return fmt.Errorf("key %q is written twice in one transaction", key)
		}
		seen[key] = struct{}{}
		size += len(key)
		return nil
	}
	for _, p := range t.Puts {
		if err := once(p.Key); err != nil {
			return err
		}
		if len(p.Value) > MaxValue {
			return &LimitError{"bytes of the value of " + p.Key, len(p.Value), MaxValue}
		}
		size += len(p.Value)
	}
	for _, k := range t.Deletes {
		if err := once(k); err != nil {
			return err
		}
	}
	if size > MaxTxn {
		return &LimitError{"bytes of a transaction", size, MaxTxn}
	}
	return nil
}

// CheckKey says why s cannot be a key, or nil: keys are 1 to MaxKey bytes of valid
// UTF-8, because they appear in errors and logs.
func CheckKey(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("a key cannot be empty")
	case len(s) > MaxKey:
		return &LimitError{fmt.Sprintf("bytes of the key %.40q…", s), len(s), MaxKey}
	case !utf8.ValidString(s):
		return fmt.Errorf("the key %.40q is not valid UTF-8", s)
	}
	return nil
}
