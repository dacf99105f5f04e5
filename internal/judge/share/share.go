// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Options are how tenants are judged.
type Options struct {
	// Pane is the length of the panes that are handed in.
	Pane time.Duration
	// HalfLife is after how long what was seen counts half.
	HalfLife time.Duration
	// MinScore and MinExcess are what a tenant has to reach, Panes panes in a
	// row, to be called noisy. The excess counts over what the latency would be
	// without it, where that is more than usual.
	MinScore, MinExcess float64
	Panes               int
	// MaxTenants bounds the tenants of one fleet that are remembered.
	MaxTenants int
}

// Pane is what one fleet's engines and gateways told of one closed pane.
type Pane struct {
	End window.Instant
	// Replicas is how many engines told something.
	Replicas int
	// ITLSum (seconds) over ITLCount is the mean inter-token latency.
	ITLSum, ITLCount float64
	// Running is the requests in the batches of all replicas, mean over the
	// pane; negative if it is not told.
	Running float64
	// Prompt and Generation are the tokens that the engines counted themselves;
	// negative if they are not told. Tenants whose Uncached make up for the one or
	// whose Output for the other account for the fleet.
	Prompt, Generation float64
	// Tenants in the order of their names. What could not be told apart stands
	// under tenant.Other.
	Tenants []Usage
}

// Usage is one tenant in one pane.
type Usage struct {
	Name string
	// Uncached is the prompt tokens that had to be computed, as far as is known:
	// all of them where the gateway does not tell of caches.
	Uncached float64
	// Output is the tokens made.
	Output float64
}

// Withheld is why a figure is not given.
type Withheld uint8

// The reasons.
const (
	Given          Withheld = iota // it is
	NoITL                          // the engines told no inter-token latency in the pane
	NoTokens                       // no tokens were told
	Warming                        // too few panes were seen
	Unidentifiable                 // prompt tokens and latency do not move enough, or not together, to tell one's part
	Unaccounted                    // the gateway tells of far fewer tokens than the engines: somebody is not seen
	Incredible                     // tokens or latency of the pane are many times the usual: nothing is learned from it
	WithheldCount                  // how many reasons there are; not a reason
)

var withheldNames = [WithheldCount]string{
	Given: "given", NoITL: "no_itl", NoTokens: "no_tokens", Warming: "warming",
	Unidentifiable: "unidentifiable", Unaccounted: "unaccounted", Incredible: "incredible",
}

// String is the reason's name in the attribute reason.
func (w Withheld) String() string { return withheldNames[w] }

// Figure is one number of a report, or why there is none.
type Figure struct {
	Value    float64
	Withheld Withheld
}

// Report is what one pane says of a fleet.
type Report struct {
	// ITL is the mean of the pane, UsualITL that of the last half lives, in
	// seconds; the latter stands still while a tenant is noisy.
	ITL, UsualITL Figure
	// Slope is g: seconds of inter-token latency for one uncached prompt token a
	// second and replica.
	Slope Figure
	// Tenants in the order of the pane's.
	Tenants []Verdict
}

// Verdict is what one pane says of one tenant.
type Verdict struct {
	Name string
	// UsualShare is its usual share of the uncached prompt tokens.
	UsualShare Figure
	// Excess is by how much its surplus over the usual share makes the fleet's
	// inter-token latency longer than usual: 0.4 is 40 %. It is negative for who
	// sends less than the usual share.
	Excess Figure
	// Score is the t statistic of the correlation of the surplus and what the usual
	// traffic leaves of the latency.
	Score Figure
	// Noisy: the tenant is flagged, since Since: the start of the pane in which it
	// began. Since is 0 while it is not.
	Noisy bool
	Since window.Instant
}
