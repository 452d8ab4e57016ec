package metadata

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// text is a string that is always written in double quotes. cloud-init reads
// YAML 1.1, where a plain 52:54:00:12:34:56 is a number to the base of 60 and a
// plain `no` is false; a YAML library that follows 1.2 quotes neither in all
// cases.
type text string

// MarshalYAML implements yaml.Marshaler. Bytes that are no UTF-8 are replaced:
// YAML has no way to write them.
func (t text) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Tag: "!!str", Value: strings.ToValidUTF8(string(t), "\ufffd")}, nil
}

func texts[T fmt.Stringer](in []T) []text {
	var out []text
	for _, v := range in {
		out = append(out, text(v.String()))
	}
	return out
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}
