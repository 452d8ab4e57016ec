package store

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Errors of Seal.Open and of opening a DB.
var (
	// ErrWrongKey: the value was sealed with another key file.
	ErrWrongKey = errors.New("sealed with another key")
	// ErrDamaged: the value is not what was sealed under that key of the store.
	ErrDamaged = errors.New("sealed value is damaged")
)

// Seal encrypts whole values with AES-256-GCM. Each key of the store has an
// encryption key of its own, derived from the key file, so that the number of
// random nonces that are safe under one key (NIST SP 800-38D section 8.3: 2^32)
// is never near.
type Seal struct {
	secret [32]byte
	id     [idSize]byte
}

// A sealed value is the version, the id of the key file, the nonce, then the
// ciphertext with its tag.
const (
	sealVersion  = 1
	idSize       = 8
	nonceSize    = 12
	tagSize      = 16
	sealOverhead = 1 + idSize + nonceSize + tagSize
)

// NewSeal makes a Seal from 32 secret bytes.
func NewSeal(secret [32]byte) *Seal {
	s := &Seal{secret: secret}
	copy(s.id[:], s.derive("rackstrap seal key id"))
	return s
}

// ID names the key in messages; it tells nothing of it.
func (s *Seal) ID() string { return hex.EncodeToString(s.id[:]) }

func (s *Seal) derive(label string) []byte {
	m := hmac.New(sha256.New, s.secret[:])
	m.Write([]byte(label))
	return m.Sum(nil)
}

func (s *Seal) aead(key string) cipher.AEAD {
	block, err := aes.NewCipher(s.derive("rackstrap seal value\x00" + key))
	if err != nil {
		panic("store: AES-256 refuses 32 bytes: " + err.Error())
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic("store: GCM refuses AES: " + err.Error())
	}
	return gcm
}

// Seal encrypts plain for the given key of the store; it opens under no other.
func (s *Seal) Seal(key string, plain []byte) []byte {
	out := make([]byte, 1+idSize+nonceSize, sealOverhead+len(plain))
	out[0] = sealVersion
	copy(out[1:], s.id[:])
	nonce := out[1+idSize:]
	_, _ = rand.Read(nonce) // never fails since Go 1.24
	return s.aead(key).Seal(out, nonce, plain, []byte(key))
}

// Open decrypts what Seal made for that key: ErrWrongKey, ErrDamaged.
func (s *Seal) Open(key string, sealed []byte) ([]byte, error) {
	if len(sealed) < sealOverhead || sealed[0] != sealVersion {
		return nil, fmt.Errorf("%s: %w", key, ErrDamaged)
	}
	id, nonce, rest := sealed[1:1+idSize], sealed[1+idSize:1+idSize+nonceSize], sealed[1+idSize+nonceSize:]
	if !bytes.Equal(id, s.id[:]) {
		return nil, fmt.Errorf("%s: %w: it was key %x, this one is %x", key, ErrWrongKey, id, s.id)
	}
	plain, err := s.aead(key).Open(nil, nonce, rest, []byte(key))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, ErrDamaged)
	}
	return plain, nil
}
