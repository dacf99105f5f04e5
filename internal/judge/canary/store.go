// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ErrForeign says that what was saved is of another version, or with other
// options: it cannot be gone on with.
var ErrForeign = errors.New("saved by another version, or with other options")

var errDamaged = errors.New("damaged")

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
	var b bytes.Buffer
	e := gob.NewEncoder(&b)
	for _, part := range []any{j.header(), j.fleets} {
		if err := e.Encode(part); err != nil {
			panic(err) // a type that cannot be saved: every test says so
		}
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), crc32.ChecksumIEEE(b.Bytes()))
}

// Load goes on with what was saved, as far as it is not too old by now. After an
// error all is as it was before.
func (j *Judge) Load(data []byte, now window.Instant) error {
	end := len(data) - crc32.Size
	if end < 0 || crc32.ChecksumIEEE(data[:end]) != binary.LittleEndian.Uint32(data[end:]) {
		return errDamaged
	}
	d := gob.NewDecoder(bytes.NewReader(data[:end]))
	var h header
	if err := d.Decode(&h); err != nil {
		return errors.Join(errDamaged, err)
	}
	if !h.equal(j.header()) {
		return ErrForeign
	}
	fleets := make(map[string]*rollout)
	if err := d.Decode(&fleets); err != nil {
		return errors.Join(errDamaged, err)
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
