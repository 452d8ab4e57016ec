package hardware

import (
	"fmt"
	"slices"
	"strings"
)

// MaxSelector bounds a selector, in bytes.
const MaxSelector = 4096

// Selector picks records by their labels. The zero value matches everything.
//
// The syntax is that of Kubernetes label selectors: `a=b`, `a==b`, `a!=b`, `a`, `!a`,
// `a in (x,y)`, `a notin (x,y)`; a comma means "and". As there, `a!=b` and `a notin (b)`
// also match a record without the label.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
type Selector struct {
	terms []term
}

// term is one requirement.
type term struct {
	key    string
	op     operator
	values []string // sorted, without repeats; one for is and isNot
}

type operator string

const (
	opHas   operator = "has"
	opHasNo operator = "!"
	opIs    operator = "="
	opIsNot operator = "!="
	opIn    operator = "in"
	opNotIn operator = "notin"
)

// Empty reports whether the selector asks for nothing.
func (s Selector) Empty() bool { return len(s.terms) == 0 }

// Matches reports whether labels fulfil every requirement.
func (s Selector) Matches(labels map[string]string) bool {
	for _, t := range s.terms {
		if !t.matches(labels) {
			return false
		}
	}
	return true
}

func (t term) matches(labels map[string]string) bool {
	v, ok := labels[t.key]
	has := ok && slices.Contains(t.values, v)
	switch t.op {
	case opHas:
		return ok
	case opHasNo:
		return !ok
	case opIsNot, opNotIn:
		return !has
	}
	return has
}

// String is the selector as ParseSelector reads it.
func (s Selector) String() string {
	var b strings.Builder
	for i, t := range s.terms {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.String())
	}
	return b.String()
}

func (t term) String() string {
	switch t.op {
	case opHas:
		return t.key
	case opHasNo:
		return "!" + t.key
	case opIs, opIsNot:
		return t.key + string(t.op) + t.values[0]
	}
	return t.key + " " + string(t.op) + " (" + strings.Join(t.values, ",") + ")"
}

// SelectorError says where a selector is wrong and how to write it.
type SelectorError struct {
	Text   string
	At     int // byte, from 1
	Detail string
}

func (e *SelectorError) Error() string {
	return fmt.Sprintf("selector %.80q: at character %d: %s", e.Text, e.At, e.Detail)
}

// ParseSelector reads a selector; empty text selects everything. It returns a
// *SelectorError.
func ParseSelector(text string) (Selector, error) {
	p := selectorParser{text: text}
	if len(text) > MaxSelector {
		return Selector{}, p.errorf(MaxSelector, "it has %d bytes, the limit is %d", len(text), MaxSelector)
	}
	var s Selector
	if p.peek() == "" {
		return s, nil
	}
	for {
		t, err := p.term()
		if err != nil {
			return Selector{}, err
		}
		s.terms = append(s.terms, t)
		switch tok := p.next(); tok {
		case "":
			if n := len(s.String()); n > MaxSelector { // so that what is printed can be read again
				return Selector{}, p.errorf(p.at, "it has %d bytes with its spaces, the limit is %d", n, MaxSelector)
			}
			return s, nil
		case ",":
		default:
			return Selector{}, p.errorf(p.at, "%q is too much (put a comma between two requirements)", tok)
		}
	}
}

// selectorParser cuts the text into words and the signs ( ) , ! = == != .
type selectorParser struct {
	text string
	pos  int // of what is read next
	at   int // of the token read last
}

func (p *selectorParser) errorf(at int, format string, args ...any) error {
	return &SelectorError{Text: p.text, At: at + 1, Detail: fmt.Sprintf(format, args...)}
}

// next is the next token, empty at the end; a character that has no place in a
// selector is a token of its own.
func (p *selectorParser) next() string {
	rest := strings.TrimLeft(p.text[p.pos:], " \t\r\n")
	p.at = len(p.text) - len(rest)
	n := 0
	switch {
	case rest == "":
	case strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "!="):
		n = 2
	default:
		for n < len(rest) && labelByte(rest[n]) {
			n++
		}
		if n == 0 {
			n = 1
			for n < len(rest) && rest[n]&0xc0 == 0x80 { // the rest of one UTF-8 character
				n++
			}
		}
	}
	p.pos = p.at + n
	return rest[:n]
}

func (p *selectorParser) peek() string {
	pos, at := p.pos, p.at
	t := p.next()
	p.pos, p.at = pos, at
	return t
}

func (p *selectorParser) term() (term, error) {
	tok := p.next()
	if tok == "!" {
		key, err := p.key(p.next())
		return term{key: key, op: opHasNo}, err
	}
	key, err := p.key(tok)
	if err != nil {
		return term{}, err
	}
	switch op := p.peek(); op {
	case "", ",":
		return term{key: key, op: opHas}, nil
	case "=", "==", "!=":
		p.next()
		v, err := p.value()
		if op == "==" {
			op = "="
		}
		return term{key: key, op: operator(op), values: []string{v}}, err
	case "in", "notin":
		p.next()
		values, err := p.set(op)
		return term{key: key, op: operator(op), values: values}, err
	default:
		p.next()
		return term{}, p.errorf(p.at, "%q is not known after %q (use =, !=, in or notin)", op, key)
	}
}

func (p *selectorParser) key(tok string) (string, error) {
	switch {
	case tok == "":
		return "", p.errorf(p.at, "a label is missing (write key=value)")
	case !labelByte(tok[0]):
		return "", p.errorf(p.at, "%q is no label (a key has letters, digits and - _ . /)", tok)
	case len(tok) > MaxLabelText:
		return "", p.errorf(p.at, "the key has %d bytes, the limit is %d", len(tok), MaxLabelText)
	}
	return tok, nil
}

// value is what stands after = or in a list; it may be empty.
func (p *selectorParser) value() (string, error) {
	tok := p.peek()
	switch {
	case tok == "" || tok == "," || tok == ")":
		return "", nil
	case !labelByte(tok[0]):
		p.next()
		return "", p.errorf(p.at, "%q is no value (a value has letters, digits and - _ . /)", tok)
	case len(tok) > MaxLabelText:
		p.next()
		return "", p.errorf(p.at, "the value has %d bytes, the limit is %d", len(tok), MaxLabelText)
	}
	return p.next(), nil
}

// set reads (x,y).
func (p *selectorParser) set(op string) ([]string, error) {
	if tok := p.next(); tok != "(" {
		return nil, p.errorf(p.at, "%s takes a list in brackets: key %s (a,b)", op, op)
	}
	var values []string
	for {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		switch p.next() {
		case ",":
		case ")":
			slices.Sort(values)
			return slices.Compact(values), nil
		default:
			return nil, p.errorf(p.at, "the list of %s has no end (close it with a bracket: key %s (a,b))", op, op)
		}
	}
}

// labelByte is what keys and values of labels are made of; see validLabel.
func labelByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_./", c) >= 0
}
