// Package document reads records as people write them, in YAML or JSON, strictly:
// an unknown field, a value of the wrong type or a key that is there twice is an
// error that names the field, and hostile input costs little. It writes them too.
//
// YAML is read as YAML 1.2's core schema has it, with two kindnesses: where text is
// wanted, a plain 525400123456 or true is taken as it was written, and a number with a
// leading zero (a file mode, 0644) is text. Anchors, aliases and << work within
// the limits.
package document
