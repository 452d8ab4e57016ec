package metadata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// text is a string that is always written in double quotes. cloud-init reads
// YAML 1.1, where a plain 52:54:00:12:34:56 is a number to the base of 60 and a
// plain `no` is false; our YAML library follows 1.2 and quotes neither for us in
// all cases. A JSON string is a YAML double-quoted one (YAML 1.2 section 1.3).
type text string

// MarshalYAML implements yaml.BytesMarshaler.
func (t text) MarshalYAML() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // < and & mean nothing here and are hard to read escaped
	if err := enc.Encode(string(t)); err != nil {
		return nil, err
	}
	var out []byte
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		// JSON leaves DEL, C1 controls and the like as they are; YAML forbids them
		// (YAML 1.2 section 5.1).
		if r >= 0x7f && r <= 0xffff && !unicode.IsPrint(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out, nil
}

func texts[T fmt.Stringer](in []T) []text {
	var out []text
	for _, v := range in {
		out = append(out, text(v.String()))
	}
	return out
}

func marshal(v any) ([]byte, error) {
	return yaml.MarshalWithOptions(v, yaml.Indent(2), yaml.IndentSequence(true))
}
