package cli

import (
	"fmt"
	"strings"
	"time"
)

// size is a number of bytes in words, in powers of ten as disks are sold.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n < 1e12:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.2f TB", float64(n)/1e12)
}

// rate is bytes over a time, in MB/s; empty where it says nothing.
func rate(n int64, d time.Duration) string {
	if n <= 0 || d <= 0 {
		return ""
	}
	v := float64(n) / 1e6 / d.Seconds()
	if v < 10 {
		return fmt.Sprintf("%.1f MB/s", v)
	}
	return fmt.Sprintf("%.0f MB/s", v)
}

// span is a duration as people say it: 0.4 s, 12.3 s, 4 min 5 s, 3 h 2 min, 5 d.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60), " 0 s")
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60), " 0 min")
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// ago is how long ago t was.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// plural is 1 machine, 2 machines.
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// orDash stands for nothing in a table.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
