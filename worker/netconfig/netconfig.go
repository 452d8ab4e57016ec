// Package netconfig reads the network configuration that an install writes: cloud-init's
// network-config, which is netplan's format too. It is pure, so that the appliance
// finds before a disk is wiped what the worker would find after it.
//
// No error quotes the document: a network configuration may hold the password of a
// wireless network or of 802.1X.
package netconfig

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits on YAML that comes from outside; the parser's tree takes 200 bytes a
// value, in the memory of a machine that may have little.
const (
	// MaxBytes is how much of YAML is read.
	MaxBytes = 256 << 10
	// MaxValues is how many lines and values.
	MaxValues = 10000
)

// ErrTooMuch is YAML beyond the limits.
var ErrTooMuch = errors.New("is longer than is read")

// Parse reads a network-config version 2 document, with or without the `network:`
// around it, as its mapping. What is in the mapping is the renderer's affair. It
// wraps ErrTooMuch where the document is beyond the limits.
func Parse(config string) (*yaml.Node, error) { return parse(config, "2") }

// Check says why a document is no network-config of version 1 or 2, nil if it is
// one: the NoCloud readers that are not cloud-init take both.
func Check(config string) error {
	_, err := parse(config, "2", "1")
	return err
}

func parse(config string, versions ...string) (*yaml.Node, error) {
	doc, err := Mapping(config)
	if err != nil {
		return nil, err
	}
	if inner := Value(doc, "network"); inner != nil && len(doc.Content) == 2 {
		if inner.Kind != yaml.MappingNode {
			return nil, errors.New("network is no mapping (write it as `network: {version: 2, ethernets: …}`)")
		}
		doc = inner
	}
	if v := Value(doc, "version"); v == nil || !slices.Contains(versions, v.Value) {
		return nil, errors.New("is no network-config version 2 document (begin it with `version: 2`)")
	}
	// Decoding looks for keys that are there twice, and bounds what aliases bring.
	var all any
	if err := doc.Decode(&all); err != nil {
		return nil, unquoted(err)
	}
	return doc, nil
}

// Mapping reads the one document of s, a YAML mapping. It wraps ErrTooMuch where s is
// beyond the limits.
func Mapping(s string) (*yaml.Node, error) {
	parts := 0
	for _, c := range []string{"\n", ",", "[", "{"} {
		parts += strings.Count(s, c)
	}
	if len(s) > MaxBytes || parts > MaxValues {
		return nil, fmt.Errorf("%w: more than %d bytes, or %d lines and values", ErrTooMuch, MaxBytes, MaxValues)
	}
	var doc, next yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(s))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || (err == nil && doc.Content[0].Kind != yaml.MappingNode) {
		return nil, errors.New("is no mapping (write it as `key: value` lines)")
	}
	if err != nil {
		return nil, unquoted(err)
	}
	if !errors.Is(dec.Decode(&next), io.EOF) {
		return nil, errors.New("has more than one document")
	}
	return doc.Content[0], nil
}

// Value is the value of a key of a mapping, nil where it has none.
func Value(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// unquoted is the library's error without what it quotes of the document.
func unquoted(err error) error {
	const quotes = "`'\""
	text := err.Error()
	if from, to := strings.IndexAny(text, quotes), strings.LastIndexAny(text, quotes); from < to {
		text = text[:from] + "…" + text[to+1:]
	}
	return errors.New(text)
}
