// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

// second is a time of the directories here; they begin at 1 s.
func second(n int) window.Instant { return window.Instant(n) * window.Instant(time.Second) }

func newDirectory(maxReplicas int) *Directory {
	d := NewDirectory(DirectoryOptions{
		Order: []Origin{FromAttributes, FromKubernetes, FromEngine, FromGPU}, MaxReplicas: maxReplicas, ForgetAfter: time.Hour,
	})
	d.Sweep(second(1))
	return d
}

func enter(t *testing.T, d *Directory, id string, at Place) *Resident {
	t.Helper()
	r, err := d.Enter(id, &at)
	require.NoError(t, err)
	return r
}

func TestDirectoryHasRoomForSoMany(t *testing.T) {
	d := newDirectory(2)
	enter(t, d, "a", Place{})
	b := enter(t, d, "b", Place{})
	_, err := d.Enter("c", &Place{})
	require.ErrorIs(t, err, ErrLimit)
	assert.Equal(t, 2, d.Count())

	// At an hour's end a leaves, b was heard.
	d.Sweep(second(1801))
	b.Hear()
	assert.Equal(t, []*Resident{b}, d.Sweep(second(3602)))
	enter(t, d, "c", Place{})
}

// TestForgetting leaves no way to find who has gone, and what they served.
func TestForgetting(t *testing.T) {
	d := newDirectory(2)
	place := Place{Where: Where{"c", "ns", "pod"}, UID: "uid", Addresses: []string{"10.0.0.1:80", "10.0.0.1"}}
	r := enter(t, d, "a", place)
	r.Serve("m", FromEngine)
	r.Learn(FromKubernetes, &Facts{ModelName: "label"})
	assert.Same(t, r, d.Find(&place))
	assert.True(t, d.Serves("m"))
	assert.False(t, r.Gone())

	d.Sweep(second(3602))
	assert.True(t, r.Gone())
	assert.Nil(t, d.Resident("a"))
	assert.Nil(t, d.Find(&place))
	assert.Nil(t, d.At("10.0.0.1"))
	assert.Empty(t, d.found)
	assert.Empty(t, d.crowded)
	assert.Empty(t, d.models)
}

// TestAddressOfThree: an address leads to nobody while several have it and are
// heard, and to the last one that is left.
func TestAddressOfThree(t *testing.T) {
	d := newDirectory(3)
	for _, id := range []string{"a", "b", "c"} {
		enter(t, d, id, Place{UID: id, Addresses: []string{"10.0.0.1"}})
	}
	assert.Nil(t, d.At("10.0.0.1"))
	d.Sweep(second(3000))
	d.Resident("b").Hear()
	d.Resident("c").Hear()
	assert.Nil(t, d.At("10.0.0.1"))
	d.Sweep(second(3602)) // a is gone
	assert.Nil(t, d.At("10.0.0.1"), "both have been silent")
	d.Resident("c").Hear()
	assert.Same(t, d.Resident("c"), d.At("10.0.0.1"))
	d.Sweep(second(6700)) // b is gone
	assert.Same(t, d.Resident("c"), d.At("10.0.0.1"))
	assert.Empty(t, d.crowded)
	d.Sweep(second(10_000))
	assert.Empty(t, d.found)
}

// TestPlacesOfOneReplicaAreBounded: a sender may invent pods.
func TestPlacesOfOneReplicaAreBounded(t *testing.T) {
	d := newDirectory(1)
	for i := range keysPerReplica + 1 {
		enter(t, d, "a", Place{UID: fmt.Sprint(i)})
	}
	assert.NotNil(t, d.Find(&Place{UID: fmt.Sprint(keysPerReplica - 1)}))
	assert.Nil(t, d.Find(&Place{UID: fmt.Sprint(keysPerReplica)}))
}

// TestSharedPlace: where there are several replicas, none is found.
func TestSharedPlace(t *testing.T) {
	d := newDirectory(2)
	place := Place{Where: Where{Namespace: "ns", Pod: "agent"}, UID: "uid", Shared: true}
	r := enter(t, d, "a", place)
	assert.Nil(t, d.Find(&place))
	assert.Equal(t, Where{Namespace: "ns", Pod: "agent"}, r.Where())
}

// TestModelsOfOneReplica: the only one is its own, of several none is; names that
// a sender invents are bounded.
func TestModelsOfOneReplica(t *testing.T) {
	d := newDirectory(1)
	r := enter(t, d, "a", Place{})
	r.Learn(FromKubernetes, &Facts{ModelName: "label"})
	assert.Equal(t, "label", r.Facts()[ModelName])
	assert.True(t, d.Serves("label"))
	first := r.Serve("m", FromAttributes)
	assert.Equal(t, "m", r.Facts()[ModelName])
	assert.False(t, d.Serves("label"))
	assert.Same(t, first, r.Serve("m", FromAttributes))
	other := r.Serve("n", FromAttributes)
	assert.Empty(t, r.Facts()[ModelName])
	assert.True(t, d.Serves("m") && d.Serves("n"))

	// Both stay while all are silent; then one is heard for more than five minutes.
	d.Sweep(second(400))
	assert.Empty(t, r.Facts()[ModelName])
	other.Hear()
	d.Sweep(second(401))
	assert.Equal(t, "n", r.Facts()[ModelName])
	assert.False(t, d.Serves("m"))

	for i := range maxServices - 1 {
		require.NotNil(t, r.Serve(fmt.Sprint(i), FromEngine))
	}
	assert.Nil(t, r.Serve("one too many", FromEngine))
	assert.False(t, d.Serves("one too many"))
}

// TestNodesAreBoundedAndExpire: clusters come and go by the node.
func TestNodesAreBoundedAndExpire(t *testing.T) {
	d := newDirectory(2)
	first := d.Equip("n1", "H100")
	require.NotNil(t, first)
	require.NotNil(t, d.Equip("n2", "H100"))
	assert.Nil(t, d.Equip("n3", "H100"))
	d.Sweep(second(1801))
	first.Hear()
	d.Sweep(second(3602))
	assert.NotNil(t, d.Equip("n3", "H100"), "n2 has made room")
	assert.Nil(t, d.Equip("n2", "H100"))
}

// TestWordsAreBounded: the oldest makes room for the newest.
func TestWordsAreBounded(t *testing.T) {
	d := newDirectory(1)
	r := enter(t, d, "a", Place{})
	for i := range maxWords {
		d.Sweep(second(2 + i))
		r.Speak(Word{"vllm", fmt.Sprint(i)})
	}
	d.Sweep(second(100))
	r.Speak(Word{"vllm", "0"}) // the oldest but for this
	r.Speak(Word{"vllm", "new"})
	words := map[string]bool{}
	r.Spoken(0, func(w Word) { words[w.Alias] = true })
	assert.Len(t, words, maxWords)
	assert.True(t, words["0"] && words["new"] && !words["1"])
	recent := 0
	r.Spoken(second(100), func(Word) { recent++ })
	assert.Equal(t, 2, recent)
}

// TestProcessesAreBounded: after many restarts the oldest processes are
// forgotten, and another sender may tell of them.
func TestProcessesAreBounded(t *testing.T) {
	d := newDirectory(1)
	r := enter(t, d, "a", Place{})
	for start := range maxProcesses {
		assert.True(t, r.Original(float64(start+1), 1))
		assert.False(t, r.Original(float64(start+1), 2))
	}
	assert.True(t, r.Original(1000, 1))
	assert.False(t, r.Original(2, 2))
	assert.True(t, r.Original(1, 2))
	assert.True(t, r.Original(0, 1) && r.Original(0, 2), "who does not say when it started cannot be told from others")
}

// TestVariantChanges: a change is what the same teller tells otherwise, seen
// from one sweep to the next.
func TestVariantChanges(t *testing.T) {
	steps := []struct {
		what    string
		from    Origin
		facts   Facts
		changes uint64
	}{
		{"learned for the first time", FromEngine, Facts{ConfigHash: "a"}, 0},
		{"the same", FromEngine, Facts{ConfigHash: "a"}, 0},
		{"more of it", FromEngine, Facts{EngineVersion: "1"}, 0},
		{"another", FromEngine, Facts{ConfigHash: "b"}, 1},
		{"two facts at once", FromEngine, Facts{ConfigHash: "c", EngineVersion: "2"}, 2},
		{"by one who counts more", FromKubernetes, Facts{ConfigHash: "k"}, 2},
		{"by one who counts less", FromEngine, Facts{ConfigHash: "d"}, 2},
		{"by the one that counts", FromKubernetes, Facts{ConfigHash: "l"}, 3},
		{"what is no variant", FromKubernetes, Facts{Role: "decode"}, 3},
		{"by one that never counts", FromImage, Facts{EngineVersion: "9"}, 3},
	}
	d := newDirectory(1)
	r := enter(t, d, "a", Place{})
	for i, s := range steps {
		r.Learn(s.from, &s.facts)
		d.Sweep(second(2 + i))
		assert.Equal(t, s.changes, r.VariantChanges(), s.what)
	}
}
