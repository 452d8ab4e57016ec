package document

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// EncodeYAML writes one JSON value as a YAML document, its keys in the same order,
// text of several lines as a block.
func EncodeYAML(raw []byte) ([]byte, error) {
	nodes, err := JSON(raw, Limits{Depth: 200, Nodes: 1 << 30, Text: 1 << 30, Documents: 1})
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return []byte("null\n"), nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(nodes[0].yaml()); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

func (n *Node) yaml() *yaml.Node {
	out := &yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}
	switch n.Type {
	case Null:
		out.Value = "null"
	case Bool, Number:
		// without a tag they are written as they are
	case Text:
		out.Tag = "!!str"
		if strings.Contains(n.Value, "\n") {
			out.Style = yaml.LiteralStyle
		}
	case List:
		out.Kind, out.Tag = yaml.SequenceNode, "!!seq"
		for _, e := range n.Items {
			out.Content = append(out.Content, e.yaml())
		}
	case Map:
		out.Kind, out.Tag = yaml.MappingNode, "!!map"
		for _, f := range n.Fields {
			k := (&Node{Type: Text, Value: f.Key}).yaml()
			out.Content = append(out.Content, k, f.Value.yaml())
		}
	}
	return out
}
