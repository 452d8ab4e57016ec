package hardware

import (
	"slices"
	"strings"
)

// Nearest returns up to three of the names that somebody who wrote word may have
// meant, the best first.
func Nearest(word string, names []string) []string {
	type match struct {
		name string
		cost int
	}
	if len(word) > 128 {
		return nil
	}
	low := strings.ToLower(word)
	limit := max(2, len(word)/3)
	var found []match
	for _, n := range names {
		if len(n) > 256 {
			continue
		}
		ln := strings.ToLower(n)
		cost := distance(low, ln)
		if cost > limit && len(low) > 1 && strings.HasPrefix(ln, low) {
			cost = limit
		}
		if cost <= limit {
			found = append(found, match{n, cost})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int {
		if a.cost != b.cost {
			return a.cost - b.cost
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, m := range found[:min(len(found), 3)] {
		out = append(out, m.name)
	}
	return out
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
