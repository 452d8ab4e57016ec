package api

import "slices"

// codes has what every Code means, for those who have to act on it.
func codes() map[Code]string {
	return map[Code]string{
		CodeBadRequest:       "The request cannot be read: a parameter, a header, or a body that is neither YAML nor JSON. The same again fails again.",
		CodeInvalid:          "The body can be read, and something in it is wrong; errors says what, field by field, and how to write it.",
		CodeNotFound:         "There is no record of that name, or the caller does not see it.",
		CodeNoRoute:          "There is nothing at that path.",
		CodeMethod:           "The path is right and the method is not; Allow has those that are.",
		CodeExists:           "A record of that name exists already.",
		CodeConflict:         "Somebody changed the record meanwhile, or it is not in a state that allows this. Read it again, then decide anew; revision is its present one.",
		CodeInUse:            "Something else needs the record; the detail names it.",
		CodeTooLarge:         "The body, or one record in it, is larger than is kept.",
		CodeMediaType:        "The body is of a type that is not read here.",
		CodeCompacted:        "The cursor is older than the event log. List again, then go on from the new cursor.",
		CodeStorageFull:      "The disk, or the quota for images, is used up. Nothing was written.",
		CodeUnavailable:      "The daemon cannot do it now, or was built or configured without it. Trying again later may help.",
		CodeInternal:         "Something broke that nobody planned for; the daemon's log has the cause.",
		CodePowerFailed:      "The machine's power controller refused, or did not answer.",
		CodePartiallyApplied: "Some documents of apply were written and others were not; results says which. Correct them and apply everything again.",
		CodeNoCandidate:      "No machine can be given to the claim now; the detail counts what speaks against how many, and explain says it of each.",
		CodeClaimEnded:       "The claim of that id has ended. A machine is claimed anew under a new id.",
		CodeTokenMissing:     "The request has no Authorization header.",
		CodeTokenMalformed:   "The Authorization header holds no token: it must be Bearer and the whole of what token create printed.",
		CodeTokenUnknown:     "No such token: it was revoked, or belongs to another installation.",
		CodeTokenExpired:     "The token was good until its end, which has passed.",
		CodeForbidden:        "The caller is known and may not do this: its role does not reach, or the machine or claim is another's.",
		CodeRateLimited:      "Too many wrong tokens came from this address. Retry-After says how long to wait; good tokens are answered all the while.",
	}
}

// Codes lists the closed set, sorted.
func Codes() []Code {
	var out []Code
	for c := range codes() {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}

// Means says what the code means and what to do about it.
func (c Code) Means() string { return codes()[c] }
