package document

import (
	"fmt"
	"strconv"
	"strings"
)

// Type is what a Node is.
type Type int

// The types.
const (
	Null Type = iota
	Bool
	Number
	Text
	List
	Map
)

func (t Type) String() string {
	return [...]string{"null", "true or false", "a number", "text", "a list", "a map"}[t]
}

// Node is one value of a document, in the order in which it was written.
type Node struct {
	Type Type
	// Value is the source text of a scalar, without quotes and escapes.
	Value string
	// Plain: a scalar of YAML that was not quoted.
	Plain bool
	// Line is where it starts, from 1.
	Line   int
	Items  []*Node
	Fields []Field
}

// Field is one key of a map.
type Field struct {
	Key   string
	Line  int
	Value *Node
}

// Limits bound what a document may cost.
type Limits struct {
	// Depth of nesting.
	Depth int
	// Nodes is how many values there may be in all, aliases followed.
	Nodes int
	// Aliased is how many of them may come from aliases.
	Aliased int
	// Text is how many bytes of text there may be in all, aliases followed.
	Text int
	// Documents in one stream.
	Documents int
}

// DefaultLimits are enough for a record of every machine of a large rack row, in a
// body of 4 MiB.
func DefaultLimits() Limits {
	return Limits{Depth: 32, Nodes: 500_000, Aliased: 50_000, Text: 8 << 20, Documents: 20_000}
}

// SyntaxError is what is wrong with a document before it has any meaning.
type SyntaxError struct {
	Line   int // 0 is unknown
	Detail string
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.Detail
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Detail)
}

// Get is the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, f := range n.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Cut removes a key and returns its value, or nil.
func (n *Node) Cut(key string) *Node {
	for i, f := range n.Fields {
		if f.Key == key {
			n.Fields = append(n.Fields[:i:i], n.Fields[i+1:]...)
			return f.Value
		}
	}
	return nil
}

// Any is the value as encoding/json would give it, but for whole numbers, which
// are int64 where they fit.
func (n *Node) Any() any {
	switch n.Type {
	case Bool:
		return strings.EqualFold(n.Value, "true")
	case Number:
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return i
		}
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			return n.Value
		}
		return f
	case Text:
		return n.Value
	case List:
		out := make([]any, len(n.Items))
		for i, e := range n.Items {
			out[i] = e.Any()
		}
		return out
	case Map:
		out := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			out[f.Key] = f.Value.Any()
		}
		return out
	}
	return nil
}

// budget counts what is left of the Limits.
type budget struct {
	limits      Limits
	nodes, text int
}

func (b *budget) take(depth, line int, text string) error {
	b.nodes++
	b.text += len(text)
	switch {
	case depth > b.limits.Depth:
		return &SyntaxError{line, fmt.Sprintf("is nested more than %d deep", b.limits.Depth)}
	case b.nodes > b.limits.Nodes:
		return &SyntaxError{line, fmt.Sprintf("has more than %d values, aliases followed", b.limits.Nodes)}
	case b.text > b.limits.Text:
		return &SyntaxError{line, fmt.Sprintf("has more than %d bytes of text, aliases followed", b.limits.Text)}
	}
	return nil
}
