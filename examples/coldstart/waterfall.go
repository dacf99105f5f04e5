// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// unattributed is the stage that stands for what nothing told explains.
const unattributed = "unattributed"

// width is how many columns the time of a start has.
const width = 44

// What a bar is drawn with.
const (
	waitedFor = '█' // the replica waited for it
	beside    = '░' // it ran beside what the replica waited for
	unknown   = '?' // nothing told explains it
	later     = '+' // it came after the replica was ready
	around    = '─' // it holds other steps
)

// mostWaitedFor is how many stages are named that cost the most.
const mostWaitedFor = 3

// print writes the start for people.
func (s *start) print(out io.Writer) error {
	p := printer{out: out}
	s.head(&p)
	s.waterfall(&p)
	s.summary(&p)
	return p.err
}

// printer keeps the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (s *start) head(p *printer) {
	known := func(key string) string { return cmp.Or(text(s.resource, key), "unknown") }
	p.line("Pod:   %s/%s on %s, %s (%s)", known("k8s.namespace.name"), known("k8s.pod.name"), known("k8s.node.name"), known("model_name"), known("engine_name"))
	outcome := "ready after " + round(s.total)
	if s.failure != "" {
		outcome = fmt.Sprintf("%s after %s: %s", text(s.about, prefix+"outcome"), round(s.total), s.failure)
	}
	p.line("Start: %s, %s", cmp.Or(text(s.about, prefix+"class"), "of unknown class"), outcome)
	p.line("Trace: %s, the pod's uid", s.trace)
}

// waterfall writes a line for each step, its bar where it was in time.
func (s *start) waterfall(p *printer) {
	label, end := len("STAGE"), s.total
	for i := range s.steps {
		label, end = max(label, utf8.RuneCountInString(s.steps[i].label())), max(end, s.steps[i].to)
	}
	p.line("\n%-*s  %9s  %9s", label, "STAGE", "FROM", "TOOK")
	for i := range s.steps {
		step := &s.steps[i]
		p.line("%-*s  %9s  %9s  %s", label, step.label(), round(step.from), round(step.took()), step.bar(s.total, end))
	}
	p.line("\n%c the replica waited for it  %c beside that  %c nothing told explains it  %c after it was ready", waitedFor, beside, unknown, later)
}

// label names a step.
func (s *step) label() string {
	of := s.container
	if s.attempt > 0 {
		of = fmt.Sprintf("%s, restart %d", of, s.attempt)
	}
	if of != "" {
		of = " (" + of + ")"
	}
	return strings.Repeat("  ", s.depth) + s.name + of
}

// bar draws a step of a start that took total, where it is before the end.
func (s *step) bar(total, end time.Duration) string {
	if s.took() <= 0 {
		return ""
	}
	mark := beside
	switch {
	case s.holds:
		mark = around
	case s.from >= total:
		mark = later
	case s.name == unattributed:
		mark = unknown
	case s.critical > 0:
		mark = waitedFor
	}
	from, to := int(s.from*width/end), int(s.to*width/end)
	from = min(from, width-1)
	return strings.Repeat(" ", from) + strings.Repeat(string(mark), max(to-from, 1))
}

func (s *start) summary(p *printer) {
	p.line("\nTotal         %s%s", round(s.total), s.firstToken())
	p.line("Waited for    %s", s.dominant())
	p.line("Unattributed  %s", s.share(seconds(s.about, prefix+"unattributed")))
	var between time.Duration
	gaps := 0
	for i := range s.steps {
		switch step := &s.steps[i]; {
		case step.name != unattributed:
		case len(step.missing) > 0:
			p.line("              %s from %s on, as nobody told %s", round(step.took()), round(step.from), strings.Join(step.missing, ", "))
		default:
			between += step.took()
			gaps++
		}
	}
	if gaps > 0 {
		p.line("              %s in %d gaps for which there is no fact to tell", round(between), gaps)
	}
	p.line("Wasted        %s", s.share(seconds(s.about, prefix+"wasted")))
	for i := range s.steps {
		if step := &s.steps[i]; step.holds && step.failure != "" {
			p.line("              %s from %s on, and the wait after it: %s", step.name, round(step.from), step.failure)
		}
	}
}

// firstToken says how long after being ready the replica made its first token.
func (s *start) firstToken() string {
	for i := range s.steps {
		if step := &s.steps[i]; step.name == "first_token" {
			return fmt.Sprintf(", and the first token %s later", round(step.to-s.total))
		}
	}
	return ""
}

// dominant names the stages that the replica waited for longest.
func (s *start) dominant() string {
	total := map[string]time.Duration{}
	var names []string
	for i := range s.steps {
		step := &s.steps[i]
		if step.critical > 0 && step.name != unattributed {
			if total[step.name] == 0 {
				names = append(names, step.name)
			}
			total[step.name] += step.critical
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(total[b], total[a]) })
	var parts []string
	for _, name := range names[:min(len(names), mostWaitedFor)] {
		parts = append(parts, name+" "+s.share(total[name]))
	}
	return strings.Join(parts, ", ")
}

// share is a time and its share of the whole.
func (s *start) share(d time.Duration) string {
	if s.total <= 0 {
		return round(d)
	}
	return fmt.Sprintf("%s (%.0f %%)", round(d), 100*d.Seconds()/s.total.Seconds())
}

// round writes a time to tenths of seconds.
func round(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
