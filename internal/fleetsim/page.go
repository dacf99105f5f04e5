// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"slices"
	"strings"
)

// kind is a family's type on the page.
type kind string

const (
	gaugeKind     kind = "gauge"
	counterKind   kind = "counter"
	histogramKind kind = "histogram"
	summaryKind   kind = "summary"
)

// family describes one metric family of a page: what it is called and which
// numbers of the engine it shows.
type family struct {
	name   string // without the _total of a counter that the client appends
	help   string
	kind   kind
	labels string // the label set all its series carry: a key of dialect.labels
	series []series
	bounds []float64 // of a histogram; of tokens up to max_model_len if nil
	lazy   bool      // a series appears with the first thing it counts
}

// series is one series of a family: its own labels as name, value, name, value,
// and the number behind it.
type series struct {
	labels []string
	value  measure // of a gauge or counter
	sample sample  // of a histogram or summary
}

func at(m measure) series { return series{value: m} }

func by(m measure, label, value string) series {
	return series{value: m, labels: []string{label, value}}
}

// exposedName is the name of a gauge's or counter's samples.
func (f *family) exposedName() string {
	if f.kind == counterKind && !strings.HasSuffix(f.name, "_total") {
		return f.name + "_total"
	}
	return f.name
}

// block is one family on the page of one engine, with everything but the
// numbers: made once, when the engine boots.
type block struct {
	family   *family
	declared string // as its TYPE line names it
	head     string
	lines    []line
	twin     string // head of the _created family, if there is one
}

// line is one series on the page, ready up to its numbers.
type line struct {
	series  *series
	value   string // prefix of a gauge or counter
	buckets []string
	count   string
	sum     string
	created string
}

// newPage lays out the page of e and gives its histograms their bounds.
func newPage(e *engine) []block {
	var page []block
	for i := range e.dialect.families {
		f := &e.dialect.families[i]
		bounds := f.bounds
		if bounds == nil {
			bounds = tokenBounds(e.fleet.Limits.MaxModelLen)
		}
		if f.kind == histogramKind || f.kind == summaryKind {
			for j := range f.series {
				s := f.series[j].sample
				if changed, ok := e.bounds[s]; ok {
					bounds = changed
				}
				e.samples[s] = newHistogram(bounds)
			}
		}
		page = append(page, newBlock(e, f, bounds))
	}
	return page
}

func newBlock(e *engine, f *family, bounds []float64) block {
	d, name := e.dialect, f.exposedName()
	b := block{family: f, declared: d.declared(f)}
	b.head = head(b.declared, f.help, f.kind)
	base := d.labels[f.labels](e)
	for i := range f.series {
		s := &f.series[i]
		own := slices.Concat(base, s.labels)
		l := line{series: s, value: linePrefix(name, own)}
		if f.kind == histogramKind {
			for _, bound := range bounds {
				l.buckets = append(l.buckets, bucketPrefix(f.name, own, string(d.appendNumber(nil, bound, false))))
			}
			l.buckets = append(l.buckets, bucketPrefix(f.name, own, "+Inf"))
		}
		l.count, l.sum = linePrefix(f.name+"_count", own), linePrefix(f.name+"_sum", own)
		l.created = linePrefix(f.name+"_created", own)
		b.lines = append(b.lines, l)
	}
	if d.created && f.kind != gaugeKind && f.labels != processLabels {
		b.twin = head(f.name+"_created", f.help, gaugeKind)
	}
	return b
}

func head(name, help string, k kind) string {
	return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + string(k) + "\n"
}

func bucketPrefix(name string, labels []string, le string) string {
	return linePrefix(name+"_bucket", slices.Concat(labels, []string{"le", le}))
}

// linePrefix writes a sample line up to its number: labels sorted by name, as
// the Python client sorts them.
func linePrefix(name string, labels []string) string {
	if len(labels) == 0 {
		return name + " "
	}
	pairs := make([]string, 0, len(labels)/2)
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+"="+quote(labels[i+1]))
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "} "
}

var escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func quote(value string) string { return `"` + escapeLabel.Replace(value) + `"` }

// tokenBounds are vLLM's bounds for token counts: 1, 2, 5, 10, 20, 50, ... up
// to the longest request.
func tokenBounds(maxModelLen int) []float64 {
	var bounds []float64
	for decade := 1; ; decade *= 10 {
		for _, mantissa := range []int{1, 2, 5} {
			if decade*mantissa > maxModelLen {
				return bounds
			}
			bounds = append(bounds, float64(decade*mantissa))
		}
	}
}
