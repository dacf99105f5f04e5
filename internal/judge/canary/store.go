// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/sealed"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ErrForeign says that what was saved is of another version, or with other
// options: it cannot be gone on with.
var ErrForeign = errors.New("saved by another version, or with other options")

// storeVersion changes with what is saved, and with its meaning.
const storeVersion = 1

// header says what is saved, and under which options its evidence was won.
type header struct {
	Version                  int
	Pane                     time.Duration
	Measures                 []string
	Tolerance, PassTolerance float64
	Match                    []fleet.Label
	AgeWithin                time.Duration
}

func (j *Judge) header() header {
	h := header{Version: storeVersion, Pane: j.options.Pane, Tolerance: j.options.Tolerance, PassTolerance: j.options.PassTolerance, Match: j.options.Match, AgeWithin: j.options.AgeWithin}
	for i := range j.measures {
		h.Measures = append(h.Measures, fmt.Sprint(j.measures[i].Name, j.measures[i].Worse))
	}
	return h
}

func (h *header) equal(o header) bool { return fmt.Sprint(*h) == fmt.Sprint(o) }

// Save returns what is remembered, for Load to go on with.
func (j *Judge) Save() []byte {
	return sealed.Encode(j.header(), j.fleets)
}

// Load goes on with what was saved, as far as it is not too old by now. After an
// error all is as it was before.
func (j *Judge) Load(data []byte, now window.Instant) error {
	d := sealed.Decode(data)
	var h header
	if err := d.Next(&h); err != nil {
		return err
	}
	if !h.equal(j.header()) {
		return ErrForeign
	}
	fleets := make(map[string]*rollout)
	if err := d.Next(&fleets); err != nil {
		return err
	}
	maps.DeleteFunc(fleets, func(_ string, r *rollout) bool { return now.Sub(r.Seen) > rememberFor })
	for _, r := range fleets {
		r.mend(len(j.measures))
	}
	j.fleets, j.now = fleets, now
	return nil
}

// mend makes what gob leaves out, because it is empty.
func (r *rollout) mend(measures int) {
	if r.Variants == nil {
		r.Variants = make(map[string]*variant)
	}
	if r.Recruits == nil {
		r.Recruits = make(map[string]*recruit)
	}
	for _, c := range r.Comparisons {
		if c.Records != nil {
			c.Records = append(c.Records, make([]record, measures-len(c.Records))...)
		}
	}
}
