// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// caching is a replica whose prefix cache found so many of the tokens, and of
// the blocks, that were looked up; nil where it tells none.
func caching(tokens, blocks []uint64) fleet.MemberFrame {
	m := usual()
	for _, pair := range [][]uint64{tokens, blocks} {
		for i := range 2 {
			told := fleet.Distribution{}
			if pair != nil {
				told = distribution(nil, pair[i])
			}
			m.Told = append(m.Told, told)
		}
	}
	return m
}

func judgeCaches(t *testing.T, members ...fleet.MemberFrame) *Report {
	t.Helper()
	o := options(0.95)
	o.Cache = true
	var judge Judge
	return judge.Judge(frameOf(t, members...), o)
}

func TestPrefixHitRatio(t *testing.T) {
	report := judgeCaches(t, caching([]uint64{700, 1000}, nil), caching([]uint64{0, 3000}, nil))
	given(t, 0.7, report.Replicas[0].PrefixHitRatio)
	assert.Equal(t, Figure{}, report.Replicas[1].PrefixHitRatio, "nothing was found: that is known")
	given(t, 0.175, report.PrefixHitRatio, "700 of 4000")
}

func TestPrefixHitRatioOfBlocks(t *testing.T) {
	report := judgeCaches(t, caching(nil, []uint64{30, 40}), caching(nil, []uint64{10, 40}))
	given(t, 0.75, report.Replicas[0].PrefixHitRatio)
	given(t, 0.5, report.PrefixHitRatio)
}

func TestTokensAndBlocksAreNotAddedUp(t *testing.T) {
	report := judgeCaches(t, caching([]uint64{700, 1000}, nil), caching(nil, []uint64{30, 40}))
	given(t, 0.7, report.Replicas[0].PrefixHitRatio)
	given(t, 0.75, report.Replicas[1].PrefixHitRatio)
	refused(t, MixedUnits, report.PrefixHitRatio)

	both := judgeCaches(t, caching([]uint64{700, 1000}, []uint64{30, 40}), caching([]uint64{100, 1000}, nil))
	given(t, 0.7, both.Replicas[0].PrefixHitRatio, "who tells both tells tokens")
	given(t, 0.4, both.PrefixHitRatio)
}

func TestPrefixHitRatioIsWithheld(t *testing.T) {
	warming := caching([]uint64{1, 2}, nil)
	warming.Warming = true
	unreliable := caching([]uint64{1, 2}, nil)
	unreliable.Told[2].Unreliable = true
	for name, c := range map[string]struct {
		replica fleet.MemberFrame
		why     Reason
	}{
		"not told":          {caching(nil, nil), NotReported},
		"nothing looked up": {caching([]uint64{0, 0}, nil), ZeroBaseline},
		"more found":        {caching([]uint64{3, 2}, nil), Implausible},
		"warming":           {warming, Warming},
		"two processes":     {unreliable, NotReported},
	} {
		report := judgeCaches(t, c.replica)
		refused(t, c.why, report.Replicas[0].PrefixHitRatio, name)
	}
	var judge Judge
	refused(t, NotAsked, judge.Judge(frameOf(t, usual()), options(0.95)).PrefixHitRatio)
}

// TestEnginesAreNotCompared: what a latency is differs from engine to engine.
func TestEnginesAreNotCompared(t *testing.T) {
	other := usual()
	other.Identity.Engine = "sglang"
	for i := range 3 { // of each engine more than one, and one
		members := []fleet.MemberFrame{usual(), other, usual()}[:2+min(i, 1)]
		var judge Judge
		report := judge.Judge(frameOf(t, members...), options(0.95))
		refused(t, MixedEngines, report.Latency[0])
		refused(t, MixedEngines, report.Spread[0])
		for _, r := range report.Replicas {
			given(t, usualSeconds, r.Latency[0].Value, "its own latency is what it is")
			refused(t, MixedEngines, r.Latency[0].Ratio)
			refused(t, MixedEngines, r.Latency[0].LowRatio)
			refused(t, MixedEngines, r.Latency[0].HighRatio)
		}
		assert.Equal(t, len(members), report.States[AllWithheld])
	}
}
