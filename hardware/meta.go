package hardware

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Meta is what every record carries. Name is chosen by people and unique per
// kind; UID is made by the store and never changes; Revision is the store's
// revision of the record at the time it was read, and goes into If-Match.
type Meta struct {
	Name     string `json:"name"`
	UID      string `json:"uid,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Labels are for selectors: key=value, at most 64 of 128 bytes each.
	Labels map[string]string `json:"labels,omitempty"`
	// Created is when the store made the record.
	Created time.Time `json:"created,omitzero"`
}

// MaxName is the longest record name, in bytes: a DNS label (RFC 1035 section 2.3.4).
const MaxName = 63

// MaxLabels is how many labels a record can have.
const MaxLabels = 64

// MaxLabelText is the longest key and the longest value of a label, in bytes.
const MaxLabelText = 128

// ValidName says why s cannot name a record, or nil. Names are DNS labels, so
// that they can be host names, file names and URL segments without quoting.
func ValidName(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("is empty (give it a name of letters, digits and dashes)")
	case len(s) > MaxName:
		return fmt.Errorf("%.20q… has %d bytes, the limit is %d", s, len(s), MaxName)
	case s[0] == '-' || s[len(s)-1] == '-':
		return fmt.Errorf("%q begins or ends with a dash", s)
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fmt.Errorf("%q has %q (use lower-case letters, digits and dashes)", s, c)
		}
	}
	return nil
}

// ValidHostname says why s cannot be a host name (RFC 1123 section 2.1: labels
// of letters, digits and dashes, joined by dots, 253 bytes in all), or nil.
func ValidHostname(s string) error {
	if len(s) > 253 {
		return fmt.Errorf("host name has %d bytes, the limit is 253", len(s))
	}
	// Not strings.ToLower: it makes an ASCII k of the Kelvin sign.
	lower := func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}
	for label := range strings.SplitSeq(s, ".") {
		if err := ValidName(strings.Map(lower, label)); err != nil {
			return fmt.Errorf("host name label %w", err)
		}
	}
	return nil
}

// FieldError is one thing that is wrong in a record: the path of the field, as
// written in YAML, and a sentence with the value and the remedy.
type FieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func (e FieldError) Error() string { return e.Field + ": " + e.Detail }

// Invalid is everything that is wrong in one record.
type Invalid struct {
	Kind   string
	Name   string
	Errors []FieldError
}

func (e *Invalid) Error() string {
	parts := make([]string, len(e.Errors))
	for i, f := range e.Errors {
		parts[i] = f.Error()
	}
	return fmt.Sprintf("%s %q: %s", e.Kind, e.Name, strings.Join(parts, "; "))
}

// Checker collects the FieldErrors of one record.
type Checker struct {
	kind, name string
	errs       []FieldError
}

// NewChecker starts a check of one record.
func NewChecker(kind, name string) *Checker { return &Checker{kind: kind, name: name} }

// Addf notes that field is wrong.
func (c *Checker) Addf(field, format string, args ...any) {
	c.errs = append(c.errs, FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// Add notes err against field, if there is one.
func (c *Checker) Add(field string, err error) {
	if err != nil {
		c.Addf(field, "%v", err)
	}
}

// Meta checks name and labels.
func (c *Checker) Meta(m Meta) {
	c.Add("metadata.name", ValidName(m.Name))
	if len(m.Labels) > MaxLabels {
		c.Addf("metadata.labels", "has %d entries, the limit is %d", len(m.Labels), MaxLabels)
	}
	for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
		c.Add("metadata.labels", validLabel(k, m.Labels[k]))
	}
}

// Err is nil or an *Invalid.
func (c *Checker) Err() error {
	if len(c.errs) == 0 {
		return nil
	}
	return &Invalid{Kind: c.kind, Name: c.name, Errors: c.errs}
}

func validLabel(k, v string) error {
	if k == "" || len(k) > MaxLabelText {
		return fmt.Errorf("key %.20q must have 1 to %d bytes", k, MaxLabelText)
	}
	if len(v) > MaxLabelText {
		return fmt.Errorf("value of %q has %d bytes, the limit is %d", k, len(v), MaxLabelText)
	}
	for _, c := range k + v {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_./", c) {
			return fmt.Errorf("%q=%q has %q (use letters, digits and - _ . /)", k, v, c)
		}
	}
	return nil
}
