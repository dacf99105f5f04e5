// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTargetThatSpeaksForOthers has each of them once, whether they are few or many.
func TestTargetThatSpeaksForOthers(t *testing.T) {
	for _, replicas := range []int{1, fewSources, fewSources + 1, 3 * fewSources} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			tl := newTimeline()
			told := make([]*scrape, replicas)
			for i := range told {
				told[i] = tl.scrape(1, fmt.Sprint(i))
				told[i].spelling.Choice = ID(i)
			}
			for _, s := range told {
				s.total(after(3), 0)
			}
			for _, s := range told {
				s.gauge(after(4), Waiting, 1) // a second series of each
			}
			target, err := tl.registry.Acquire(1, false)
			require.NoError(t, err)
			require.Len(t, target.sources, replicas)
			for _, s := range target.sources {
				assert.Len(t, s.series, 2)
				assert.Same(t, s, target.find(s.key()))
			}
			assert.Nil(t, target.find(sourceKey{target.sources[0].member.fleet.key, "another"}))
			target.Unlock()

			for end := after(30); end <= after(1200); end = end.Add(interval) {
				tl.registry.Close(end, Ask{}, func(*Frame) {})
			}
			assertForgotten(t, tl.registry)
		})
	}
}

// TestFleetsOfOneReplica: a sender may invent models, and only so many count.
func TestFleetsOfOneReplica(t *testing.T) {
	tl := newTimeline()
	target, err := tl.registry.Acquire(1, true)
	require.NoError(t, err)
	defer target.Unlock()
	joined := ID(0)
	join := func(fleet int, replica string) error {
		joined++
		identity := &Identity{Replica: replica, Keys: []Label{{"model_name", fmt.Sprint(fleet)}}}
		_, err := target.Join(joined, identity, TTFT, Spelling{})
		return err
	}
	for fleet := range fleetsPerReplica {
		require.NoError(t, join(fleet, "a"))
	}
	require.ErrorIs(t, join(fleetsPerReplica, "a"), ErrLimit)
	require.NoError(t, join(0, "a"), "it is there already")
	require.NoError(t, join(fleetsPerReplica, "b"), "another one may")
}

// TestKeysAreKeptOnce for all of a fleet.
func TestKeysAreKeptOnce(t *testing.T) {
	tl := newTimeline()
	for i := range 2 {
		tl.scrape(ID(i+1), fmt.Sprint(i)).total(after(3).Add(time.Duration(i)), 0)
	}
	tl.registry.Close(after(30), Ask{}, func(f *Frame) {
		require.Len(t, f.Members, 2)
		for i := range f.Members {
			assert.Same(t, &f.Fleet.Keys[0], &f.Members[i].Identity.Keys[0])
		}
	})
}
