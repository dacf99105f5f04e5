// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package dialect knows how each engine spells the signals. Dialects are data:
// one embedded YAML file an engine, and this package only reads and matches
// them. A new engine is a new file.
package dialect

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Kind is the type of metric in which an engine exposes a signal.
type Kind uint8

// The kinds. Counters are monotonic sums.
const (
	Histogram Kind = iota
	Gauge
	Counter
)

var kindNames = [...]string{Histogram: "histogram", Gauge: "gauge", Counter: "counter"}

// String is the kind's name in a dialect file.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// Entry is how one engine exposes one signal. All points of one metric and
// replica that pass Keep, First and Reject are summed (usage: averaged),
// whatever other labels they have. An Entry is shared and must not be modified.
type Entry struct {
	Dialect string // the engine: what becomes engine_name
	Signal  fleet.Signal
	Kind    Kind    // a metric of this name but another kind is not this signal
	Scale   float64 // value * Scale is in the signal's canonical unit

	Keep    []LabelFilter // a point is read only if it passes every filter
	Ranks   []string      // labels that tell apart the ranks which are summed (engine, dp_rank)
	First   []string      // labels of which only one value is read, never summed over (tp_rank)
	Role    string        // label that tells the role (prefill, decode, unified), "" if none
	Replica []string      // labels that name the replica inside one target, first present wins
	Reject  []string      // a point with one of these labels is a copy and no replica, …
	Unless  string        // … unless it has this label, too; "" if nothing excuses it
}

// LabelFilter passes a point that lacks Label, or whose value of it is one of
// Values.
type LabelFilter struct {
	Label  string
	Values []string
}

// Match is the meaning of a metric name.
type Match struct {
	Entry *Entry
	// Alias is the name's place among all that the engine has had for the
	// signal, 0 for the newest. Where a target shows several, the lowest counts.
	Alias int
}

// Set is a number of dialects, ready to match.
type Set struct {
	byName map[string]Match // every spelling of every name
}

//go:embed *.yaml
var files embed.FS

var builtin = sync.OnceValue(func() *Set {
	set, err := load(files)
	if err != nil {
		panic(err) // one of our own files is broken, and every test says so
	}
	return set
})

// Builtin returns the dialects that come with the product, read once.
func Builtin() *Set { return builtin() }

// load reads every YAML file at the top of fsys.
func load(fsys fs.FS) (*Set, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	set := newSet()
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		if err := set.add(name, data); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// Parse reads one dialect file. It accepts nothing that it does not know, and
// its errors say where: "file:line: key: what is wrong".
func Parse(file string, data []byte) (*Set, error) {
	set := newSet()
	if err := set.add(file, data); err != nil {
		return nil, err
	}
	return set, nil
}

func newSet() *Set { return &Set{byName: make(map[string]Match)} }

// Match tells what the metric of exactly this name is. A name is known with
// either separator after the engine's prefix, behind each carrier's prefix
// (vllm:x, vllm_x, ray_vllm_x), and, for counters, with and without _total.
// Nothing else is: x_created, x_by_reason or iteration_x are other metrics.
func (s *Set) Match(name string) (Match, bool) {
	m, ok := s.byName[name]
	return m, ok
}

// add reads one dialect file into the set.
func (s *Set) add(file string, data []byte) error {
	d, err := read(file, data)
	if err != nil {
		return err
	}
	for _, t := range d.terms {
		for alias, name := range t.names {
			if err := s.claim(d.spellings(name, t.entry.Kind), Match{Entry: t.entry, Alias: alias}); err != nil {
				return t.at.errorf("%w", err)
			}
		}
	}
	return nil
}

// claim gives every spelling of one name its meaning, and none a second.
func (s *Set) claim(spellings []string, m Match) error {
	for _, spelling := range spellings {
		if owner, taken := s.byName[spelling]; taken {
			return fmt.Errorf("%s is already %s of %s", spelling, owner.Entry.Signal, owner.Entry.Dialect)
		}
		s.byName[spelling] = m
	}
	return nil
}
