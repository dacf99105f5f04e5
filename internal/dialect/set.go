// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Parse reads one dialect file. It accepts nothing that it does not know, and
// its errors say where: "file:line: key: what is wrong".
func Parse(file string, data []byte) (*Set, error) {
	d, err := read(file, data)
	if err != nil {
		return nil, err
	}
	return compile([]*Dialect{d}, nothing)
}

// nothing is replaced in a set by itself.
func nothing(*Dialect, *Form, string) bool { return false }

// readAll reads every YAML file at the top of fsys.
func readAll(fsys fs.FS) ([]*Dialect, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*Dialect
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		d, err := read(name, data)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// compile makes a set of dialects, less the names that are replaced. Of facts
// and of what is ignored, the last one's word counts.
func compile(dialects []*Dialect, replaced func(*Dialect, *Form, string) bool) (*Set, error) {
	s := &Set{
		dialects: slices.SortedStableFunc(slices.Values(dialects), func(a, b *Dialect) int { return cmp.Compare(a.Name, b.Name) }),
		byName:   make(map[string][]Match),
		infos:    make(map[string]*Info),
		ignored:  make(map[string]string),
	}
	for _, d := range dialects {
		if err := s.learn(d, replaced); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// learn adds one dialect to the set.
func (s *Set) learn(d *Dialect, replaced func(*Dialect, *Form, string) bool) error {
	for _, f := range d.Forms {
		for i, name := range f.Names {
			if replaced(d, f, name) {
				continue
			}
			m := Match{Entry: f.Entry, Alias: f.alias(i), Name: name}
			if err := s.claim(d.spellings(name, f.Entry.Kind), m); err != nil {
				return f.at.errorf("%w", err)
			}
		}
	}
	for _, info := range d.Infos {
		for _, spelling := range d.spellings(info.Name, fleet.Gauge) {
			s.infos[spelling] = info
		}
	}
	for _, ignored := range d.Ignored {
		for _, name := range ignored.Names {
			for _, spelling := range d.spellings(name, fleet.Counter) {
				s.ignored[spelling] = ignored.Why
			}
		}
	}
	return nil
}

// number gives the names of each signal their places, over all of its forms.
func (d *Dialect) number() {
	next := make(map[fleet.Signal]int)
	for _, f := range d.Forms {
		f.first = next[f.Entry.Signal]
		next[f.Entry.Signal] = f.alias(len(f.Names)-1) + 1
	}
}

// alias is the place of the form's i-th name.
func (f *Form) alias(i int) int {
	if f.Add {
		return f.first
	}
	return f.first + i
}

// claim gives every spelling of one name its meaning. Another meaning may stand
// beside it if the points tell them apart.
func (s *Set) claim(spellings []string, m Match) error {
	for _, spelling := range spellings {
		for _, other := range s.byName[spelling] {
			if !apart(m.Entry, other.Entry) {
				return fmt.Errorf("%s is already %s of %s", spelling, other.Entry.Signal, other.Entry.Dialect.Name)
			}
		}
		s.byName[spelling] = append(s.byName[spelling], m)
	}
	return nil
}

// apart tells whether two entries may share a name: as different signals of one
// dialect, by different labels, or because one wants a label that is not on the
// other's points.
func apart(a, b *Entry) bool {
	filtered := len(a.Only) > 0 || len(b.Only) > 0
	if a.Dialect.Name != b.Dialect.Name {
		return filtered
	}
	return a.Signal != b.Signal || filtered
}

// spellings returns every form in which a metric of this name may arrive.
func (d *Dialect) spellings(name string, kind fleet.Kind) []string {
	names := []string{name}
	if kind == fleet.Counter {
		names = append(names, name+"_total")
	}
	var all []string
	for _, name := range names {
		if d.Prefix == "" {
			all = append(all, flattened(name)...)
			continue
		}
		prefixes := []string{d.Prefix}
		for _, carrier := range d.Carriers {
			prefixes = append(prefixes, carrier+"_"+d.Prefix)
		}
		for _, prefix := range prefixes {
			all = append(all, prefix+":"+name, prefix+"_"+name)
		}
	}
	return all
}

// flattened is a name as OpenTelemetry spells it and as Prometheus does, which
// knows no dots, and which many make do without colons.
func flattened(name string) []string {
	flat := strings.NewReplacer(".", "_", ":", "_").Replace(name)
	if flat == name {
		return []string{name}
	}
	return []string{name, flat}
}

// with returns a set in which others stand, too: what they say of a signal of
// their dialect, or of a name of anyone's, counts instead of what was said
// before.
func (s *Set) with(others []*Dialect) (*Set, error) {
	names := make(map[string]bool)
	for _, o := range others {
		if err := o.inherit(s.dialects); err != nil {
			return nil, err
		}
		o.speak(names)
	}
	replaced := func(d *Dialect, f *Form, name string) bool {
		if slices.Contains(others, d) {
			return false
		}
		return slices.ContainsFunc(others, func(o *Dialect) bool { return o.Name == d.Name && o.tells(f.Entry.Signal) }) ||
			slices.ContainsFunc(d.spellings(name, f.Entry.Kind), func(spelling string) bool { return names[spelling] })
	}
	return compile(slices.Concat(s.dialects, others), replaced)
}

// inherit takes from the known dialect of the same name what it does not say
// itself: what component it is of, and what its labels mean. The prefix it has
// to say, lest its names be taken for others.
func (d *Dialect) inherit(known []*Dialect) error {
	i := slices.IndexFunc(known, func(k *Dialect) bool { return k.Name == d.Name })
	if i < 0 {
		return nil
	}
	if d.Prefix == "" && known[i].Prefix != "" && len(d.Forms) > 0 {
		return d.Forms[0].at.errorf("there is no prefix: the names of %s stand behind one; write prefix: %s, or for my_queue prefix: my and the name queue",
			d.Name, known[i].Prefix)
	}
	if !d.placed {
		d.Component = known[i].Component
	}
	if !d.labelled {
		d.Labels = known[i].Labels
	}
	return nil
}

// speak adds every spelling of every name that the dialect says anything of.
func (d *Dialect) speak(names map[string]bool) {
	add := func(name string, kind fleet.Kind) {
		for _, spelling := range d.spellings(name, kind) {
			names[spelling] = true
		}
	}
	for _, f := range d.Forms {
		for _, name := range f.Names {
			add(name, f.Entry.Kind)
		}
	}
	for _, info := range d.Infos {
		add(info.Name, fleet.Gauge)
	}
	for _, ignored := range d.Ignored {
		for _, name := range ignored.Names {
			add(name, fleet.Counter)
		}
	}
}

// tells tells whether the dialect has the signal.
func (d *Dialect) tells(signal fleet.Signal) bool {
	return slices.ContainsFunc(d.Forms, func(f *Form) bool { return f.Entry.Signal == signal })
}
