package document

// Merge applies a JSON merge patch (RFC 7396) and returns the result as a new tree,
// which shares parts with both. A null in a patch deletes the key; lists are
// replaced as a whole.
func Merge(target, patch *Node) *Node {
	if patch.Type != Map {
		return patch
	}
	changes := make(map[string]Field, len(patch.Fields))
	for _, f := range patch.Fields {
		changes[f.Key] = f
	}
	out := &Node{Type: Map, Line: patch.Line}
	old := map[string]bool{}
	if target != nil && target.Type == Map {
		for _, f := range target.Fields {
			c, ok := changes[f.Key]
			switch {
			case !ok:
				out.Fields = append(out.Fields, f)
			case c.Value.Type != Null:
				out.Fields = append(out.Fields, Field{Key: f.Key, Line: c.Line, Value: Merge(f.Value, c.Value)})
			}
			old[f.Key] = true
		}
	}
	for _, f := range patch.Fields {
		if !old[f.Key] && f.Value.Type != Null {
			out.Fields = append(out.Fields, Field{Key: f.Key, Line: f.Line, Value: Merge(nil, f.Value)})
		}
	}
	return out
}

// Unplaced forgets the lines of a tree that nobody has written, so that no error
// points to them.
func (n *Node) Unplaced() *Node {
	n.Line = 0
	for _, e := range n.Items {
		e.Unplaced()
	}
	for i := range n.Fields {
		n.Fields[i].Line = 0
		n.Fields[i].Value.Unplaced()
	}
	return n
}
