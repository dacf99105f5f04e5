// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/sealed"
	"github.com/llmfleet/llmfleet/internal/stats"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ErrForeign says that what was saved is of another version of the alarm, or was
// gathered under other signals: it cannot be gone on with.
var ErrForeign = errors.New("saved by another version, or with other signals")

// storeVersion changes with the meaning of what is saved; that its shape has
// changed shows by itself.
const storeVersion = 1

// header says what is saved, so that nothing is read as what it is not.
func (a *Alarm) header() string {
	var names []string
	for _, s := range a.options.Signals {
		names = append(names, s.String())
	}
	return fmt.Sprintf("llmfleet alarm %d: signals %s, %d, %d and %d bytes, %d effects",
		storeVersion, strings.Join(names, ","), binary.Size(signal{}), binary.Size(watch{}), binary.Size(stream{}), len(stats.Effects))
}

// stored is what is saved of a fleet beside its signals and replicas.
type stored struct {
	Panes, Blocks, Members int32
	Last, Seen             window.Instant
	Pane                   time.Duration
	Live                   int32
	Load                   line
}

// Save returns what the alarm remembers, for Load to go on with.
func (a *Alarm) Save() []byte {
	w := encoder{}
	w.text(a.header())
	w.put(int32(len(a.fleets))) //nolint:gosec // bounded by the replicas that are followed
	for _, key := range slices.Sorted(maps.Keys(a.fleets)) {
		of := a.fleets[key]
		w.text(key)
		w.put(&stored{
			Panes: int32(of.panes), Blocks: int32(of.blocks), Members: int32(len(of.members)), Live: int32(of.live), //nolint:gosec // small
			Last: of.last, Seen: of.seen, Pane: of.pane, Load: of.load,
		})
		w.put(of.signals)
		for _, replica := range slices.Sorted(maps.Keys(of.members)) {
			m := of.members[replica]
			w.text(replica)
			w.put(m.seen)
			w.put(&m.watch)
			w.put(m.streams)
		}
	}
	return sealed.Seal(w.data)
}

// Load goes on with what was saved before now. What is older than an alarm
// remembers is left out.
func (a *Alarm) Load(data []byte, now window.Instant) error {
	body, err := sealed.Open(data)
	if err != nil {
		return err
	}
	r := decoder{data: body}
	if r.text() != a.header() {
		return ErrForeign
	}
	var fleets int32
	r.get(&fleets)
	loaded := make(map[string]*fleetAlarm)
	for range fleets {
		key, of := r.text(), newFleetAlarm(len(a.options.Signals)+1)
		var s stored
		r.get(&s)
		r.get(of.signals)
		of.panes, of.blocks, of.live = int(s.Panes), int(s.Blocks), int(s.Live)
		of.last, of.seen, of.pane, of.load = s.Last, s.Seen, s.Pane, s.Load
		for range s.Members {
			replica, m := r.text(), &member{streams: make([]stream, len(of.signals))}
			r.get(&m.seen)
			r.get(&m.watch)
			r.get(m.streams)
			if r.err != nil {
				return r.err
			}
			if now.Sub(m.seen) <= forgetAfter {
				of.members[replica] = m
			}
		}
		if now.Sub(of.seen) <= forgetAfter {
			loaded[key] = of
		}
	}
	if r.err != nil {
		return r.err
	}
	a.now = now
	maps.Copy(a.fleets, loaded)
	return nil
}

// encoder appends values one after the other.
type encoder struct{ data []byte }

func (w *encoder) put(v any) {
	data, err := binary.Append(w.data, binary.LittleEndian, v)
	if err != nil {
		panic(err) // a type without a fixed size: every test says so
	}
	w.data = data
}

func (w *encoder) text(s string) {
	w.put(int32(len(s))) //nolint:gosec // a label is not that long
	w.data = append(w.data, s...)
}

// decoder takes values off in the same order; after an error it takes no more.
type decoder struct {
	data []byte
	err  error
}

func (r *decoder) get(v any) {
	if r.err != nil {
		return
	}
	n, err := binary.Decode(r.data, binary.LittleEndian, v)
	if err != nil {
		r.err = fmt.Errorf("%w: %w", sealed.ErrDamaged, err)
		return
	}
	r.data = r.data[n:]
}

func (r *decoder) text() string {
	var n int32
	r.get(&n)
	if r.err != nil || n < 0 || int(n) > len(r.data) {
		r.err = errors.Join(r.err, sealed.ErrDamaged)
		return ""
	}
	s := string(r.data[:n])
	r.data = r.data[n:]
	return s
}
