package hardware

import (
	"fmt"
	"strconv"
	"time"
)

// Duration is a time.Duration that people write as 90s, 10m or 1h30m, or as a
// plain number of seconds.
type Duration time.Duration

// MarshalText writes Go's form, for example 1h0m0s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go's form or a number of seconds.
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	if n, err := strconv.ParseInt(s, 10, 32); err == nil && n >= 0 {
		*d = Duration(time.Duration(n) * time.Second)
		return nil
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%.40q is not a duration (write it as 90s, 10m or 1h30m)", s)
	}
	*d = Duration(v)
	return nil
}

// UnmarshalJSON reads a string as UnmarshalText does, and a bare number as
// seconds; null leaves it as it is.
func (d *Duration) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if s, err := strconv.Unquote(string(b)); err == nil {
		b = []byte(s)
	}
	return d.UnmarshalText(b)
}
