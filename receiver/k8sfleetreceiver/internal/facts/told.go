// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// maxTold is how many facts of one pod are told: a container that restarts for
// ever has one that is new each time.
const maxTold = 512

// Told is the memory of what was told, for pods that are there. Not safe for
// concurrent use.
type Told struct {
	most int
	pods map[string]map[uint64]window.Instant // by pod and fact: until when
}

// NewTold returns a memory for so many pods.
func NewTold(most int) *Told {
	return &Told{most: most, pods: make(map[string]map[uint64]window.Instant)}
}

// Follow makes a place for a pod. It tells whether there is one, and whether the
// pod is new.
func (t *Told) Follow(pod string) (followed, fresh bool) {
	if _, ok := t.pods[pod]; ok {
		return true, false
	}
	if len(t.pods) >= t.most {
		return false, true
	}
	t.pods[pod] = make(map[uint64]window.Instant)
	return true, true
}

// Follows tells whether a pod has a place.
func (t *Told) Follows(pod string) bool {
	_, ok := t.pods[pod]
	return ok
}

// News tells whether a fact is to be told: it was not, or has happened again since.
// It counts as told from now on.
func (t *Told) News(f *lifecycle.Fact) bool {
	of, ok := t.pods[f.Pod]
	if !ok {
		return false
	}
	k := key(f)
	until, known := of[k]
	if known && f.Until <= until || !known && len(of) >= maxTold {
		return false
	}
	of[k] = f.Until
	return true
}

// Untell has a fact that did not arrive told again when its source says it again.
func (t *Told) Untell(f *lifecycle.Fact) { delete(t.pods[f.Pod], key(f)) }

// Forget gives up a pod's place.
func (t *Told) Forget(pod string) { delete(t.pods, pod) }

// Keep gives up the places of all pods that are gone.
func (t *Told) Keep(here func(pod string) bool) {
	for pod := range t.pods {
		if !here(pod) {
			delete(t.pods, pod)
		}
	}
}

// Pods is how many pods have a place.
func (t *Told) Pods() int { return len(t.pods) }

// key tells facts of one pod apart. What an object tells again with another time,
// as a condition that flips, is what it told before; events each have their time.
func key(f *lifecycle.Fact) uint64 {
	h := fnv.New64a()
	at := f.At
	if f.About != nil {
		at = 0
	}
	fmt.Fprintf(h, "%d\x00%s\x00%d\x00%s\x00%d", f.Name, f.Container, f.Attempt, f.Copy, at)
	return h.Sum64()
}

// saved is the form in which a memory is kept over a restart.
type saved struct {
	Version int                                  `json:"version"`
	Pods    map[string]map[uint64]window.Instant `json:"pods"`
}

const savedVersion = 1

// Save returns the memory, for Load.
func (t *Told) Save() []byte {
	data, _ := json.Marshal(saved{savedVersion, t.pods}) //nolint:errchkjson // numbers and strings
	return data
}

// Load goes on with a memory that was saved.
func (t *Told) Load(data []byte) error {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s.Version != savedVersion {
		return fmt.Errorf("version %d of what was told, not %d", s.Version, savedVersion)
	}
	for pod, of := range s.Pods {
		if len(t.pods) < t.most && of != nil {
			t.pods[pod] = of
		}
	}
	return nil
}
