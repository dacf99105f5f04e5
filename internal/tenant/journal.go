// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"slices"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Journal keeps a record of every tenant of one window. Nobody is left out: where
// there are more than can be kept, who is known longest is handed out early. It
// is not safe for concurrent use.
type Journal struct {
	From, To window.Instant // the window
	partial  bool           // the journal was not there for all of it, or it is several windows
	most     int            // tenants of whom there is a record at a time
	buckets  buckets
	records  map[string]*Record
	oldest   int       // the place in order of who is known longest, once it is full
	order    []*Record // a ring
	lent     *Record
	// parts are the tenants of whom a record went out early, as long as they are
	// no more than most; then, any newcomer may be one of them.
	parts    map[string]struct{}
	anyParts bool
}

// Record is what one tenant did in one window, or in a part of it. The tokens,
// requests and durations of records of one tenant and window add up.
type Record struct {
	Tenant   string
	From, To window.Instant // the window: what ended after From, until To
	// Partial records are not all there is of the tenant and window, or may not
	// be.
	Partial bool
	Tally
	// Models, Variants and Tiers are what the requests named, in the order in
	// which they did; after the first eight stands Other.
	Models, Variants, Tiers []string
}

func (o *JournalOptions) journal(from, to window.Instant) *Journal {
	j := &Journal{
		From: from, To: to,
		most: o.MaxTenants, buckets: o.Bounds,
		records: map[string]*Record{}, parts: map[string]struct{}{},
	}
	if len(o.Bounds) == 0 {
		j.buckets = DefaultBounds
	}
	return j
}

// count counts a request. If its tenant has no record and the journal is full,
// early is the record that makes room; it is borrowed until the next call.
func (j *Journal) count(r *Request) (early *Record) {
	record := j.records[r.Tenant]
	if record == nil {
		record, early = j.open(r.Tenant)
	}
	j.buckets.count(&record.Tally, r)
	record.Models = mention(record.Models, r.Model)
	record.Variants = mention(record.Variants, r.Variant)
	record.Tiers = mention(record.Tiers, r.Tier)
	return early
}

// open makes a record of a tenant who has none.
func (j *Journal) open(name string) (record, early *Record) {
	if len(j.order) < j.most {
		record = &Record{Tally: j.buckets.newTally()}
		j.order = append(j.order, record)
	} else {
		early = j.order[j.oldest]
		delete(j.records, early.Tenant)
		early.From, early.To, early.Partial = j.From, j.To, true
		if len(j.parts) < j.most {
			j.parts[early.Tenant] = struct{}{}
		} else {
			j.anyParts = true
		}
		if record = j.lent; record == nil {
			record = &Record{Tally: j.buckets.newTally()}
		}
		j.order[j.oldest], j.lent = record, early
		j.oldest = (j.oldest + 1) % len(j.order)
	}
	_, part := j.parts[name]
	record.reset(name)
	record.Partial = part || j.anyParts
	j.records[name] = record
	return record, early
}

// reset makes a record of a tenant anew, in its memory.
func (r *Record) reset(name string) {
	r.Tally.reset()
	*r = Record{
		Tenant: name, Tally: r.Tally,
		Models: r.Models[:0], Variants: r.Variants[:0], Tiers: r.Tiers[:0],
	}
}

func (j *Journal) empty() bool { return len(j.order) == 0 }

// Each hands out the records of everyone who is kept, who is known longest first.
func (j *Journal) Each(tell func(*Record)) {
	for i := range j.order {
		r := j.order[(j.oldest+i)%len(j.order)]
		r.From, r.To, r.Partial = j.From, j.To, r.Partial || j.partial
		tell(r)
	}
}

// mentioned is how many models, variants and tiers a record tells by name.
const mentioned = 8

// mention adds a text to those that were mentioned.
func mention(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	if len(list) >= mentioned {
		text = Other
	} else {
		text = label(text)
	}
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
