package workflow

import (
	"fmt"
	"strings"
)

const maxDepth = 16

// substitute replaces every ${name} in the strings of v, at any depth.
func substitute(v any, vals map[string]any) (any, error) {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			s, err := substitute(e, vals)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			out[k] = s
		}
		return out, nil
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			s, err := substitute(e, vals)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out[i] = s
		}
		return out, nil
	case string:
		return substituteText(x, vals)
	}
	return v, nil
}

func substituteText(s string, vals map[string]any) (any, error) {
	toks, err := tokens(s)
	if err != nil {
		return nil, err
	}
	if len(toks) == 1 && toks[0].param {
		v, ok := vals[toks[0].text]
		if !ok {
			return nil, fmt.Errorf("${%s} has no value", toks[0].text)
		}
		return v, nil
	}
	var b strings.Builder
	for _, t := range toks {
		if !t.param {
			b.WriteString(t.text)
			continue
		}
		v, ok := vals[t.text]
		if !ok {
			return nil, fmt.Errorf("${%s} has no value", t.text)
		}
		fmt.Fprint(&b, v)
	}
	return b.String(), nil
}

// references notes the names used in the strings of v.
func references(v any, used map[string]bool, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("is nested more than %d deep", maxDepth)
	}
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if err := references(e, used, depth+1); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
	case []any:
		for i, e := range x {
			if err := references(e, used, depth+1); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case string:
		toks, err := tokens(x)
		if err != nil {
			return err
		}
		for _, t := range toks {
			if t.param {
				used[t.text] = true
			}
		}
	}
	return nil
}

type token struct {
	text  string
	param bool
}

// tokens splits s at its ${name}s. $${ is a literal ${, so that shell text in
// user-data can be written.
func tokens(s string) ([]token, error) {
	var out []token
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			out = append(out, token{text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			lit.WriteString("${")
			i += 3
		case strings.HasPrefix(s[i:], "${"):
			end := strings.IndexByte(s[i:], '}')
			if end < 0 || !validParamName(s[i+2:i+end]) {
				return nil, fmt.Errorf("%.40q is not a parameter (write ${name}, or $${ for a literal ${)", s[i:])
			}
			flush()
			out = append(out, token{text: s[i+2 : i+end], param: true})
			i += end + 1
		default:
			lit.WriteByte(s[i])
			i++
		}
	}
	flush()
	return out, nil
}

// validParamName accepts letters, digits, _ and -, and dots for the built-in names.
func validParamName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
