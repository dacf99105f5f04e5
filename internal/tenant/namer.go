// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Mode is how what a request says of its tenant becomes a name.
type Mode uint8

// The modes.
const (
	// Hash names by a keyed hash: only who holds the key can tell whom a name
	// means.
	Hash Mode = iota
	// Plain names as the request says. Only for what an authenticating gateway
	// sets: a client could call itself anything.
	Plain
	// Map names by a table, and knows nobody else.
	Map
)

// NamerOptions are how tenants are named.
type NamerOptions struct {
	Mode Mode
	// Key of mode Hash. Without one, whoever can guess a value can tell its name.
	Key []byte
	// Map of mode Map, from what requests say to names. A name that would be
	// Invalid in mode Plain is so here.
	Map map[string]string
}

// Namer names tenants. It is safe for concurrent use.
type Namer struct {
	mode    Mode
	names   map[string]string
	hashers sync.Pool
}

// NewNamer makes a Namer.
func NewNamer(o NamerOptions) *Namer {
	n := &Namer{mode: o.Mode}
	switch o.Mode {
	case Map:
		n.names = make(map[string]string, len(o.Map))
		for raw, name := range o.Map {
			n.names[raw] = label(name)
		}
	case Hash:
		key := bytes.Clone(o.Key)
		n.hashers.New = func() any { return &hasher{mac: hmac.New(sha256.New, key)} }
	case Plain:
	}
	return n
}

// Name is the name of the tenant that a request says is raw.
//
// Without a value the tenant is Unknown. A value is Invalid if it is longer than
// 256 bytes, is not valid UTF-8, or has a character that does not print: control
// and format characters, and spaces but the ASCII one. In mode Plain it is too
// if it begins like one of the reserved names, or looks like a Credential.
//
// In mode Hash the name is 16 hexadecimal digits of HMAC-SHA256, 64 bits: that
// two of n tenants share one has a chance of n²/2⁶⁵, 3 in 10⁸ for a million. In
// mode Map a value that the table does not have is Unmapped.
func (n *Namer) Name(raw string) string {
	if raw == "" {
		return Unknown
	}
	switch n.mode {
	case Plain:
		return label(raw)
	case Map:
		if name, ok := n.names[raw]; ok {
			return name
		}
		return Unmapped
	default:
		if !printable(raw) {
			return Invalid
		}
		h := n.hashers.Get().(*hasher)
		defer n.hashers.Put(h)
		return h.name(raw)
	}
}

// maxLength is how many bytes of text a client can make anyone keep.
const maxLength = 256

func printable(text string) bool {
	if len(text) > maxLength || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// label is a text that a client supplies as one that may be kept and shown.
func label(text string) string {
	switch {
	case text == "":
		return Unknown
	case !printable(text), strings.HasPrefix(text, reservedPrefix), Credential(text):
		return Invalid
	default:
		return text
	}
}

// hasher keeps what a hash needs, so that hashing allocates nothing but a name.
type hasher struct {
	mac    hash.Hash
	text   [maxLength]byte
	sum    [sha256.Size]byte
	digits [2 * nameBytes]byte
}

// nameBytes is how many bytes of a hash a name tells.
const nameBytes = 8

func (h *hasher) name(raw string) string {
	h.mac.Reset()
	h.mac.Write(h.text[:copy(h.text[:], raw)])
	hex.Encode(h.digits[:], h.mac.Sum(h.sum[:0])[:nameBytes])
	clear(h.text[:len(raw)])
	return string(h.digits[:])
}

// shortestKey is the fewest bytes of a key: it must not be guessed from the names
// of tenants whose identifiers are seen.
const shortestKey = 16

// ParseKey reads the key of mode Hash as it stands in a file or a variable: a
// line break at the end, which editors add, is not part of it. A key of fewer
// than 16 bytes is refused; the error shows none of it.
func ParseKey(text []byte) ([]byte, error) {
	key := bytes.TrimRight(text, "\r\n")
	if len(key) < shortestKey {
		return nil, fmt.Errorf("the key has %d bytes: use at least %d random ones, as of \"openssl rand -hex 32\"", len(key), shortestKey)
	}
	return key, nil
}
