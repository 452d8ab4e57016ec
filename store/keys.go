package store

import (
	"net/netip"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// The keys. Values are JSON; those marked * are sealed.
//
//	hardware/<uid>/spec *          hardware.Hardware without status and facts
//	hardware/<uid>/machine         workflow.Machine: lifecycle state and boot
//	hardware/<uid>/facts           hardware.Facts
//	index/hardware/<name>          uid
//	index/mac/<mac>                uid
//	index/address/<address>        uid
//	subnet/<name>                  hardware.Subnet
//	template/<name> *              workflow.Template (a default may be a secret)
//	rule/<name> *                  hardware.Rule (a parameter may be a secret)
//	image/<name>                   workflow.Image without status
//	imagestatus/<uid>              workflow.ImageStatus
//	workflow/<name> *              workflow.Workflow
//	claim/<id>                     hardware.Claim, held or ended
//	active/<uid>                   names of the workflows of that Hardware that have not ended
//	token/<name> *                 hardware.Token with the hash of its secret
//	tokenuse/<name>                when it was last used
//	event/<id>                     workflow.Event
//	timeline/<uid>/<boot>/<id>     nothing; <boot> is "-" outside of boots
//	guard/subnets                  nothing; written with every Subnet, so that two that overlap conflict
//	meta/seal *                    proves that the key file is the right one
//	secret/<name> *                made once
//
// Names, uids and ids hold no slash, so the parts of a key cannot run together.
const (
	prefixHardware = "hardware/"
	prefixSubnet   = "subnet/"
	prefixTemplate = "template/"
	prefixRule     = "rule/"
	prefixImage    = "image/"
	prefixWorkflow = "workflow/"
	prefixClaim    = "claim/"
	prefixActive   = "active/"
	prefixToken    = "token/"
	prefixTokenUse = "tokenuse/"
	prefixEvent    = "event/"
	prefixTimeline = "timeline/"
	prefixSecret   = "secret/"
	keySubnets     = "guard/subnets"
	keySealCheck   = "meta/seal"

	partSpec    = "spec"
	partMachine = "machine"
	partFacts   = "facts"
	noBoot      = "-"
)

func keySpec(uid string) string    { return prefixHardware + part(uid) + "/" + partSpec }
func keyMachine(uid string) string { return prefixHardware + part(uid) + "/" + partMachine }
func keyFacts(uid string) string   { return prefixHardware + part(uid) + "/" + partFacts }

func keyName(name string) string            { return "index/hardware/" + part(name) }
func keyMAC(m hardware.MAC) string          { return "index/mac/" + m.String() }
func keyAddress(a netip.Addr) string        { return "index/address/" + a.String() }
func keyWorkflow(name string) string        { return prefixWorkflow + part(name) }
func keyClaim(id string) string             { return prefixClaim + part(id) }
func keyActive(uid string) string           { return prefixActive + part(uid) }
func keyEvent(id string) string             { return prefixEvent + part(id) }
func keySecret(name string) string          { return prefixSecret + part(name) }
func keyTimeline(uid string) string         { return prefixTimeline + part(uid) + "/" }
func keyBoot(uid, boot string) string       { return keyTimeline(uid) + bootPart(boot) + "/" }
func keyInBoot(uid, boot, id string) string { return keyBoot(uid, boot) + part(id) }

func bootPart(boot string) string {
	if boot == "" {
		return noBoot
	}
	return part(boot)
}

// part makes s one part of a key, whatever it holds: a slash, a percent sign and
// what is not printable ASCII become %xx. Parts that are names or ULIDs stay as
// they are.
func part(s string) string {
	plain := true
	for i := range len(s) {
		if !plainByte(s[i]) {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plainByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

func plainByte(c byte) bool { return c > ' ' && c <= '~' && c != '/' && c != '%' }

// splitHardware takes apart a key below prefixHardware.
func splitHardware(key string) (uid, what string, ok bool) {
	rest, ok := strings.CutPrefix(key, prefixHardware)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}
