package bmc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Version is of the calls that the webhook driver makes.
const Version = 1

// SignatureHeader carries a call's signature: t=<Unix seconds>,v1=<hex>, where v1
// is HMAC-SHA256 with the secret over the digits of t, a dot and the body.
const SignatureHeader = "X-Rackstrap-Signature"

// MaxSkew is how far a receiver lets the time of a signature be from its own. It
// remembers ids for twice as long, so that a call that somebody recorded is either
// known or too old.
const MaxSkew = 5 * time.Minute

// MaxCall is the longest body of a call, in bytes.
const MaxCall = 64 << 10

// Action is what a call asks for.
type Action string

// The actions.
const (
	ActionOn       Action = "on"
	ActionOff      Action = "off"
	ActionCycle    Action = "cycle"
	ActionStatus   Action = "status"
	ActionNextBoot Action = "next-boot"
)

// Call is what the webhook driver sends.
type Call struct {
	Version int `json:"version"`
	// ID is a ULID. A repeat after a lost answer has the same one, and the same body.
	ID string `json:"id"`
	// Time is when it was first asked.
	Time    time.Time `json:"time"`
	Machine Machine   `json:"machine"`
	Action  Action    `json:"action"`
	// NextBoot, of next-boot only, is network or disk.
	NextBoot Device `json:"nextBoot,omitempty"`
	// Firmware is uefi or bios where the machine was seen from inside.
	Firmware string `json:"firmware,omitempty"`
}

// Machine says which machine is meant, in all the words that a receiver may know
// it by.
type Machine struct {
	Name     string            `json:"name"`
	UID      string            `json:"uid"`
	MACs     []hardware.MAC    `json:"macs"`
	Rack     string            `json:"rack,omitempty"`
	Position string            `json:"position,omitempty"`
	AssetTag string            `json:"assetTag,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// Reply is what a receiver answers with 200 or 202. Further fields are ignored.
type Reply struct {
	// Power is on, off or unknown; empty is unknown.
	Power   string `json:"power,omitempty"`
	Message string `json:"message,omitempty"`
}

// Why a signature is not accepted.
var (
	// ErrSignature is returned for a signature that is missing, malformed or made
	// with another secret or body.
	ErrSignature = errors.New("the signature is not of this body and this secret")
	// ErrClock is returned for a good signature that is too old, or from the future.
	ErrClock = errors.New("the time of the signature is more than 5 minutes off")
)

// Sign returns the value of SignatureHeader.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac(secret, t, body))
}

func mac(secret, t string, body []byte) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(t + "."))
	m.Write(body)
	return m.Sum(nil)
}

// Verify checks the value of SignatureHeader, for receivers. It returns ErrSignature
// or ErrClock; the time is judged only where the signature is good. Of several v1
// one has to fit, so that a secret can be changed without a gap.
func Verify(secret, signature string, body []byte, now time.Time) error {
	var t string
	var sums []string
	for part := range strings.SplitSeq(signature, ",") {
		switch k, v, _ := strings.Cut(strings.TrimSpace(part), "="); k {
		case "t":
			t = v
		case "v1":
			sums = append(sums, v)
		}
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil || secret == "" {
		return ErrSignature
	}
	good, want := false, mac(secret, t, body)
	for _, s := range sums[:min(len(sums), 4)] {
		sum, err := hex.DecodeString(s)
		good = good || (err == nil && hmac.Equal(sum, want))
	}
	if !good {
		return ErrSignature
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > MaxSkew || off < -MaxSkew {
		return fmt.Errorf("%w (by %v: compare the clocks of the appliance and the receiver)", ErrClock, off.Round(time.Second))
	}
	return nil
}
