// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package dialect knows how each engine, router, gateway and exporter spells
// the signals. Dialects are data: one embedded YAML file a source, and this
// package only reads and matches them. A new engine is a new file.
package dialect

//go:generate go run ./dialectdoc -o ../../docs/dialects.md

import (
	"embed"
	"sync"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Component is the part of a platform that a dialect is spoken by.
type Component uint8

// The components.
const (
	Engine Component = iota
	Router
	Gateway
	GPU
	Autoscaler
	Kubernetes
	ComponentCount // how many components there are; not a component
)

var componentNames = [ComponentCount]string{
	Engine: "engine", Router: "router", Gateway: "gateway", GPU: "gpu", Autoscaler: "autoscaler", Kubernetes: "kubernetes",
}

// String is the component's name in a dialect file.
func (c Component) String() string {
	if c >= ComponentCount {
		return "unknown"
	}
	return componentNames[c]
}

// Dialect is how one source spells the signals. It is shared and must not be
// modified.
type Dialect struct {
	Name      string // of an engine: what becomes engine_name
	About     string // what the comment at the top of its file says
	Component Component
	Versions  []string // oldest first; the versions at which a name came or went
	Labels    Labels
	Forms     []*Form // in the order of the file; those of one signal in order of preference
	Infos     []*Info
	Ignored   []Ignored
	Lines     []*Line  // of its log, at its start; of those that a message fits, the first counts
	Spans     []Span   // of its start
	Phases    []*Phase // of its start
	Prefix    string   // stands before every name; without one, names are whole
	Carriers  []string // what others put before the prefix

	placed, labelled bool // says itself what component it is of, and what its labels mean
}

// Serves tells whether who speaks the dialect is an engine, and no part of one:
// it has requests that run or wait for a token.
func (d *Dialect) Serves() bool {
	return d.Component == Engine && (d.tells(fleet.Running) || d.tells(fleet.TTFT))
}

// Labels are what the labels of a dialect's points mean. In the lists, the
// first label that is there counts.
type Labels struct {
	Model     []string // the model's name
	Role      []string // prefill, decode or unified
	Ranks     []string // tell apart the ranks that are summed into a replica (engine, dp_rank)
	First     []string // of these only one value is read, never summed over (tp_rank)
	Replica   []string // name the replica inside one target
	Tenants   []string // name who sent the request
	Others    []string // values of those that stand for all tenants that are not named
	Nobody    []string // values of those that stand for none
	Reasons   []string // why: of a finish or an error
	Pod       []string // the pod that a point is about, where that is not the scraped one
	Namespace []string // its namespace
	Node      []string // the node that a point is about
	GPUModel  []string // the accelerator's model
	Reject    []string // a point with one of these labels is a copy and no replica, …
	Unless    string   // … unless it has this label, too; "" if nothing excuses it
}

// Form is one way to spell a signal: the names that it has had, and how their
// values are read.
type Form struct {
	Entry *Entry
	// Names are spelled as in the file; the first is preferred.
	Names []string
	// Add: all names together are the signal. Otherwise each is another name
	// for the same.
	Add bool
	// Since and Until are the first and the last version that has the names;
	// empty when it is not known, or the dialect counts no versions.
	Since, Until string
	// Unit is what the values are exposed in; empty if it is the signal's own.
	Unit string

	first int // the alias of the first name
	at    cursor
	keys  map[string]cursor
}

// Part is what of a metric is read.
type Part uint8

// The parts. Sum and Count make a counter of a histogram.
const (
	Whole Part = iota
	Sum
	Count
)

var partNames = [...]string{Whole: "whole", Sum: "sum", Count: "count"}

// String is the part's name in a dialect file.
func (p Part) String() string { return partNames[p] }

// Entry is how one form of a signal is read. All points of one metric and
// replica that pass Keep, Only and the labels' First and Reject are summed
// (usage: averaged), whatever other labels they have.
type Entry struct {
	Dialect *Dialect
	Signal  fleet.Signal
	Kind    fleet.Kind // of the metric: one of this name but of another kind is not this signal
	Part    Part
	Scale   float64 // value * Scale is in the signal's canonical unit

	// AtEnd: what a request adds is counted when it ends, and not before.
	AtEnd bool

	// Least and Most bound a value in the canonical unit, beyond what the
	// signal itself allows; equal when they do not.
	Least, Most float64

	Keep []LabelFilter // a point that has the label passes only with one of the values
	Only []LabelFilter // a point passes only if it has the label, with one of the values or, if there are none, any
}

// Realtime tells whether the entry tells of tokens as they are made. A histogram
// of their number has each request's at its end.
func (e *Entry) Realtime() bool {
	return (e.Signal == fleet.GenerationTokens && e.Part == Whole || e.Signal == fleet.ITL) && !e.AtEnd
}

// InRange tells whether the entry's signal can have the value.
func (e *Entry) InRange(v float64) bool {
	return e.Signal.InRange(v) && (e.Least == e.Most || v >= e.Least && v <= e.Most)
}

// LabelFilter is a label, in each of its spellings, and values of it.
type LabelFilter struct {
	Spellings []string
	Values    []string
}

// Info is a series whose labels are facts about its replica.
type Info struct {
	Dialect       *Dialect
	Name          string
	EngineVersion []string // labels that tell it, the first that is there counts
	ModelRevision []string
	Config        []string // labels that describe the configuration, and do not differ between equal replicas
}

// Ignored is families that are not read, and why.
type Ignored struct {
	Why   string
	Names []string
}

// Match is one meaning of a metric name.
type Match struct {
	Entry *Entry
	// Alias is the name's place among all that the source has had for the
	// signal, 0 for the preferred. Where a target shows several, the lowest
	// counts.
	Alias int
	// Name is the name as the dialect's file spells it.
	Name string
}

// Set is a number of dialects, ready to match.
type Set struct {
	dialects []*Dialect
	byName   map[string][]Match // every spelling of every name
	infos    map[string]*Info
	ignored  map[string]string // why
}

// Schema is the JSON schema of dialect files, for editors and other readers.
//
//go:embed schema.json
var Schema []byte

//go:embed *.yaml
var files embed.FS

var builtin = sync.OnceValue(func() *Set {
	documents, err := readAll(files)
	if err == nil {
		var set *Set
		if set, err = compile(documents, nothing); err == nil {
			return set
		}
	}
	panic(err) // one of our own files is broken, and every test says so
})

// Builtin returns the dialects that come with the product, read once.
func Builtin() *Set { return builtin() }

// Dialects are the dialects of the set, in the order of their names. They must
// not be modified.
func (s *Set) Dialects() []*Dialect { return s.dialects }

// Match tells what the metric of exactly this name is: which signals it tells,
// one for each label filter. A name is known with either separator after its
// prefix, behind each carrier's prefix (vllm:x, vllm_x, ray_vllm_x), with
// underscores for dots, and, for counters, with and without _total. Nothing
// else is: x_created, x_by_reason or iteration_x are other metrics.
func (s *Set) Match(name string) []Match { return s.byName[name] }

// Info tells what facts the labels of the metric of this name are; nil if none.
func (s *Set) Info(name string) *Info { return s.infos[name] }

// Ignored tells why the metric of this name is not read, if its dialect says so.
func (s *Set) Ignored(name string) (why string, ok bool) {
	why, ok = s.ignored[name]
	return why, ok
}
