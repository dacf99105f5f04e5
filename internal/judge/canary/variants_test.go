// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// nextIs is the options with next for the canary, though it may be no newer and no
// fewer.
func nextIs(o Options) Options {
	o.Match = []fleet.Label{label("model_revision", "next")}
	return o
}

func TestMatchNamesTheCanary(t *testing.T) {
	s := newStage(nextIs(DefaultOptions(testPane)), 2, 0)
	s.enter("next", 5) // more of them, and there from the first pane
	r := s.tens(3)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"next", "stable"}, r.Of)
	assert.Equal(t, [ArmCount]int{5, 2}, r.Replicas)
	assert.False(t, r.Reasons.Has(Promoted))
}

func TestMatchWithoutBaseline(t *testing.T) {
	r := newStage(nextIs(DefaultOptions(testPane)), 0, 2).tens(20)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"next", "none"}, r.Of)
	assert.Equal(t, Inconclusive, r.Verdict)
	assert.True(t, r.Reasons.Has(NoBaseline))
}

func TestMatchNobody(t *testing.T) {
	o := DefaultOptions(testPane)
	o.Match = []fleet.Label{label("model_revision", "other")}
	assert.Nil(t, newStage(o, 3, 1).tens(5))
}

// A label that only canaries have is enough: whoever lacks it is no canary.
func TestMatchALabelOfCanariesOnly(t *testing.T) {
	o := DefaultOptions(testPane)
	o.Match = []fleet.Label{label("track", "canary")}
	s := newStage(o, 0, 0)
	for _, name := range []string{"a", "b", "c"} {
		s.joinAs(name)
	}
	s.joinAs("d", label("track", "canary"))
	r := s.tens(5)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]int{1, 3}, r.Replicas)
	assert.False(t, r.Reasons.Has(NoBaseline))
}

func TestReplicasWithoutVariant(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 1)
	s.joinAs("unknown")
	r := s.tens(5)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]int{1, 3}, r.Replicas)
	assert.Equal(t, [ArmCount]uint64{40, 120}, measureOf(r, "ttft").Observations)
}

// A label that some replicas lack does not tell variants apart.
func TestLabelsThatOnlySomeKnow(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 0, 0)
	s.joinAs("a", label("model_revision", "1"), label("engine_version", "0.9"))
	s.joinAs("b", label("model_revision", "1"))
	s.joinAs("c", label("model_revision", "1"))
	s.joinAs("d", label("model_revision", "2"), label("engine_version", "0.9"))
	r := s.tens(5)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"2", "1"}, r.Of)
	assert.Equal(t, [ArmCount]int{1, 3}, r.Replicas)
}

// hashed is a stage of three replicas of one variant and one of another, told by
// two labels of which the second is theirs alone.
func hashed(revision string) *stage {
	s := newStage(DefaultOptions(testPane), 0, 0)
	for _, name := range []string{"a", "b", "c"} {
		s.joinAs(name, label("model_revision", "1"), label("config_hash", "x"))
	}
	s.joinAs("d", label("model_revision", revision), label("config_hash", "y"))
	return s
}

func TestArmsAreNamedByWhatTellsThemApart(t *testing.T) {
	assert.Equal(t, [ArmCount]string{"2/y", "1/x"}, hashed("2").tens(2).Of)
	assert.Equal(t, [ArmCount]string{"y", "x"}, hashed("1").tens(2).Of)
}

// A replica whose labels are not all there for a pane changes nobody's variant.
func TestALabelIsAwayForAPane(t *testing.T) {
	for _, revision := range []string{"1", "2"} {
		for replica := range 4 {
			s := hashed(revision)
			before := s.tens(10)
			require.NotNil(t, before)
			since, of := before.Since, before.Of
			whole := s.frame.Members[replica].Identity.Variant
			s.frame.Members[replica].Identity.Variant = whole[:1]
			s.tens(1)
			s.frame.Members[replica].Identity.Variant = whole
			r := s.tens(1)
			require.NotNil(t, r)
			assert.Equal(t, of, r.Of, "%s, replica %d", revision, replica)
			assert.Equal(t, since, r.Since, "%s, replica %d", revision, replica)
		}
	}
}

// Another key is another canary, whose evidence begins from nothing.
func TestChangedKeyBeginsAnew(t *testing.T) {
	s := hashed("2")
	s.tens(10)
	s.frame.Members[3].Identity = &fleet.Identity{
		Replica: "e", Keys: s.frame.Fleet.Keys, Variant: []fleet.Label{label("model_revision", "2"), label("config_hash", "z")},
	}
	r := s.tens(3)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"2/z", "1/x"}, r.Of)
	assert.Equal(t, minute(11), r.Since)
	assert.Equal(t, [ArmCount]uint64{20, 60}, measureOf(r, "ttft").Observations)
}

func TestBoundedFleets(t *testing.T) {
	o := DefaultOptions(testPane)
	o.MaxFleets = 1
	s := newStage(o, 2, 1)
	require.NotNil(t, s.tens(2))
	_, ok := s.judge.Judge(&s.frame, nil)
	assert.True(t, ok)
	s.frame.Fleet = &fleet.Fleet{Keys: []fleet.Label{label("model_name", "other")}}
	_, ok = s.judge.Judge(&s.frame, nil)
	assert.False(t, ok)
	assert.Equal(t, 1, s.judge.Fleets())
}

// Labels that come a pane late part a variant in two: of which the smaller is the
// canary, whoever is told of first.
func TestLabelsThatComeLate(t *testing.T) {
	for _, names := range []string{"abcd", "dabc"} {
		s := newStage(DefaultOptions(testPane), 0, 0)
		for _, name := range names {
			s.joinAs(string(name), label("model_revision", "1"))
		}
		require.Nil(t, s.tens(2), names)
		for i := range s.frame.Members {
			id, hash := s.frame.Members[i].Identity, "x"
			if id.Replica == "d" {
				hash = "y"
			}
			s.frame.Members[i].Identity = &fleet.Identity{
				Replica: id.Replica, Keys: id.Keys, Variant: []fleet.Label{label("model_revision", "1"), label("config_hash", hash)},
			}
		}
		r := s.tens(3)
		require.NotNil(t, r, names)
		assert.Equal(t, [ArmCount]string{"y", "x"}, r.Of, names)
	}
}
