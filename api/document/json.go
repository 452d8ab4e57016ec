package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// JSON reads a stream of JSON values. It returns a *SyntaxError.
func JSON(data []byte, limits Limits) ([]*Node, error) {
	if err := checkUTF8(data); err != nil {
		return nil, err // the decoder would put U+FFFD in its place
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	j := jsonReader{dec: dec, data: data, line: 1, budget: budget{limits: limits}}
	var out []*Node
	for i := 0; ; i++ {
		n, err := j.value(0)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if i >= limits.Documents {
			return nil, &SyntaxError{n.Line, fmt.Sprintf("there are more than %d documents", limits.Documents)}
		}
		if n.Type != Null {
			out = append(out, n)
		}
	}
}

type jsonReader struct {
	dec    *json.Decoder
	data   []byte
	seen   int64 // offset up to which lines are counted
	line   int
	budget budget
}

// at is the line of the token that was read last.
func (j *jsonReader) at() int {
	to := min(j.dec.InputOffset(), int64(len(j.data)))
	j.line += bytes.Count(j.data[j.seen:to], []byte("\n"))
	j.seen = to
	return j.line
}

func (j *jsonReader) token() (json.Token, error) {
	t, err := j.dec.Token()
	if err == nil || errors.Is(err, io.EOF) {
		return t, err
	}
	return nil, &SyntaxError{j.at(), strings.TrimPrefix(err.Error(), "json: ")}
}

// value reads one value; io.EOF where the stream ends before it.
func (j *jsonReader) value(depth int) (*Node, error) {
	t, err := j.token()
	if err != nil {
		return nil, err
	}
	n := &Node{Line: j.at()}
	switch x := t.(type) {
	case bool:
		n.Type, n.Value = Bool, fmt.Sprint(x)
	case json.Number:
		n.Type, n.Value = Number, x.String()
	case string:
		n.Type, n.Value = Text, x
	}
	if err := j.budget.take(depth, n.Line, n.Value); err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		n.Type = List
		err = j.list(n, depth)
	case json.Delim('{'):
		n.Type = Map
		err = j.mapping(n, depth)
	}
	if errors.Is(err, io.EOF) {
		err = &SyntaxError{j.at(), "ends in the middle"}
	}
	return n, err
}

func (j *jsonReader) list(n *Node, depth int) error {
	for j.dec.More() {
		e, err := j.value(depth + 1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, e)
	}
	_, err := j.token()
	return err
}

func (j *jsonReader) mapping(n *Node, depth int) error {
	seen := map[string]bool{}
	for j.dec.More() {
		t, err := j.token()
		if err != nil {
			return err
		}
		k, _ := t.(string) // the decoder lets nothing else pass as a key
		line := j.at()
		if seen[k] {
			return &SyntaxError{line, fmt.Sprintf("key %.60q is there twice", k)}
		}
		seen[k] = true
		if err := j.budget.take(depth, line, k); err != nil {
			return err
		}
		v, err := j.value(depth + 1)
		if err != nil {
			return err
		}
		n.Fields = append(n.Fields, Field{Key: k, Line: line, Value: v})
	}
	_, err := j.token()
	return err
}

// checkUTF8 says where data is not UTF-8 (RFC 8259 section 8.1), as a *SyntaxError.
func checkUTF8(data []byte) error {
	if utf8.Valid(data) {
		return nil
	}
	line := 1
	for rest := data; ; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n <= 1 {
			break
		}
		if r == '\n' {
			line++
		}
		rest = rest[n:]
	}
	return &SyntaxError{line, "is not UTF-8 text (write binary data as base64, in a #cloud-config with `encoding: b64` or `gz+b64` in write_files, or put it into the image)"}
}
