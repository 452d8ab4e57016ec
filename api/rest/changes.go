package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// Limits on what is told of one change.
const (
	maxChanges    = 100
	maxChangeText = 256
)

// changes lists the fields in which two versions of a record differ, secrets
// redacted.
func (rs *resource[T]) changes(ctx context.Context, old, now *T) ([]api.Change, error) {
	var trees [4]any
	for i, v := range []*T{old, now} {
		shown, err := rs.show(ctx, v)
		if err != nil {
			return nil, err
		}
		// what is shown says what may be told, what is kept says whether it differs
		for j, x := range []any{v, shown} {
			tree, err := written(x)
			if err != nil {
				return nil, err
			}
			trees[2*j+i] = tree
		}
	}
	var out []api.Change
	diff(&out, "", trees[0], trees[1], trees[2], trees[3])
	return out, nil
}

// written is what operators write of a record, as encoding/json has it.
func written(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Metadata struct {
			Labels map[string]any `json:"labels"`
		} `json:"metadata"`
		Spec any `json:"spec"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	return map[string]any{"metadata": map[string]any{"labels": doc.Metadata.Labels}, "spec": doc.Spec}, nil
}

// diff adds the differences of a and b; showA and showB are what may be told of them.
func diff(out *[]api.Change, path string, a, b, showA, showB any) {
	if reflect.DeepEqual(a, b) || len(*out) > maxChanges {
		return
	}
	if len(*out) == maxChanges {
		*out = append(*out, api.Change{Field: "…"})
		return
	}
	am, aIsMap := a.(map[string]any)
	bm, bIsMap := b.(map[string]any)
	if aIsMap && bIsMap {
		sa, _ := showA.(map[string]any)
		sb, _ := showB.(map[string]any)
		keys := slices.AppendSeq(slices.Collect(maps.Keys(am)), maps.Keys(bm))
		slices.Sort(keys)
		for _, k := range slices.Compact(keys) {
			at := k
			if path != "" {
				at = path + "." + k
			}
			diff(out, at, am[k], bm[k], sa[k], sb[k])
		}
		return
	}
	al, aIsList := a.([]any)
	bl, bIsList := b.([]any)
	if aIsList && bIsList {
		sa, _ := showA.([]any)
		sb, _ := showB.([]any)
		for i := range max(len(al), len(bl)) {
			diff(out, fmt.Sprintf("%s[%d]", path, i), at(al, i), at(bl, i), at(sa, i), at(sb, i))
		}
		return
	}
	c := api.Change{Field: path, From: short(showA), To: short(showB)}
	if c.From == hardware.Redacted && c.To == hardware.Redacted {
		c.To = "(another value)"
	}
	*out = append(*out, c)
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// short cuts long texts.
func short(v any) any {
	if s, ok := v.(string); ok && len(s) > maxChangeText {
		return hardware.PlainText(s, maxChangeText) + "…"
	}
	return v
}
