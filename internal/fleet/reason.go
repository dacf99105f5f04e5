// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// ReasonCount is how many requests ended for a reason, as the engine calls it.
type ReasonCount struct {
	Reason string
	Count  uint64
}

// maxReasons bounds the reasons that are told apart; whatever else ends a request
// is another reason.
const maxReasons = 32

const otherReason = "other"

// reasons are the reasons for which requests ended, each by a number. They are
// safe for concurrent use.
type reasons struct {
	mu    sync.RWMutex
	names []string
}

// number is that of a reason, which is copied if it is kept.
func (r *reasons) number(name string) uint8 {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.names, name)
	switch {
	case i >= 0:
	case name == otherReason || len(r.names) == maxReasons:
		i = maxReasons
	default:
		i = len(r.names)
		r.names = append(r.names, strings.Clone(name))
	}
	return uint8(i) // at most maxReasons
}

func (r *reasons) name(number int) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if number == maxReasons {
		return otherReason
	}
	return r.names[number]
}

// reasonSums gathers how many requests of one replica ended for which reason.
type reasonSums struct {
	told   [maxReasons + 1]bool
	counts [maxReasons + 1]uint64
}

// add adds what a series counted of one reason.
func (s *reasonSums) add(number uint8, counts []uint64) {
	s.told[number] = true
	for _, n := range counts {
		s.counts[number] += n
	}
}

// tell returns what was gathered, in the order of the names.
func (s *reasonSums) tell(r *reasons) (all []ReasonCount) {
	for number, told := range s.told {
		if told {
			all = append(all, ReasonCount{r.name(number), s.counts[number]})
		}
	}
	slices.SortFunc(all, func(a, b ReasonCount) int { return cmp.Compare(a.Reason, b.Reason) })
	return all
}
