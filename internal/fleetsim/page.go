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

// dialect is how one engine writes a page.
type dialect struct {
	families []family
	// labels gives the label sets that families name.
	labels map[string]func(*Fleet) []string
	// created tells whether counters and histograms have a _created twin, which
	// the Python client writes unless several processes share the page.
	created bool
	// countLast tells whether _sum comes before the buckets and _count after,
	// as on pages that several processes share.
	countLast bool
	// hideEmpty tells whether a family without series is left out whole.
	hideEmpty bool
}

var dialects = map[EngineKind]*dialect{VLLM: &vllmDialect, SGLang: &sglangDialect}

func findFamily(f *Fleet, name string) *family {
	d := dialects[f.Engine]
	if d == nil {
		return nil
	}
	i := slices.IndexFunc(d.families, func(x family) bool { return x.exposedName() == name })
	if i < 0 {
		return nil
	}
	return &d.families[i]
}

// exposedName is the name in the family's HELP and TYPE lines.
func (f *family) exposedName() string {
	if f.kind == counterKind && !strings.HasSuffix(f.name, "_total") {
		return f.name + "_total"
	}
	return f.name
}

// page is the layout of one engine's page: everything but the numbers, made
// once when the engine boots.
type page struct {
	dialect *dialect
	blocks  []block
}

// block is one family on the page. Every line is ready up to its number.
type block struct {
	family *family
	head   string
	lines  []line
	twin   string // head of the _created family, if there is one
}

type line struct {
	series  *series
	value   string // prefix of a gauge or counter
	buckets []string
	count   string
	sum     string
	created string
}

// newPage lays out the page of e and gives its histograms their bounds.
func newPage(e *engine) page {
	p := page{dialect: dialects[e.fleet.Engine]}
	for i := range p.dialect.families {
		f := &p.dialect.families[i]
		bounds := f.bounds
		if bounds == nil {
			bounds = tokenBounds(e.fleet.Limits.MaxModelLen)
		}
		if changed, ok := e.bounds[f.name]; ok {
			bounds = changed
		}
		p.blocks = append(p.blocks, newBlock(p.dialect, f, e.fleet, bounds))
		for j := range f.series {
			if f.kind == histogramKind || f.kind == summaryKind {
				e.samples[f.series[j].sample] = newHistogram(bounds)
			}
		}
	}
	return p
}

func newBlock(d *dialect, f *family, fleet *Fleet, bounds []float64) block {
	name := f.exposedName()
	b := block{family: f, head: head(name, f.help, string(f.kind))}
	base := d.labels[f.labels](fleet)
	for i := range f.series {
		s := &f.series[i]
		own := slices.Concat(base, s.labels)
		l := line{series: s, value: linePrefix(name, own)}
		if f.kind == histogramKind {
			for _, bound := range bounds {
				l.buckets = append(l.buckets, bucketPrefix(f.name, own, string(appendNumber(nil, bound))))
			}
			l.buckets = append(l.buckets, bucketPrefix(f.name, own, "+Inf"))
		}
		l.count, l.sum = linePrefix(f.name+"_count", own), linePrefix(f.name+"_sum", own)
		l.created = linePrefix(f.name+"_created", own)
		b.lines = append(b.lines, l)
	}
	if d.created && f.kind != gaugeKind && f.labels != processLabels {
		b.twin = head(f.name+"_created", f.help, string(gaugeKind))
	}
	return b
}

func head(name, help, kind string) string {
	return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n"
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

// appendPage appends the whole page of this moment.
func (e *engine) appendPage(dst []byte) []byte {
	e.refresh()
	for i := range e.page.blocks {
		b := &e.page.blocks[i]
		if frozen, ok := e.stale[b.family.exposedName()]; ok {
			dst = append(dst, frozen...)
			continue
		}
		dst = e.appendBlock(dst, b)
	}
	return dst
}

// suspend makes a family stale: frozen as it is now, or gone.
func (e *engine) suspend(name string, mode StaleMode) {
	e.stale[name] = nil
	i := slices.IndexFunc(e.page.blocks, func(b block) bool { return b.family.exposedName() == name })
	if mode == Freeze {
		e.refresh()
		e.stale[name] = e.appendBlock(nil, &e.page.blocks[i])
	}
}

func (e *engine) appendBlock(dst []byte, b *block) []byte {
	shown := b.lines
	if b.family.lazy {
		shown = nil
		for i := range b.lines {
			if e.used(b.family.kind, b.lines[i].series) {
				shown = append(shown, b.lines[i])
			}
		}
	}
	if len(shown) == 0 && e.page.dialect.hideEmpty {
		return dst
	}
	dst = append(dst, b.head...)
	for i := range shown {
		dst = e.appendLine(dst, b.family.kind, &shown[i])
	}
	if len(shown) == 0 || b.twin == "" {
		return dst
	}
	dst = append(dst, b.twin...)
	since := createdAt
	if b.family.lazy {
		since = firstFinishedAt
	}
	for i := range shown {
		dst = appendValue(dst, shown[i].created, e.values[since])
	}
	return dst
}

// used tells whether a series has counted anything.
func (e *engine) used(k kind, s *series) bool {
	if k == counterKind {
		return e.values[s.value] > 0
	}
	return e.samples[s.sample].count > 0
}

func (e *engine) appendLine(dst []byte, k kind, l *line) []byte {
	if k == gaugeKind || k == counterKind {
		return appendValue(dst, l.value, e.values[l.series.value])
	}
	h := &e.samples[l.series.sample]
	last := e.page.dialect.countLast
	if last {
		dst = appendValue(dst, l.sum, h.sum)
	}
	below := uint64(0)
	for i, prefix := range l.buckets {
		below += h.counts[i]
		dst = appendValue(dst, prefix, float64(below))
	}
	dst = appendValue(dst, l.count, float64(h.count))
	if !last {
		dst = appendValue(dst, l.sum, h.sum)
	}
	return dst
}

func appendValue(dst []byte, prefix string, v float64) []byte {
	return append(appendNumber(append(dst, prefix...), v), '\n')
}
