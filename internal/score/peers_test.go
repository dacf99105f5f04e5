// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// scene is one fleet of replicas that tell one latency, in buckets of 0.1 s up
// to 2 s.
type scene struct {
	*frames
	peers *peers
	said  *flags
}

func newScene(replicas int) scene {
	bounds := make([]float64, 20)
	for i := range bounds {
		bounds[i] = float64(i+1) / 10
	}
	layout := new(window.Layouts).Intern(bounds)
	return scene{newFrames(1, replicas, []told{{fleet.TTFT, layout}}), newPeers(1, replicas, 1), newFlags(replicas)}
}

// pane plays one pane in which replica i makes n observations, all in bucket
// buckets[i].
func (s scene) pane(n uint64, buckets ...int) {
	s.begin()
	for m, b := range buckets {
		counts := make([]uint64, 21)
		counts[b] = n
		s.tell(0, m, 0, counts...)
	}
	s.peers.judge(0, &s.fleets[0], &s.said.on)
}

// since plays panes of so many observations and returns in which the rule first
// flags the last replica, 0 for never, and whether it flagged any other.
func (s scene) since(r rule, panes int, n uint64, buckets ...int) (first int, others bool) {
	for t := range panes {
		s.pane(n, buckets...)
		last := len(buckets) - 1
		if s.said.on[r][last] && first == 0 {
			first = t + 1
		}
		others = others || slices.Contains(s.said.on[r][:last], true)
	}
	return first, others
}

// Three replicas lie at 0.3 to 0.4 s: their p95 is 0.395 s, and one and a half
// times that is 0.5925 s. The last lies a bucket at 0.5 to 0.6 s (p95 0.595 s)
// or lower (0.495 s).
func TestThePlainRatioFlagsAtOnce(t *testing.T) {
	first, others := newScene(4).since(plainRatio, 5, 60, 3, 3, 3, 5)
	assert.Equal(t, 1, first)
	assert.False(t, others)
	first, _ = newScene(4).since(plainRatio, 5, 60, 3, 3, 3, 4)
	assert.Zero(t, first)
}

func TestTheHeldRatioWaitsAndWantsObservations(t *testing.T) {
	first, others := newScene(4).since(heldRatio, 12, 60, 3, 3, 3, 9)
	assert.Equal(t, 6, first, "100 observations in the second pane, and five panes in a row")
	assert.False(t, others)
	first, _ = newScene(4).since(heldRatio, 12, 12, 3, 3, 3, 9)
	assert.Zero(t, first, "60 observations in five panes are too few")

	s := newScene(4)
	s.pane(60, 3, 3, 3, 9) // in the window for five panes, the first with too few observations
	first, _ = s.since(heldRatio, 12, 60, 3, 3, 3, 3)
	assert.Zero(t, first, "four panes in a row are too few")
}

// The p95 of the others are 0.295, 0.395, 0.395 and 0.495 s: with the last one
// above, the median is 0.395 s and the median deviation 0.1 s, so that z is
// above 5 from 0.395 + 5·1.4826·0.1 = 1.1363 s on.
func TestTheMedianDeviationWantsThreeOfFive(t *testing.T) {
	first, others := newScene(5).since(medianDeviation, 6, 60, 2, 3, 3, 4, 11)
	assert.Equal(t, 3, first, "1.195 s")
	assert.False(t, others)
	first, _ = newScene(5).since(medianDeviation, 6, 60, 2, 3, 3, 4, 10)
	assert.Zero(t, first, "1.095 s")
	first, _ = newScene(5).since(medianDeviation, 6, 60, 3, 3, 3, 3, 19)
	assert.Zero(t, first, "no deviation to measure by")
}

// One of n values lies sqrt(n-1) standard deviations above the mean if all
// others are equal: 2 of five, 2.2 of six.
func TestTheMeanDeviationWantsFiveReplicas(t *testing.T) {
	first, others := newScene(5).since(meanDeviation, 2, 60, 3, 3, 3, 3, 4)
	assert.Equal(t, 1, first)
	assert.False(t, others)
	first, _ = newScene(4).since(meanDeviation, 2, 60, 3, 3, 3, 9)
	assert.Zero(t, first)
	first, _ = newScene(6).since(meanDeviation, 2, 60, 3, 3, 3, 3, 9, 9)
	assert.Zero(t, first, "two of six lie sqrt(2) above")
}

func TestAnEpisodeEndsAfterTenQuietPanes(t *testing.T) {
	s := newScene(4)
	s.pane(60, 3, 3, 3, 9)
	for range windowPanes { // the slow pane leaves the window with the last
		s.pane(60, 3, 3, 3, 3)
	}
	for quiet := 2; quiet < quietPanes; quiet++ {
		s.pane(60, 3, 3, 3, 3)
		assert.True(t, s.said.on[plainRatio][3], "%d quiet panes", quiet)
	}
	s.pane(60, 3, 3, 3, 3)
	assert.False(t, s.said.on[plainRatio][3])
}

func TestReplicasWithoutObservationsAreNotFlagged(t *testing.T) {
	s := newScene(6)
	s.pane(0, 1, 1, 1, 1, 1, 1)
	for r := plainRatio; r < ruleCount; r++ {
		assert.NotContains(t, s.said.on[r], true, ruleNames[r])
	}
}
