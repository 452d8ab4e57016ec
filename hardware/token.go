package hardware

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Role is what the holder of a token may do.
type Role string

// The roles. Viewer, operator and admin contain each other in this order. A claimer
// stands beside them: it works with the machines that it claims, and sees those
// that it could.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
	RoleClaimer  Role = "claimer"
)

// Roles lists them.
func Roles() []Role { return []Role{RoleAdmin, RoleOperator, RoleViewer, RoleClaimer} }

// Includes reports whether whoever has r may do what needs the role other.
func (r Role) Includes(other Role) bool {
	order := []Role{RoleViewer, RoleOperator, RoleAdmin}
	have, need := slices.Index(order, r), slices.Index(order, other)
	return have >= 0 && need >= 0 && have >= need
}

// Token lets its holder use the API over the network. The secret itself is nowhere.
type Token struct {
	Meta   Meta        `json:"metadata"`
	Spec   TokenSpec   `json:"spec"`
	Status TokenStatus `json:"status,omitzero"`
}

// TokenSpec says what a token is good for. It is written once.
type TokenSpec struct {
	Role Role `json:"role"`
	// OwnerPrefix, of a claimer, is what the owners of its claims begin with.
	OwnerPrefix string `json:"ownerPrefix,omitempty"`
	// Selector, of a claimer, picks the machines that it sees and can claim; all
	// where empty.
	Selector string `json:"selector,omitempty"`
	// Expires is when the token ends; never where zero.
	Expires time.Time `json:"expires,omitzero"`
	// SessionOf names the token with which somebody signed in, of a session in a browser;
	// SessionOfUID is that token's uid. A session has the rights of its token and ends
	// with it. It is shown as a cookie only.
	SessionOf    string `json:"sessionOf,omitempty"`
	SessionOfUID string `json:"sessionOfUID,omitempty"`
	// SessionFrom is the address from which somebody signed in, of a session.
	SessionFrom netip.Addr `json:"sessionFrom,omitzero"`
}

// TokenStatus is what is known of a token.
type TokenStatus struct {
	// ID is the part of the secret that names it and may be shown.
	ID string `json:"id,omitempty"`
	// LastUsed is exact to an hour; zero where it was never used.
	LastUsed time.Time `json:"lastUsed,omitzero"`
}

// MaxOwner is the longest owner of a claim, and the longest prefix, in bytes.
const MaxOwner = 253

// Expired reports whether the token has ended at that time.
func (t *Token) Expired(now time.Time) bool {
	return !t.Spec.Expires.IsZero() && !now.Before(t.Spec.Expires)
}

// Validate says everything that is wrong with the record, as an *Invalid.
func (t *Token) Validate() error {
	c := NewChecker("token", t.Meta.Name)
	c.Meta(t.Meta)
	s := t.Spec
	if t.Meta.Name == ReservedCaller {
		c.Addf("metadata.name", "%q is how the unix socket is called in events (choose another name)", t.Meta.Name)
	}
	if !slices.Contains(Roles(), s.Role) {
		c.Addf("spec.role", "%.40q is not known (admin, operator, viewer or claimer)", s.Role)
	}
	if _, err := ParseSelector(s.Selector); err != nil {
		c.Add("spec.selector", err)
	}
	if s.Role == RoleClaimer {
		if s.OwnerPrefix == "" {
			c.Addf("spec.ownerPrefix", "is missing (write what the owners of its claims begin with, for example capi/prod/)")
		}
	} else if s.OwnerPrefix != "" || s.Selector != "" {
		c.Addf("spec", "ownerPrefix and selector limit a claimer, and the role is %.40q (set role: claimer, or leave them out)", s.Role)
	}
	if (s.SessionOf == "") != (s.SessionOfUID == "") || s.SessionOf != "" && s.Expires.IsZero() {
		c.Addf("spec.sessionOf", "of a session goes with sessionOfUID and expires")
	}
	if s.SessionFrom.IsValid() && s.SessionOf == "" {
		c.Addf("spec.sessionFrom", "is of a session, and the record is none")
	}
	if len(s.OwnerPrefix) > MaxOwner || PlainText(s.OwnerPrefix, MaxOwner) != s.OwnerPrefix {
		c.Addf("spec.ownerPrefix", "%.40q must be plain text of at most %d bytes", s.OwnerPrefix, MaxOwner)
	}
	return c.Err()
}

// ReservedCaller is who asks over the unix socket, in events.
const ReservedCaller = "socket"

// OwnerSeparators are what a prefix may end with to have all that begin with it.
const OwnerSeparators = "/-:._@"

// OwnerHas reports whether an owner lies within a prefix. A prefix ends where a
// word does: capi/prod has capi/prod and capi/prod/web-1, and not capi/production.
// One that ends with a separator (OwnerSeparators) has all that begin with it.
func OwnerHas(prefix, owner string) bool {
	rest, ok := strings.CutPrefix(owner, prefix)
	if !ok || prefix == "" {
		return false
	}
	return rest == "" || rest[0] == '/' || strings.ContainsRune(OwnerSeparators, rune(prefix[len(prefix)-1]))
}
