package hardware

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		`"90s"`: 90 * time.Second, `"1h30m"`: 90 * time.Minute, `"250ms"`: 250 * time.Millisecond,
		`"90"`: 90 * time.Second, `90`: 90 * time.Second, `0`: 0, `"0"`: 0, `null`: time.Hour,
		`2147483647`: 2147483647 * time.Second,
	} {
		d := Duration(time.Hour)
		if err := json.Unmarshal([]byte(in), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v, want %v", in, time.Duration(d), err, want)
		}
		text, err := d.MarshalText()
		var again Duration
		if err != nil || again.UnmarshalText(text) != nil || again != d {
			t.Errorf("%s: written as %s, read as %v", in, text, time.Duration(again))
		}
	}
	for _, in := range []string{`"-5s"`, `-5`, `"-5"`, `""`, `"soon"`, `1.5`, `2147483648`, `true`, `{}`, `[1]`, `"1d"`} {
		d := Duration(time.Hour)
		err := json.Unmarshal([]byte(in), &d)
		says(t, in, err, "(write it as 90s, 10m or 1h30m)")
		if d != Duration(time.Hour) {
			t.Errorf("%s: changed to %v", in, time.Duration(d))
		}
	}
}
