package action

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits on YAML that comes from outside; the parser's tree takes 200 bytes a
// value, in the memory of a machine that may have little.
const (
	maxYAML       = 256 << 10
	maxYAMLValues = 10000
)

var errTooMuch = errors.New("is longer than is read")

// parseYAML reads the one document of s, a mapping. It wraps errTooMuch where s
// is beyond the limits.
func parseYAML(s string) (*yaml.Node, error) {
	parts := 0
	for _, c := range []string{"\n", ",", "[", "{"} {
		parts += strings.Count(s, c)
	}
	if len(s) > maxYAML || parts > maxYAMLValues {
		return nil, fmt.Errorf("%w: more than %d bytes, or %d lines and values", errTooMuch, maxYAML, maxYAMLValues)
	}
	var doc, next yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(s))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || (err == nil && doc.Content[0].Kind != yaml.MappingNode) {
		return nil, errors.New("is no mapping (write it as `key: value` lines)")
	}
	if err != nil {
		return nil, err
	}
	if !errors.Is(dec.Decode(&next), io.EOF) {
		return nil, errors.New("has more than one document")
	}
	return doc.Content[0], nil
}

// valueOf is the value of a key of a mapping, nil where it has none.
func valueOf(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// flat is n with the values of its aliases in their places, which netplan does
// not follow, and without comments. Quotes stay as they were: to readers of YAML
// 1.1 a plain 52:54:00:12:34:56 is a number.
func flat(n *yaml.Node) (*yaml.Node, error) {
	left := 4 * maxYAML // bytes that aliases can make of a document
	return flatten(n, &left)
}

func flatten(n *yaml.Node, left *int) (*yaml.Node, error) {
	if *left -= 16 + len(n.Value); *left < 0 {
		return nil, fmt.Errorf("%w, aliases followed", errTooMuch)
	}
	if n.Kind == yaml.AliasNode {
		return flatten(n.Alias, left)
	}
	out := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	for _, c := range n.Content {
		if c.Tag == "!!merge" {
			return nil, fmt.Errorf("line %d: << is not for network configurations (write its keys out)", c.Line)
		}
		v, err := flatten(c, left)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, v)
	}
	return out, nil
}

func encodeYAML(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}
