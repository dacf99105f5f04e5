// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package tenant accounts for who sent requests and what they took, in memory
// that does not grow with the number of tenants. It names tenants (Namer),
// counts for those that matter most and for all others together (Ledger), and
// keeps a record of everyone for as long as a window (Journal).
package tenant

// Names that stand for more or less than one tenant, tier or model. No tenant
// can be called so: a name that begins with two underscores is Invalid.
const (
	Other    = "__other__"    // all that are not named; models and tiers, too, of which no request was OK yet
	Unknown  = "__unknown__"  // requests that do not say
	Invalid  = "__invalid__"  // names that are too long, not printable, or look like a credential
	Unmapped = "__unmapped__" // names that the map does not have
)

// reservedPrefix is how those names begin, and no other.
const reservedPrefix = "__"

// Reserved tells whether a name is one of those: of no tenant in particular.
func Reserved(name string) bool {
	return name == Other || name == Unknown || name == Invalid || name == Unmapped
}

// TokenType is a kind of token. No token is of two.
type TokenType uint8

// The kinds.
const (
	InputUncached  TokenType = iota // of prompts, to be computed
	InputCached                     // of prompts, found in a prefix cache
	Output                          // made
	TokenTypeCount                  // how many kinds there are; not a kind
)

var tokenTypes = [TokenTypeCount]string{InputUncached: "input_uncached", InputCached: "input_cached", Output: "output"}

// String is the kind's name in the attribute token_type.
func (t TokenType) String() string { return tokenTypes[t] }

// Outcome is how a request ended.
type Outcome uint8

// The outcomes.
const (
	OK Outcome = iota
	Failed
	Throttled    // turned away because the tenant had used up his rate or budget
	OutcomeCount // how many outcomes there are; not an outcome
)

var outcomes = [OutcomeCount]string{OK: "ok", Failed: "error", Throttled: "throttled"}

// String is the outcome's name in the attribute outcome.
func (o Outcome) String() string { return outcomes[o] }

// Request is one request that ended, as its span tells it. Its texts may be
// kept, so they are no parts of large ones.
type Request struct {
	Tenant  string // as the Namer names it
	Tier    string // "" if it is not told
	Model   string // "" if it is not told
	Variant string // what serves it, where the span says; "" otherwise
	Outcome Outcome
	Tokens  [TokenTypeCount]uint64
	// Known says which of Tokens were told: what is not told is not zero.
	Known [TokenTypeCount]bool
	// TTFT is the time to first token in seconds; negative if it is not told.
	TTFT float64
}

// Total is all tokens that were told.
func (r *Request) Total() (n uint64) {
	for _, t := range r.Tokens {
		n += t
	}
	return n
}
