// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// document is one dialect file as read.
type document struct {
	engine, prefix string
	carriers       []string // who exposes the engine's metrics behind a prefix of its own
	labels         Entry    // only what `labels` sets: the same for every signal
	terms          []term
}

// term is one line of `signals`: the names of an entry, newest first.
type term struct {
	entry *Entry
	names []string
	at    cursor
}

func read(file string, data []byte) (*document, error) {
	root, err := parseYAML(file, data)
	if err != nil {
		return nil, err
	}
	d := new(document)
	if err := root.mapping(d.field, "engine", "prefix", "signals"); err != nil {
		return nil, err
	}
	for _, t := range d.terms {
		t.entry.Dialect = d.engine
		t.entry.Ranks, t.entry.First = d.labels.Ranks, d.labels.First
		t.entry.Role, t.entry.Replica = d.labels.Role, d.labels.Replica
		t.entry.Reject, t.entry.Unless = d.labels.Reject, d.labels.Unless
	}
	return d, nil
}

func (d *document) field(key string, value cursor) error {
	switch key {
	case "engine":
		return value.text(&d.engine)
	case "prefix":
		return value.text(&d.prefix)
	case "carriers":
		return value.texts(&d.carriers)
	case "labels":
		return value.mapping(d.labels.labelField)
	case "signals":
		return value.mapping(d.signal)
	default:
		return value.unknown()
	}
}

func (e *Entry) labelField(key string, value cursor) error {
	switch key {
	case "role":
		return value.text(&e.Role)
	case "replica":
		return value.texts(&e.Replica)
	case "ranks":
		return value.texts(&e.Ranks)
	case "first":
		return value.texts(&e.First)
	case "reject":
		return value.texts(&e.Reject)
	case "unless":
		return value.text(&e.Unless)
	default:
		return value.unknown()
	}
}

// signal reads one line of `signals`.
func (d *document) signal(key string, value cursor) error {
	signal, ok := fleet.ParseSignal(key)
	if !ok {
		return value.errorf("not a signal")
	}
	t := term{entry: &Entry{Signal: signal, Scale: 1}, at: value}
	if err := value.mapping(t.field, "type", "names"); err != nil {
		return err
	}
	for _, name := range t.names {
		if t.entry.Kind == Counter && strings.HasSuffix(name, "_total") {
			return t.at.errorf("leave _total off %s: a counter matches with and without", name)
		}
	}
	d.terms = append(d.terms, t)
	return nil
}

func (t *term) field(key string, value cursor) error {
	switch key {
	case "type":
		return value.kind(&t.entry.Kind)
	case "names":
		t.at = value
		return value.texts(&t.names)
	case "scale":
		return value.scale(&t.entry.Scale)
	case "keep":
		return value.mapping(t.entry.keepField)
	default:
		return value.unknown()
	}
}

func (e *Entry) keepField(label string, value cursor) error {
	filter := LabelFilter{Label: label}
	err := value.texts(&filter.Values)
	e.Keep = append(e.Keep, filter)
	return err
}

func (c cursor) kind(into *Kind) error {
	var name string
	if err := c.text(&name); err != nil {
		return err
	}
	for kind, known := range kindNames {
		if name == known {
			*into = Kind(kind)
			return nil
		}
	}
	return c.errorf("want one of %s, not %s", strings.Join(kindNames[:], ", "), name)
}

func (c cursor) scale(into *float64) error {
	if err := c.number(into); err != nil {
		return err
	}
	if !(*into > 0) || math.IsInf(*into, 1) {
		return c.errorf("want a number above 0")
	}
	return nil
}

// spellings returns every form in which a metric of this name may arrive.
func (d *document) spellings(name string, kind Kind) []string {
	suffixes := []string{""}
	if kind == Counter {
		suffixes = []string{"", "_total"}
	}
	prefixes := []string{d.prefix}
	for _, carrier := range d.carriers {
		prefixes = append(prefixes, carrier+"_"+d.prefix)
	}
	var all []string
	for _, prefix := range prefixes {
		for _, suffix := range suffixes {
			all = append(all, prefix+":"+name+suffix, prefix+"_"+name+suffix)
		}
	}
	return all
}
