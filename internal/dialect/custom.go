// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

// Custom is the set of a dialect that stands in no file, with forms of different
// signals: they may share names, for what they ask of labels tells their points
// apart.
func Custom(d *Dialect) *Set {
	d.number()
	s := &Set{dialects: []*Dialect{d}, byName: make(map[string][]Match)}
	for _, f := range d.Forms {
		f.Entry.Dialect = d
		for i, name := range f.Names {
			for _, spelling := range d.spellings(name, f.Entry.Kind) {
				s.byName[spelling] = append(s.byName[spelling], Match{Entry: f.Entry, Alias: f.alias(i), Name: name})
			}
		}
	}
	return s
}
