package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

func leaseRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/leases", Does: "List the DHCP leases, those of a subnet, MAC, machine or state; a claimer's are those of the machines that it holds", Role: RoleViewer, Claimer: true, Out: api.List[api.Lease]{}, Query: []string{"subnet", "mac", "machine", "state"}, handle: (*server).leases},
		{Method: http.MethodDelete, Path: "/leases/{subnet}/{client}", Does: "Take back the lease, or end the quarantine, of a MAC or an address", Role: RoleOperator, Out: api.Lease{}, handle: (*server).revokeLease},
	}
}

func (s *server) leases(w http.ResponseWriter, r *http.Request) error {
	keep, err := leaseFilter(r.URL.Query())
	if err != nil {
		return err
	}
	all, err := s.allLeases(r.Context())
	if err != nil {
		return err
	}
	theirs := s.foreignLeases(r.Context())
	all = slices.DeleteFunc(all, func(l api.Lease) bool { return !keep(&l) || theirs(&l) })
	return writeJSON(w, http.StatusOK, api.List[api.Lease]{APIVersion: api.Version, Kind: "LeaseList", Items: all})
}

// foreignLeases says which leases are none of the caller's business: a claimer learns the
// addresses of the machines that it holds, and of no others.
func (s *server) foreignLeases(ctx context.Context) func(*api.Lease) bool {
	caller := CallerFrom(ctx)
	if !caller.Limited() {
		return func(*api.Lease) bool { return false }
	}
	own := map[string]bool{}
	for _, h := range s.Records.HardwareIndex() {
		own[h.Meta.Name] = caller.holds(h)
	}
	return func(l *api.Lease) bool { return !own[l.Machine] }
}

// allLeases are what DHCP has confirmed, with the machines' names.
func (s *server) allLeases(ctx context.Context) ([]api.Lease, error) {
	all, err := s.Records.ListLeases(ctx)
	if err != nil {
		return nil, err
	}
	names := map[hardware.MAC]string{}
	for _, h := range s.Records.HardwareIndex() {
		for _, n := range h.Spec.Interfaces {
			names[n.MAC] = h.Meta.Name
		}
	}
	now := s.Now()
	out := make([]api.Lease, len(all))
	for i, l := range all {
		out[i] = api.Lease{Lease: l, State: l.State(now), Machine: names[l.MAC]}
	}
	return out, nil
}

func leaseFilter(q url.Values) (func(*api.Lease) bool, error) {
	var mac hardware.MAC
	if v := q.Get("mac"); v != "" {
		var err error
		if mac, err = hardware.ParseMAC(v); err != nil {
			return nil, badRequest("", "mac: %v", err)
		}
	}
	var states []hardware.LeaseState
	for v := range strings.SplitSeq(q.Get("state"), ",") {
		state := hardware.LeaseState(v)
		if v == "" {
			continue
		}
		if !slices.Contains(hardware.LeaseStates(), state) {
			return nil, badRequest("active, expired, released or quarantined; several with commas", "%.40q is no state of a lease", v)
		}
		states = append(states, state)
	}
	subnet, machine := q.Get("subnet"), q.Get("machine")
	return func(l *api.Lease) bool {
		return (subnet == "" || l.Subnet == subnet) && (mac.IsZero() || l.MAC == mac) && (machine == "" || l.Machine == machine) &&
			(states == nil || slices.Contains(states, l.State))
	}, nil
}

// revokeLease takes back what a client has, or makes an address in quarantine free
// again. The client is named by its MAC or by the address.
func (s *server) revokeLease(w http.ResponseWriter, r *http.Request) error {
	if err := queryKnown(r.URL.Query()); err != nil {
		return err
	}
	if s.Revoke == nil {
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Detail: "leases cannot be taken back here"}
	}
	subnet, client := chi.URLParam(r, "subnet"), chi.URLParam(r, "client")
	if plain, err := url.PathUnescape(client); err == nil {
		client = plain // the colons of a MAC
	}
	all, err := s.allLeases(r.Context())
	if err != nil {
		return err
	}
	l, err := pickLease(all, subnet, client)
	if err != nil {
		return err
	}
	if h, ok := s.reserved(l); ok {
		return &api.Problem{
			Status: http.StatusConflict, Code: api.CodeInUse,
			Detail: fmt.Sprintf("%v is reserved for %q: it would get the address again", l.Addr, h),
			Hint:   "take the address out of spec.interfaces first: rackstrap hardware edit " + h,
		}
	}
	if _, ok, err := s.Revoke(r.Context(), l.Subnet, l.MAC); err != nil {
		return err
	} else if !ok {
		return noLease(subnet, client)
	}
	return writeJSON(w, http.StatusOK, l)
}

// pickLease finds the lease of a MAC, or of an address: the one that runs, where
// another client had it before.
func pickLease(all []api.Lease, subnet, client string) (*api.Lease, error) {
	mac, macErr := hardware.ParseMAC(client)
	addr, addrErr := netip.ParseAddr(client)
	if macErr != nil && addrErr != nil {
		return nil, badRequest("for example 52:54:00:12:34:56, or 10.0.0.100", "%.60q is neither a MAC nor an address", client)
	}
	var found *api.Lease
	for i, l := range all {
		if l.Subnet != subnet || (macErr == nil && l.MAC != mac) || (macErr != nil && l.Addr != addr) {
			continue
		}
		if found == nil || l.Expires.After(found.Expires) {
			found = &all[i]
		}
	}
	if found == nil {
		return nil, noLease(subnet, client)
	}
	return found, nil
}

func noLease(subnet, client string) error {
	return &api.Problem{
		Status: http.StatusNotFound, Code: api.CodeNotFound,
		Detail: fmt.Sprintf("%s has no lease in subnet %.60q", client, subnet), Hint: "list them: rackstrap lease list",
	}
}

// reserved names the machine whose record gives it the address of its lease.
func (s *server) reserved(l *api.Lease) (string, bool) {
	if !l.Reservation {
		return "", false
	}
	for _, h := range s.Records.HardwareIndex() {
		if n, ok := h.NIC(l.MAC); ok {
			return h.Meta.Name, slices.ContainsFunc(n.Addresses, func(p netip.Prefix) bool { return p.Addr() == l.Addr })
		}
	}
	return "", false
}
