package api

import (
	"github.com/rackstrap/rackstrap/hardware"
)

// ProblemType is the media type of RFC 9457.
const ProblemType = "application/problem+json"

// Code names a class of problem; a program may act on it.
type Code string

// The codes.
const (
	CodeBadRequest       Code = "bad-request"
	CodeInvalid          Code = "invalid"
	CodeNotFound         Code = "not-found"
	CodeNoRoute          Code = "no-such-route"
	CodeMethod           Code = "method-not-allowed"
	CodeExists           Code = "exists"
	CodeConflict         Code = "conflict"
	CodeInUse            Code = "in-use"
	CodeTooLarge         Code = "too-large"
	CodeMediaType        Code = "media-type"
	CodeCompacted        Code = "compacted"
	CodeStorageFull      Code = "storage-full"
	CodeUnavailable      Code = "unavailable"
	CodeInternal         Code = "internal"
	CodePowerFailed      Code = "power-failed"
	CodePartiallyApplied Code = "partially-applied"
	// Of a claim that gets no machine.
	CodeNoCandidate Code = "no-candidate"
	CodeClaimEnded  Code = "claim-ended"
	// Of a caller that is not known, or may not do it.
	CodeTokenMissing   Code = "token-missing"
	CodeTokenMalformed Code = "token-malformed"
	CodeTokenUnknown   Code = "token-unknown"
	CodeTokenExpired   Code = "token-expired"
	CodeForbidden      Code = "forbidden"
	CodeRateLimited    Code = "rate-limited"
)

// Problem is an error as RFC 9457 has it, with our extensions. It is the error
// that api/client returns for every answer that is not a success.
type Problem struct {
	// Type is a reference to the code's documentation.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Code is the class of the problem.
	Code Code `json:"code"`
	// Hint says what to do next, often a command to type.
	Hint string `json:"hint,omitempty"`
	// Errors says what is wrong field by field.
	Errors []hardware.FieldError `json:"errors,omitempty"`
	// Revision is the record's current one, for a conflict.
	Revision uint64 `json:"revision,omitempty"`
	// Against counts, for no-candidate, what speaks against how many machines.
	Against map[hardware.Against]int `json:"against,omitempty"`
	// Results has what apply did until then, document by document.
	Results []Applied `json:"results,omitempty"`
}

// Error is the detail, or the title where there is none.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}
