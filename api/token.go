package api

import (
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// KindToken is what a token's `kind:` says. It is none of Kinds: apply makes no
// tokens, because each is shown once.
const KindToken Kind = "Token"

// NewToken is the body of POST /tokens.
type NewToken struct {
	APIVersion string       `json:"apiVersion,omitempty"`
	Kind       Kind         `json:"kind,omitempty"`
	Metadata   NewTokenMeta `json:"metadata"`
	Spec       NewTokenSpec `json:"spec"`
}

// NewTokenMeta is what is chosen of a token's metadata.
type NewTokenMeta struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// NewTokenSpec says what the token shall be good for.
type NewTokenSpec struct {
	Role hardware.Role `json:"role"`
	// OwnerPrefix and Selector limit a claimer; see hardware.TokenSpec.
	OwnerPrefix string `json:"ownerPrefix,omitempty"`
	Selector    string `json:"selector,omitempty"`
	// Expires is a time from now (90d, 12h), a time of day (RFC 3339), or never; a
	// year where empty.
	Expires string `json:"expires,omitempty"`
}

// CreatedToken is the answer, the only place that ever has the secret.
type CreatedToken struct {
	hardware.Token
	Secret string `json:"secret"`
	// Fingerprint is the SHA-256 of the certificate of the HTTPS listener, in hex, for
	// those who will use the token; empty where there is no such listener.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// WhoAmI says what the caller may do.
type WhoAmI struct {
	// Name is socket, or the token's; of a session that of the token that signed in.
	Name string        `json:"name"`
	Role hardware.Role `json:"role"`
	// OwnerPrefix and Selector limit a claimer.
	OwnerPrefix string `json:"ownerPrefix,omitempty"`
	Selector    string `json:"selector,omitempty"`
	// Expires is when the token ends, or the session; zero is never.
	Expires time.Time `json:"expires,omitzero"`
	// Session: the caller showed the cookie of a session, not a token.
	Session bool `json:"session,omitempty"`
}

// SignIn is the body of POST /session. The answer's cookie is shown instead of the
// token from then on.
type SignIn struct {
	Token string `json:"token" secret:"true"`
}
