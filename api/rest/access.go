package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Role is the least that a caller must be to use a route.
type Role = hardware.Role

// The roles; see hardware.Role.
const (
	RoleViewer   = hardware.RoleViewer
	RoleOperator = hardware.RoleOperator
	RoleAdmin    = hardware.RoleAdmin
	RoleClaimer  = hardware.RoleClaimer
)

// Caller is who makes a request. The zero Caller may do nothing.
type Caller struct {
	// Name is hardware.ReservedCaller on the unix socket, else the token's.
	Name string
	Role Role
	// OwnerPrefix and Selector limit a claimer.
	OwnerPrefix string
	Selector    hardware.Selector
	// Expires is when the token or the session ends; zero is never.
	Expires time.Time
	// session is the name of the session's record; empty where a token is shown.
	session string
}

// socketCaller is whoever can open the unix socket.
func socketCaller() Caller { return Caller{Name: hardware.ReservedCaller, Role: RoleAdmin} }

type callerKey struct{}

func withCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom is who made the request of ctx; the zero Caller where nobody did.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Limited reports whether the caller is a claimer, which sees and acts on some
// machines only.
func (c Caller) Limited() bool { return c.Role == RoleClaimer }

// Owns reports whether what belongs to owner is the caller's.
func (c Caller) Owns(owner string) bool {
	if c.Limited() {
		return hardware.OwnerHas(c.OwnerPrefix, owner)
	}
	return c.Role.Includes(RoleOperator)
}

// SeesOwner reports whether the caller sees the claims of owner.
func (c Caller) SeesOwner(owner string) bool {
	return c.Owns(owner) || c.Role.Includes(RoleViewer)
}

// MayClaim says why the caller may not make, change or end a claim of owner, or
// nil. For a claimer that looks for a machine, Selector limits it besides: see Sees.
func (c Caller) MayClaim(owner string) error {
	switch {
	case c.Owns(owner):
		return nil
	case c.Limited():
		return forbidden(
			fmt.Sprintf("use an owner that begins with %s", c.OwnerPrefix),
			"the token %q claims for owners within %q, and not for %q", c.Name, c.OwnerPrefix, hardware.PlainText(owner, 80),
		)
	}
	return c.lacks(RoleOperator, RoleClaimer)
}

// Sees reports whether the machine exists for the caller. What it does not see is
// not found, and in no list.
func (c Caller) Sees(h *hardware.Hardware) bool {
	if !c.Limited() {
		return c.Role.Includes(RoleViewer)
	}
	return c.Selector.Matches(h.Meta.Labels) || c.holds(h)
}

func (c Caller) holds(h *hardware.Hardware) bool {
	return h.Status.Claim != nil && c.Owns(h.Status.Claim.Owner)
}

// Follows reports whether the caller sees what happens to the machine. A claimer
// does not follow those that another has.
func (c Caller) Follows(h *hardware.Hardware) bool {
	return c.Sees(h) && (!c.Limited() || h.Status.Claim == nil || c.holds(h))
}

// MayAct says why the caller may not change the machine or what it does, or nil: a
// claimer must hold it by a claim. Ask for machines that the caller sees; others
// are not found.
func (c Caller) MayAct(h *hardware.Hardware) error {
	switch {
	case c.Role.Includes(RoleOperator):
		return nil
	case !c.Limited():
		return c.lacks(RoleOperator)
	case c.holds(h):
		return nil
	}
	return forbidden(
		"claim it first: rackstrap claim --help",
		"the token %q acts only on machines that it holds by a claim of an owner within %q; %q is none", c.Name, c.OwnerPrefix, h.Meta.Name,
	)
}

// mayUse says why the caller may not use the route at all, or nil.
func (c Caller) mayUse(route Route) error {
	if route.Role == "" || c.Role.Includes(route.Role) || (c.Limited() && route.Claimer) {
		return nil
	}
	return c.lacks(route.Role)
}

func (c Caller) lacks(need ...Role) error {
	words := string(need[0])
	for _, r := range need[1:] {
		words += " or " + string(r)
	}
	return forbidden(
		fmt.Sprintf("ask an administrator for a token: rackstrap token create NAME --role %s", need[0]),
		"this needs the role %s, and the token %q has the role %s", words, c.Name, c.Role,
	)
}

// followsMachine reports whether the caller of ctx follows the machine of that name,
// if it is still the one with that uid.
func followsMachine(ctx context.Context, records HardwareRecords, name, uid string) (bool, error) {
	c := CallerFrom(ctx)
	if !c.Limited() {
		return c.Role.Includes(RoleViewer), nil
	}
	h, err := records.HardwareByName(ctx, name)
	if errors.Is(err, workflow.ErrNotFound) {
		return false, nil
	}
	return err == nil && h.Meta.UID == uid && c.Follows(h), err
}

// forbidden is a request that the caller may not make.
func forbidden(hint, format string, args ...any) error {
	return &api.Problem{Status: http.StatusForbidden, Code: api.CodeForbidden, Detail: fmt.Sprintf(format, args...), Hint: hint}
}
