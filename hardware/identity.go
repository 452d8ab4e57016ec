package hardware

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Identity is what a machine is known by besides its MACs: the UUID and the serial
// numbers of SMBIOS (DMTF DSP0134, structures 1 to 3). Empty fields say nothing.
type Identity struct {
	UUID    string `json:"uuid,omitempty"`
	Serial  string `json:"serial,omitempty"`
	Board   string `json:"board,omitempty"`
	Chassis string `json:"chassis,omitempty"`
}

// Identity is what the facts say of it, without what vendors leave unset.
func (f *Facts) Identity() Identity {
	if f == nil {
		return Identity{}
	}
	return Identity{UUID: realUUID(f.UUID), Serial: Unfilled(f.Serial), Board: Unfilled(f.BoardSerial), Chassis: Unfilled(f.ChassisSerial)}
}

// Unfilled is s without white space at its ends, and empty where s is one of the many
// ways in which vendors say that they did not fill a field of SMBIOS in.
func Unfilled(s string) string {
	s = strings.TrimSpace(s)
	word := strings.ToLower(strings.Trim(s, ". "))
	switch word {
	case "to be filled by o.e.m", "to be filled by oem", "default string", "default", "not specified", "not applicable", "not available",
		"none", "n/a", "na", "null", "unknown", "undefined", "invalid", "empty", "oem", "o.e.m", "serial", "serial number",
		"system manufacturer", "system product name", "system serial number", "system version", "base board serial number",
		"board serial number", "chassis serial number", "no asset tag", "no asset information", "asset tag", "asset-1234567890",
		"0123456789", "1234567890", "123456789", "12345678", "01234567890123456789":
		return ""
	}
	if len(word) < 2 || strings.Count(word, word[:1]) == len(word) {
		return "" // 0000000, xxxxxxx
	}
	return s
}

// realUUID is a UUID in lower case; empty where s is none, or one that whole series of
// boards share.
func realUUID(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if len(s) != 36 {
		return ""
	}
	for i, r := range s {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (r == '-') || (!dash && !strings.ContainsRune("0123456789abcdef", r)) {
			return ""
		}
	}
	switch s {
	case "03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009", // AMI's example
		"12345678-1234-5678-90ab-cddeefaabbcc", "78563412-3412-7856-90ab-cddeefaabbcc",
		"4c4c4544-0000-2010-8020-80c04f202020": // a Dell without its service tag
		return ""
	}
	// all bits 0: there is none; all bits 1: none was set (DSP0134, 7.2.1)
	if digits := strings.ReplaceAll(s, "-", ""); strings.Count(digits, digits[:2]) == 16 {
		return ""
	}
	return s
}

// swapped is a UUID with its first three fields the other way round: SMBIOS 2.6 said
// how they are to be read, and an update of the firmware can turn them.
func swapped(u string) string {
	if len(u) != 36 {
		return u
	}
	return u[6:8] + u[4:6] + u[2:4] + u[:2] + "-" + u[11:13] + u[9:11] + "-" + u[16:18] + u[14:16] + u[18:]
}

// sameUUID reports whether two UUIDs are one; an empty one is like any.
func sameUUID(a, b string) bool { return a == "" || b == "" || a == b || a == swapped(b) }

func sameSerial(a, b string) bool { return a == "" || b == "" || strings.EqualFold(a, b) }

// Keys are the words by which machines with the same identity are found: equal where
// two have a UUID or a serial number in common.
func (i Identity) Keys() []string {
	var out []string
	for _, k := range []string{i.UUID, strings.ToLower(i.Serial)} {
		if k != "" {
			out = append(out, k)
		}
	}
	return out
}

// Conflicts is what speaks against the machine of the record h being the one that
// reports f at now. h has the facts and the conflicts of before; others are the
// machines that share a MAC or one of the Keys with f, h itself may be among them. It
// has at most one of each kind; one that was there before keeps its age, and what a
// human said of it.
func Conflicts(h *Hardware, f *Facts, others []*Hardware, now time.Time) []IdentityConflict {
	var out []IdentityConflict
	id := f.Identity()
	twins := func(kind ConflictKind, what string, same func(o *Hardware) bool) {
		var names []string
		for _, o := range others {
			if o.Meta.UID != h.Meta.UID && same(o) {
				names = append(names, o.Meta.Name)
			}
		}
		if len(names) == 0 {
			return
		}
		slices.Sort(names)
		names = slices.Compact(names)
		out = append(out, IdentityConflict{Kind: kind, With: names[0], Detail: what + " " + some(names)})
	}
	twins(ConflictUUID, fmt.Sprintf("its UUID %s is also that of", id.UUID), func(o *Hardware) bool {
		return id.UUID != "" && o.Facts.Identity().UUID == id.UUID
	})
	twins(ConflictSerial, fmt.Sprintf("its serial number %s is also that of", id.Serial), func(o *Hardware) bool {
		return id.Serial != "" && strings.EqualFold(o.Facts.Identity().Serial, id.Serial) && strings.EqualFold(o.Facts.Vendor, f.Vendor)
	})
	for _, n := range f.NICs {
		if len(out) > 0 && out[len(out)-1].Kind == ConflictMAC {
			break
		}
		twins(ConflictMAC, fmt.Sprintf("its NIC %s is in the record of", n.MAC), func(o *Hardware) bool {
			_, ok := o.NIC(n.MAC)
			return ok
		})
	}
	if c, ok := replaced(h, id); ok {
		out = append(out, c)
	}
	if c, ok := nicChanged(h, f); ok {
		out = append(out, c)
	}
	for i := range out {
		out[i].Detail = PlainText(out[i].Detail, 256)
		out[i].Since = now
		if at := slices.IndexFunc(h.Status.Conflicts, out[i].Is); at >= 0 {
			out[i].Since, out[i].Accepted = h.Status.Conflicts[at].Since, h.Status.Conflicts[at].Accepted
		}
	}
	return out
}

// Is reports whether c is the conflict o, seen again.
func (c IdentityConflict) Is(o IdentityConflict) bool {
	return c.Kind == o.Kind && c.With == o.With && c.Detail == o.Detail
}

// replaced compares with what the machine was known by: before the first report that
// did not agree, not since.
func replaced(h *Hardware, id Identity) (IdentityConflict, bool) {
	was := h.Facts.Identity()
	for _, c := range h.Status.Conflicts {
		if c.Kind == ConflictReplaced && c.Was != nil {
			was = *c.Was
		}
	}
	var differs, agrees []string
	for _, p := range []struct {
		what, is, was string
		same          bool
	}{
		{"UUID", id.UUID, was.UUID, sameUUID(id.UUID, was.UUID)},
		{"serial number", id.Serial, was.Serial, sameSerial(id.Serial, was.Serial)},
		{"board serial", id.Board, was.Board, sameSerial(id.Board, was.Board)},
		{"chassis serial", id.Chassis, was.Chassis, sameSerial(id.Chassis, was.Chassis)},
	} {
		switch {
		case !p.same:
			differs = append(differs, fmt.Sprintf("its %s is %s, was %s", p.what, short(p.is), short(p.was)))
		case p.is != "" && p.was != "":
			agrees = append(agrees, p.what)
		}
	}
	if sameUUID(id.UUID, was.UUID) && sameSerial(id.Serial, was.Serial) {
		return IdentityConflict{}, false // a board or a case can be changed in a machine
	}
	detail := strings.Join(differs, "; ")
	if len(agrees) > 0 {
		detail += "; the same: " + strings.Join(agrees, ", ")
	}
	return IdentityConflict{Kind: ConflictReplaced, Detail: detail, Was: &was}, true
}

// nicChanged finds NICs of the record that are not in the machine.
func nicChanged(h *Hardware, f *Facts) (IdentityConflict, bool) {
	var gone, extra []string
	for _, n := range h.Spec.Interfaces {
		if !slices.ContainsFunc(f.NICs, func(x NICFact) bool { return x.MAC == n.MAC || x.Permanent == n.MAC }) {
			gone = append(gone, n.MAC.String())
		}
	}
	if len(gone) == 0 || len(f.NICs) == 0 {
		return IdentityConflict{}, false
	}
	for _, n := range f.NICs {
		_, a := h.NIC(n.MAC)
		_, b := h.NIC(n.Permanent)
		if !a && !b {
			extra = append(extra, n.MAC.String())
		}
	}
	slices.Sort(gone)
	slices.Sort(extra)
	detail := "not in the machine: NIC " + some(gone)
	if len(extra) > 0 {
		detail += "; in the machine and not in the record: NIC " + some(extra)
	}
	return IdentityConflict{Kind: ConflictNIC, Detail: detail}, true
}

// Disputed reports whether something speaks against the machine being the one of its
// record that no human has answered.
func (s *Status) Disputed() bool {
	return slices.ContainsFunc(s.Conflicts, func(c IdentityConflict) bool { return c.Accepted.IsZero() })
}

// Vouch notes that a human says that the machine is the right one, and reports whether
// that was in doubt. What it was known by before is forgotten.
func (s *Status) Vouch(now time.Time) bool {
	if !s.Disputed() {
		return false
	}
	s.Conflicts = slices.DeleteFunc(slices.Clone(s.Conflicts), func(c IdentityConflict) bool { return c.Kind == ConflictReplaced })
	for i := range s.Conflicts {
		s.Conflicts[i].Accepted = cmp.Or(s.Conflicts[i].Accepted, now)
	}
	return true
}

// some names a few of many.
func some(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// short is a text of a machine as a sentence can bear it.
func short(s string) string { return PlainText(s, 40) }
