// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

// fewSources are found without an index. More are told by targets that speak for
// others, as a federation does.
const fewSources = 8

// index finds the sources of a target that has many.
type index struct {
	sources map[sourceKey]*Source
	fleets  map[string]int // in how many a replica is
}

// sourceKey is which replica of which fleet a source is.
type sourceKey struct{ fleet, replica string }

func (s *Source) key() sourceKey { return sourceKey{s.member.fleet.key, s.member.replica} }

// find finds what the target tells of a replica in a fleet; nil if nothing yet.
func (t *Target) find(key sourceKey) *Source {
	if t.index != nil {
		return t.index.sources[key]
	}
	for _, s := range t.sources {
		if s.key() == key {
			return s
		}
	}
	return nil
}

// scattered tells whether the target shows a replica in as many fleets as it may.
func (t *Target) scattered(replica string) bool {
	return t.index != nil && t.index.fleets[replica] >= fleetsPerReplica
}

// add adds a source.
func (t *Target) add(s *Source) {
	t.sources = append(t.sources, s)
	switch {
	case t.index != nil:
		t.index.add(s)
	case len(t.sources) > fewSources:
		t.index = &index{make(map[sourceKey]*Source), make(map[string]int)}
		for _, s := range t.sources {
			t.index.add(s)
		}
	}
}

func (x *index) add(s *Source) {
	x.sources[s.key()] = s
	x.fleets[s.member.replica]++
}

// remove takes out a source that is taken out of the target.
func (x *index) remove(s *Source) {
	if x == nil {
		return
	}
	delete(x.sources, s.key())
	if x.fleets[s.member.replica]--; x.fleets[s.member.replica] == 0 {
		delete(x.fleets, s.member.replica)
	}
}
