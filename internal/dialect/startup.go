// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// Startup recognizes what engines say of their own start: log lines, spans and
// metrics. It is safe for concurrent use.
type Startup struct {
	first  [256][]*Line // by the first byte of their words
	spans  map[string]Span
	phases map[string][]*Phase // by every spelling of their metrics
	of     map[string]*Startup // by engine
}

// Mark is what a line of a log tells of an engine's start.
type Mark struct {
	// Name is the fact, which happened when the line was written.
	Name lifecycle.Name
	// Engine is the dialect that the line is of. Model is the name under which the
	// engine serves, if the line tells it. Copy tells apart the ranks of the engine:
	// "Worker_TP0 pid=128", "PP1 TP0".
	Engine, Model, Copy string
	// Took is how long that took which ended, 0 if the line does not tell.
	Took time.Duration
	// Cached says that there was nothing to do.
	Cached bool
	// Stamp is the time that the line itself tells.
	Stamp Stamp
}

// NewStartup makes a matcher of what the dialects of the set say of starts.
func NewStartup(set *Set) *Startup {
	all := newStartup()
	all.of = make(map[string]*Startup)
	for _, d := range set.Dialects() {
		one := all.of[d.Name]
		if one == nil {
			one = newStartup()
			one.of = all.of
			all.of[d.Name] = one
		}
		one.learn(d, true)
		all.learn(d, false)
	}
	return all
}

func newStartup() *Startup {
	return &Startup{spans: make(map[string]Span), phases: make(map[string][]*Phase)}
}

// learn adds a dialect; known says that the engine is known to speak it.
func (s *Startup) learn(d *Dialect, known bool) {
	for _, l := range d.Lines {
		if known || !l.Anyone {
			s.first[l.words[0]] = append(s.first[l.words[0]], l)
		}
	}
	for _, span := range d.Spans {
		s.spans[span.Name] = span
	}
	for _, p := range d.Phases {
		for _, name := range p.Names {
			for _, spelling := range d.spellings(name, fleet.Gauge) {
				s.phases[spelling] = append(s.phases[spelling], p)
			}
		}
	}
}

// Of returns the matcher for an engine that is known, such as the one of an
// earlier mark of the same container. It knows lines that several engines
// write, and none of other engines. For an engine without dialect it matches
// nothing.
func (s *Startup) Of(engine string) *Startup {
	if one := s.of[engine]; one != nil {
		return one
	}
	return nobody
}

var nobody = newStartup()

// Span tells which facts the two ends of the span of this name are, Unknown for
// an end that is none.
func (s *Startup) Span(name string) (begins, ends lifecycle.Name, ok bool) {
	span, ok := s.spans[name]
	return span.Begins, span.Ends, ok
}

// Metric tells which parts of a start the metric of this name measures.
func (s *Startup) Metric(name string) []*Phase { return s.phases[name] }

// farthest is how many bytes of a line may stand before its message.
const farthest = 1024

// Line reads one line of a log, with whatever the runtime, a log reader or the
// engine put before the message: times, levels, process names, colours, JSON.
// A line that tells nothing of a start costs one pass and no memory.
func (s *Startup) Line(line string) (Mark, bool) {
	if !s.promises(line) {
		return Mark{}, false
	}
	text, outer := unwrap(line)
	for i := range min(len(text), farthest) {
		for _, l := range s.first[text[i]] {
			if !strings.HasPrefix(text[i:], l.words) || !startsWord(text, i) || !isHeader(text[:i]) {
				continue
			}
			if m, ok := l.read(text[i:], line); ok {
				m.Copy = cmp.Or(m.Copy, copyOf(text[:i]))
				m.Stamp = stampOf(text[:i]).orBetter(outer)
				return m, true
			}
		}
	}
	return Mark{}, false
}

// promises tells whether the words of any line stand somewhere near the beginning.
func (s *Startup) promises(line string) bool {
	for i := range min(len(line), farthest) {
		lines := s.first[line[i]]
		if lines == nil || i > 0 && insideWord(line[i-1]) {
			continue
		}
		for _, l := range lines {
			if strings.HasPrefix(line[i:], l.words) {
				return true
			}
		}
	}
	return false
}

// insideWord tells whether a word goes on after c, which ends no colour either.
func insideWord(c byte) bool { return 'a' <= c && c <= 'z' && c != 'm' || '0' <= c && c <= '9' }

// read reads a message; line is all that it stands in.
func (l *Line) read(message, line string) (Mark, bool) {
	if l.With != "" && !strings.Contains(line, l.With) {
		return Mark{}, false
	}
	groups := l.says.FindStringSubmatch(message)
	if groups == nil {
		return Mark{}, false
	}
	group := func(i int) string {
		if i < 0 {
			return ""
		}
		return groups[i]
	}
	return Mark{
		Name: l.Tells, Engine: l.Dialect.Name, Cached: l.Cached,
		Took: duration(group(l.took)), Model: strings.Clone(group(l.model)), Copy: strings.Clone(group(l.copy)),
	}, true
}

// duration reads seconds, or a duration with its unit: 20.10, 10.308899699s,
// 812.5ms. It is 0 for what is neither, or no time that a start takes.
func duration(text string) time.Duration {
	took, err := time.ParseDuration(text)
	if err != nil {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds < longest.Seconds()) {
			return 0
		}
		took = time.Duration(seconds * float64(time.Second))
	}
	if took < 0 || took > longest {
		return 0
	}
	return took
}

// longest is longer than any part of a start takes.
const longest = 7 * 24 * time.Hour

// Engines are the engines whose starts it knows, in the order of their names.
func (s *Startup) Engines() []string {
	var all []string
	for engine, one := range s.of {
		if slices.ContainsFunc(one.first[:], func(lines []*Line) bool { return len(lines) > 0 }) {
			all = append(all, engine)
		}
	}
	slices.Sort(all)
	return all
}
