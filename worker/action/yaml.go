package action

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/rackstrap/rackstrap/worker/netconfig"
)

// flat is n with the values of its aliases in their places, which netplan does
// not follow, and without comments. Quotes stay as they were: to readers of YAML
// 1.1 a plain 52:54:00:12:34:56 is a number.
func flat(n *yaml.Node) (*yaml.Node, error) {
	left := 4 * netconfig.MaxBytes // bytes that aliases can make of a document
	return flatten(n, &left)
}

func flatten(n *yaml.Node, left *int) (*yaml.Node, error) {
	if *left -= 16 + len(n.Value); *left < 0 {
		return nil, fmt.Errorf("%w, aliases followed", netconfig.ErrTooMuch)
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
