package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML reads a stream of YAML documents; empty ones are left out. It returns a
// *SyntaxError.
func YAML(data []byte, limits Limits) ([]*Node, error) {
	// YAML 1.2 section 5.2: a byte order mark says that it is UTF-16
	if !bytes.HasPrefix(data, []byte("\xff\xfe")) && !bytes.HasPrefix(data, []byte("\xfe\xff")) {
		if err := checkUTF8(data); err != nil {
			return nil, err
		}
	}
	// the parser makes a tree of about 200 bytes a value before we can count: look for
	// what parts values first
	parts := 0
	for _, c := range []byte{',', '\n', '[', '{'} {
		parts += bytes.Count(data, []byte{c})
	}
	if parts > limits.Nodes {
		return nil, &SyntaxError{0, fmt.Sprintf("there are more than %d lines and values", limits.Nodes)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	y := yamlReader{budget: budget{limits: limits}, number: regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)}
	var out []*Node
	for i := 0; ; i++ {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, yamlError(err)
		}
		if i >= limits.Documents {
			return nil, &SyntaxError{doc.Line, fmt.Sprintf("there are more than %d documents", limits.Documents)}
		}
		n, err := y.node(&doc, 0)
		if err != nil {
			return nil, err
		}
		if n.Type != Null {
			out = append(out, n)
		}
	}
}

// CheckYAML says where data is not YAML, as a *SyntaxError. Unlike YAML it takes all
// that the language has: it is for documents that others read.
func CheckYAML(data []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		switch err := dec.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return yamlError(err)
		}
	}
}

// yamlError turns the library's `yaml: line 3: text` into a SyntaxError.
func yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if num, detail, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(num); err == nil {
				return &SyntaxError{line, detail}
			}
		}
	}
	return &SyntaxError{0, text}
}

type yamlReader struct {
	budget  budget
	number  *regexp.Regexp // of JSON
	inAlias int            // how many aliases are being followed
	aliased int            // values they brought
}

func (y *yamlReader) node(n *yaml.Node, depth int) (*Node, error) {
	if n.Kind == yaml.DocumentNode {
		return y.node(n.Content[0], depth)
	}
	if err := y.budget.take(depth, n.Line, n.Value); err != nil {
		return nil, err
	}
	if y.inAlias > 0 {
		if y.aliased++; y.aliased > y.budget.limits.Aliased {
			return nil, &SyntaxError{n.Line, fmt.Sprintf("has more than %d values, aliases followed", y.budget.limits.Aliased)}
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		y.inAlias++
		out, err := y.node(n.Alias, depth+1)
		y.inAlias--
		return out, err
	case yaml.ScalarNode:
		return y.scalar(n)
	case yaml.SequenceNode:
		out := &Node{Type: List, Line: n.Line, Items: make([]*Node, 0, len(n.Content))}
		for _, e := range n.Content {
			c, err := y.node(e, depth+1)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, c)
		}
		return out, checkTag(n, "!!seq")
	case yaml.MappingNode:
		return y.mapping(n, depth)
	}
	return &Node{Type: Null, Line: n.Line}, nil
}

func (y *yamlReader) mapping(n *yaml.Node, depth int) (*Node, error) {
	out := &Node{Type: Map, Line: n.Line, Fields: make([]Field, 0, len(n.Content)/2)}
	seen := make(map[string]int, len(n.Content)/2)
	var merged []Field
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return nil, &SyntaxError{k.Line, "a key must be text"}
		}
		v, err := y.node(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if k.Tag == "!!merge" {
			fields, err := mergeFields(v)
			if err != nil {
				return nil, err
			}
			merged = append(merged, fields...)
			continue
		}
		if err := y.budget.take(depth, k.Line, k.Value); err != nil {
			return nil, err
		}
		if line, ok := seen[k.Value]; ok {
			return nil, &SyntaxError{k.Line, fmt.Sprintf("key %.60q is there twice (first in line %d)", k.Value, line)}
		}
		seen[k.Value] = k.Line
		out.Fields = append(out.Fields, Field{Key: k.Value, Line: k.Line, Value: v})
	}
	for _, f := range merged {
		if _, ok := seen[f.Key]; !ok {
			seen[f.Key] = f.Line
			out.Fields = append(out.Fields, f)
		}
	}
	return out, checkTag(n, "!!map")
}

// mergeFields are the fields that `<<: *anchor` or `<<: [*a, *b]` brings.
func mergeFields(v *Node) ([]Field, error) {
	switch v.Type {
	case Map:
		return v.Fields, nil
	case List:
		var out []Field
		for _, e := range v.Items {
			if e.Type != Map {
				return nil, &SyntaxError{e.Line, "<< takes maps only"}
			}
			out = append(out, e.Fields...)
		}
		return out, nil
	}
	return nil, &SyntaxError{v.Line, "<< takes maps only"}
}

func (y *yamlReader) scalar(n *yaml.Node) (*Node, error) {
	out := &Node{Type: Text, Value: n.Value, Line: n.Line}
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tagged := n.Style&yaml.TaggedStyle != 0
	if tagged && n.ShortTag() != "!!str" {
		return nil, &SyntaxError{n.Line, fmt.Sprintf("tag %.40q is not known (leave it out)", n.Tag)}
	}
	if tagged || n.Style&quoted != 0 {
		return out, nil
	}
	out.Plain = true
	switch {
	case n.Value == "" || n.Value == "~" || n.Value == "null" || n.Value == "Null" || n.Value == "NULL":
		out.Type = Null
	case n.Value == "true" || n.Value == "True" || n.Value == "TRUE" || n.Value == "false" || n.Value == "False" || n.Value == "FALSE":
		out.Type = Bool
	case y.number.MatchString(n.Value):
		out.Type = Number
	}
	return out, nil
}

func checkTag(n *yaml.Node, want string) error {
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != want {
		return &SyntaxError{n.Line, fmt.Sprintf("tag %.40q is not known (leave it out)", n.Tag)}
	}
	return nil
}
