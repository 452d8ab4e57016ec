package convert

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kyaml "sigs.k8s.io/yaml"
)

// document is one object of a file, or a part of it that has none: comments alone.
type document struct {
	file string
	text []byte
	// value is what kubectl would read, with json.Number; nil where there is no object.
	value map[string]any
	// source is the same with its comments; nil where it could not be read as such.
	source *yaml.Node
	// fromList: it was an item of a List, and has no text of its own.
	fromList bool
}

// read splits a file as kubectl does.
func read(f File) ([]*document, error) {
	var out []*document
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(f.Data)))
	for i := 1; ; i++ {
		text, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		d := &document{file: f.Name, text: closed(text)}
		if err := d.parse(); err != nil {
			return nil, fmt.Errorf("%s: document %d: %w%s", f.Name, i, err, d.variables())
		}
		if d.kind() != "List" || d.group() != "" {
			out = append(out, d)
			continue
		}
		items, err := d.items()
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", f.Name, i, err)
		}
		out = append(out, items...)
	}
}

// closed is text with a newline at its end.
func closed(text []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return text
}

func (d *document) parse() error {
	data, err := kyaml.YAMLToJSONStrict(d.text)
	if err != nil {
		return fmt.Errorf("is not YAML: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("is not YAML: %w", err)
	}
	if v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return errors.New("is not an object (it begins with apiVersion, kind and metadata)")
	}
	d.value = m
	if d.kind() == "" || text(m, "apiVersion") == "" {
		return errors.New("has no apiVersion or no kind")
	}
	var n yaml.Node
	if yaml.Unmarshal(d.text, &n) == nil && n.Kind == yaml.DocumentNode && len(n.Content) == 1 && n.Content[0].Kind == yaml.MappingNode {
		d.source = n.Content[0]
		d.source.HeadComment = strings.TrimSpace(n.HeadComment + "\n" + d.source.HeadComment)
	}
	return nil
}

// items are the objects of a List, which is what kubectl get -o yaml writes.
func (d *document) items() ([]*document, error) {
	list, ok := d.value["items"].([]any)
	if !ok && d.value["items"] != nil {
		return nil, errors.New("items is not a list")
	}
	var nodes []*yaml.Node
	if n := child(d.source, "items"); n != nil && n.Kind == yaml.SequenceNode && len(n.Content) == len(list) {
		nodes = n.Content
	}
	var out []*document
	for i, x := range list {
		m, ok := x.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] is not an object", i)
		}
		item := &document{file: d.file, value: m, fromList: true}
		if item.kind() == "" || text(m, "apiVersion") == "" {
			return nil, fmt.Errorf("items[%d] has no apiVersion or no kind", i)
		}
		if nodes != nil {
			item.source = nodes[i]
		}
		out = append(out, item)
	}
	return out, nil
}

func text(m map[string]any, key string) string { s, _ := m[key].(string); return s }

func object(m map[string]any, key string) map[string]any { o, _ := m[key].(map[string]any); return o }

func (d *document) kind() string { return text(d.value, "kind") }

func (d *document) group() string {
	g, _, ok := strings.Cut(text(d.value, "apiVersion"), "/")
	if !ok {
		return ""
	}
	return g
}

func (d *document) version() string {
	_, v, ok := strings.Cut(text(d.value, "apiVersion"), "/")
	if !ok {
		return text(d.value, "apiVersion")
	}
	return v
}

func (d *document) key() key {
	m := object(d.value, "metadata")
	return key{text(m, "namespace"), text(m, "name")}
}

// object is how notes name it.
func (d *document) object() string {
	k := d.key()
	if k.name == "" {
		k.name = text(object(d.value, "metadata"), "generateName")
	}
	if k.namespace != "" {
		return d.kind() + " " + k.namespace + "/" + k.name
	}
	return d.kind() + " " + k.name
}

// variables is a hint for whoever converts a template of clusterctl.
func (d *document) variables() string {
	if bytes.Contains(d.text, []byte("${")) {
		return " (it has variables of clusterctl; fill them in first: clusterctl generate cluster NAME --from FILE)"
	}
	return ""
}

// write is value as YAML, in the order and with the comments of the source.
func (d *document) write(value map[string]any) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	n := node(value, d.source)
	if d.source != nil {
		n.HeadComment, n.FootComment = d.source.HeadComment, d.source.FootComment
	}
	if e.Encode(n) == nil && e.Close() == nil {
		// what was written is read again: it is for machines, and comments are for people
		var back, want any
		if readBack(b.Bytes(), &back) == nil && normal(value, &want) == nil && reflect.DeepEqual(back, want) {
			return b.Bytes(), nil
		}
	}
	return kyaml.Marshal(value)
}

func readBack(y []byte, out *any) error { return kyaml.Unmarshal(y, out) }

func normal(value any, out *any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// toValue is a typed object as maps and lists, without what is empty.
func toValue(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	delete(out, "status")
	return out, nil
}

func child(n *yaml.Node, name string) *yaml.Node {
	_, v := pair(n, name)
	return v
}

func pair(n *yaml.Node, name string) (k, v *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// node is v as a tree, with the comments of what stands at the same place in source.
func node(v any, source *yaml.Node) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, name := range ordered(v, source) {
			k, was := pair(source, name)
			nk, nv := scalar(name), node(v[name], was)
			comments(nk, k)
			comments(nv, was)
			// what stands behind [a, b] would stand behind the next key
			if nv.Kind != yaml.ScalarNode && nv.LineComment != "" {
				nk.HeadComment = strings.TrimSpace(nk.HeadComment + "\n" + nv.LineComment)
				nv.LineComment = ""
			}
			out.Content = append(out.Content, nk, nv)
		}
		if len(out.Content) == 0 {
			out.Style = yaml.FlowStyle
		}
		return out
	case []any:
		out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		same := source != nil && source.Kind == yaml.SequenceNode && len(source.Content) == len(v)
		for i, x := range v {
			var was *yaml.Node
			if same {
				was = source.Content[i]
			}
			n := node(x, was)
			comments(n, was)
			out.Content = append(out.Content, n)
		}
		if len(out.Content) == 0 {
			out.Style = yaml.FlowStyle
		}
		return out
	case string:
		return scalar(v)
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.String()}
	}
	return scalar(fmt.Sprint(v))
}

func comments(to, from *yaml.Node) {
	if from != nil {
		to.HeadComment, to.LineComment, to.FootComment = from.HeadComment, from.LineComment, from.FootComment
	}
}

// scalar is a string, quoted where YAML of any version would read something else.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if n.Style == 0 {
		var back any
		if kyaml.Unmarshal([]byte(s), &back) != nil || back != any(s) {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	return n
}
