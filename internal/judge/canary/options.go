// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Options are how canaries are judged.
type Options struct {
	// Pane is the length of the panes that are handed in.
	Pane time.Duration
	// Match are the labels of a canary's variant; empty: the variant with fewer
	// replicas that was seen last is the canary.
	Match []fleet.Label
	// AgeWithin: only baseline replicas whose processes began within so long of the
	// canary's are compared with it; zero: all.
	AgeWithin time.Duration
	// Quality are measures beside those that engines tell.
	Quality []Measure
	// Watch names the measures that the overall verdict is over.
	Watch []string
	// FalseFail is how probable it may be that a canary no worse than Tolerance
	// is ever failed; and that one worse than PassTolerance passes.
	FalseFail float64
	// Tolerance is how many times worse than its baseline a canary may be.
	Tolerance float64
	// PassTolerance is how many times worse a canary is shown not to be when it
	// passes.
	PassTolerance float64
	// BurnIn is for how long at most a new replica's first requests, and a cold
	// prefix cache, are waited for.
	BurnIn time.Duration
	// MaxFleets bounds the fleets that are compared.
	MaxFleets int
}

// DefaultWatch are the measures that the overall verdict is over by default.
func DefaultWatch() []string {
	return []string{fleet.TTFT.String(), fleet.ITL.String(), fleet.E2E.String(), fleet.Errors.String()}
}

// The defaults.
const (
	DefaultFalseFail     = 0.05
	DefaultTolerance     = 1.07
	DefaultPassTolerance = 1.15
	DefaultBurnIn        = 15 * time.Minute
	DefaultMaxFleets     = 256
)

// DefaultOptions are those of the processor without configuration.
func DefaultOptions(pane time.Duration) Options {
	return Options{
		Pane: pane, Watch: DefaultWatch(), FalseFail: DefaultFalseFail, Tolerance: DefaultTolerance, PassTolerance: DefaultPassTolerance,
		BurnIn: DefaultBurnIn, MaxFleets: DefaultMaxFleets,
	}
}
