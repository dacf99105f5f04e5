// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"errors"
	"slices"

	"github.com/llmfleet/llmfleet/internal/sealed"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ErrForeign says that what was saved is of another version.
var ErrForeign = errors.New("saved by another version")

// storeVersion changes with what is saved, and with its meaning.
const storeVersion = 1

// saved is what is remembered. Clocks are not: they are learned anew.
type saved struct {
	Version int
	Pods    []*record
}

// Save returns what is remembered, for Load to go on with.
func (b *Book) Save() []byte {
	s := saved{Version: storeVersion, Pods: make([]*record, 0, len(b.pods))}
	for _, r := range b.pods {
		s.Pods = append(s.Pods, r)
	}
	slices.SortFunc(s.Pods, func(x, y *record) int { return cmp.Compare(x.UID, y.UID) })
	return sealed.Encode(s)
}

// Load goes on with what Save returned, as far as it still counts at a time of
// the collector's clock. The book is as before if there is an error.
func (b *Book) Load(data []byte, now window.Instant) error {
	var s saved
	if err := sealed.Decode(data).Next(&s); err != nil {
		return err
	}
	if s.Version != storeVersion {
		return ErrForeign
	}
	for _, r := range s.Pods {
		if r == nil || r.UID == "" || b.pods[r.UID] != nil || len(b.pods) >= b.options.MaxPods || r.Over != 0 && now.Sub(r.Over) > b.options.TTL {
			continue
		}
		b.pods[r.UID] = r
		if r.Over == 0 {
			b.open[r.UID] = r
		} else {
			b.over = append(b.over, r)
		}
	}
	slices.SortStableFunc(b.over, func(x, y *record) int { return cmp.Compare(x.Over, y.Over) })
	return nil
}
