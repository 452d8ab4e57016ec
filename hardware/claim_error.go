package hardware

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ClaimEnded is a claim whose id was used before, and given up: it gets no other
// machine, so that a late retry of an old request takes nothing.
type ClaimEnded struct {
	ID       string
	Hardware string // the machine it had; empty where it was given up before it was made
	Ended    time.Time
}

func (e *ClaimEnded) Error() string {
	if e.Hardware == "" {
		return fmt.Sprintf("claim %q was given up at %s, before it was made (a new claim needs an id of its own)", e.ID, e.Ended.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("claim %q ended at %s; it had hardware %q (a new claim needs an id of its own)", e.ID, e.Ended.UTC().Format(time.RFC3339), e.Hardware)
}

// ClaimDiffers is a claim id that stands for another spec.
type ClaimDiffers struct {
	ID    string
	Field string // in which they differ
}

func (e *ClaimDiffers) Error() string {
	return fmt.Sprintf("claim %q exists with another %s (send what it was made with, or use another id)", e.ID, e.Field)
}

// NoCandidate says that no machine fits a claim.
type NoCandidate struct {
	ID string
	// Hardware is the machine that the claim names, if it names one; Why is what
	// speaks against it.
	Hardware string
	Why      []string
	// Machines is how many there are; Against counts what speaks against them, each
	// by the first thing that was found.
	Machines int
	Against  map[Against]int
}

// Counts says what Against has, the most frequent first: "12 claimed, 3 on hold".
func (e *NoCandidate) Counts() string {
	kinds := make([]Against, 0, len(e.Against))
	for a := range e.Against {
		kinds = append(kinds, a)
	}
	slices.SortFunc(kinds, func(a, b Against) int {
		return cmp.Or(cmp.Compare(e.Against[b], e.Against[a]), strings.Compare(string(a), string(b)))
	})
	out := make([]string, len(kinds))
	for i, a := range kinds {
		out[i] = fmt.Sprintf("%d %s", e.Against[a], a)
	}
	return strings.Join(out, ", ")
}

func (e *NoCandidate) Error() string {
	if e.Hardware != "" {
		return fmt.Sprintf("hardware %q does not fit: %s", e.Hardware, strings.Join(e.Why, "; "))
	}
	if e.Machines == 0 {
		return "no machine fits: there are none"
	}
	return fmt.Sprintf("no machine fits; of %d: %s", e.Machines, e.Counts())
}
