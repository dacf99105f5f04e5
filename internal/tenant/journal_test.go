// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/window"
)

// diary is Journals, and how much time went by for those who use it.
type diary struct {
	*Journals
	now window.Instant
}

func openDiary(o JournalOptions) *diary {
	o.Window, o.MaxEnded = time.Minute, cmp.Or(o.MaxEnded, 1)
	return &diary{NewJournals(o, epoch), epoch}
}

// send counts a request of a tenant.
func (d *diary) send(tenant string) *Record {
	return d.Count(&Request{Tenant: tenant, TTFT: -1}, d.now)
}

// at sets the clock.
func (d *diary) at(after time.Duration) { d.now = epoch.Add(after) }

// tell takes the records of the windows that wait, in order.
func (d *diary) tell() (records []Record) {
	for j := d.Next(); j != nil; j = d.Next() {
		j.Each(func(r *Record) { records = append(records, *r) })
		d.Told()
	}
	return records
}

// turnAt turns, and takes the records.
func (d *diary) turnAt(after time.Duration) []Record {
	d.at(after)
	d.Turn(d.now)
	return d.tell()
}

// telling is a record in a line: of whom, how many requests from when to when.
func telling(records []Record) (lines []string) {
	for _, r := range records {
		part := ""
		if r.Partial {
			part = " partial"
		}
		lines = append(lines, fmt.Sprintf("%s %d %s-%s%s", r.Tenant, r.Requests[OK], r.From.Sub(epoch), r.To.Sub(epoch), part))
	}
	return lines
}

func TestEveryoneHasARecordOfTheWindow(t *testing.T) {
	d := openDiary(JournalOptions{MaxTenants: 100, Bounds: []float64{1}})
	for i := range 100 {
		r := &Request{
			Tenant: fmt.Sprint("user ", i), Model: "m", Tier: "gold", Variant: "v1",
			Tokens: [TokenTypeCount]uint64{Output: uint64(i)}, Known: [TokenTypeCount]bool{Output: true}, TTFT: 0.5,
		}
		require.Nil(t, d.Count(r, epoch.Add(30*time.Second)))
	}
	records := d.turnAt(time.Minute)
	require.Len(t, records, 100)
	assert.Equal(t, Record{
		Tenant: "user 7", From: epoch, To: epoch.Add(time.Minute),
		Tally: Tally{
			Tokens: [TokenTypeCount]uint64{Output: 7}, Requests: [OutcomeCount]uint64{OK: 1}, Known: [TokenTypeCount]uint64{Output: 1},
			TTFT: Durations{Count: 1, Sum: 0.5, Counts: []uint64{1, 0}},
		},
		Models: []string{"m"}, Variants: []string{"v1"}, Tiers: []string{"gold"},
	}, records[7])
	assert.Empty(t, d.turnAt(2*time.Minute), "the next window begins with nobody")
}

func TestOnePastTheLimitIsToldEarly(t *testing.T) {
	d := openDiary(JournalOptions{MaxTenants: 2})
	d.at(time.Second)
	require.Nil(t, d.send("a"))
	require.Nil(t, d.send("b"))
	require.Nil(t, d.send("a"))
	early := d.send("c")
	require.NotNil(t, early, "a is known longest")
	assert.Equal(t, []string{"a 2 0s-1m0s partial"}, telling([]Record{*early}))
	assert.Equal(t, "b", d.send("a").Tenant)

	assert.Equal(t, []string{"c 1 0s-1m0s", "a 1 0s-1m0s partial"}, telling(d.turnAt(time.Minute)), "the other part of a went out early")
	require.Nil(t, d.send("a"))
	assert.Equal(t, []string{"a 1 1m0s-2m0s"}, telling(d.turnAt(2*time.Minute)))
}

// TestWindowsEndByTheClock, whether anybody tells of them or not: a request that
// comes at the end is in, one that comes after is in the next.
func TestWindowsEndByTheClock(t *testing.T) {
	d := openDiary(JournalOptions{MaxTenants: 2, MaxEnded: 2})
	for _, after := range []time.Duration{time.Second, time.Minute, time.Minute + 1, 2 * time.Minute} {
		d.at(after)
		d.send("a")
	}
	assert.Equal(t, []string{"a 2 0s-1m0s"}, telling(d.tell()))
	d.at(5*time.Minute + 1)
	d.send("a")
	assert.Equal(t, []string{"a 2 1m0s-2m0s"}, telling(d.tell()), "however late the next request comes")
	assert.Equal(t, []string{"a 1 5m0s-6m0s"}, telling(d.turnAt(10*time.Minute)), "however late anybody looks")
	assert.Zero(t, d.Merged())
}

// TestQuietWindowsAreNotTold, and so are in nobody's way.
func TestQuietWindowsAreNotTold(t *testing.T) {
	d := openDiary(JournalOptions{MaxTenants: 2})
	for minute := range 5 {
		d.at(time.Duration(minute+1) * time.Minute)
		d.Turn(d.now)
		assert.Nil(t, d.Next())
	}
	d.send("a")
	assert.Equal(t, []string{"a 1 5m0s-6m0s"}, telling(d.turnAt(6*time.Minute)))
	assert.Zero(t, d.Merged())
}

// TestWindowsOfWhichItSawAPart: of that in which it begins, of that in which it
// ends.
func TestWindowsOfWhichItSawAPart(t *testing.T) {
	d := openDiary(JournalOptions{MaxTenants: 2})
	d.at(10 * time.Second)
	d.Journals = NewJournals(d.JournalOptions, d.now)
	d.send("a")
	assert.Equal(t, []string{"a 1 0s-1m0s partial"}, telling(d.turnAt(time.Minute)))
	d.at(70 * time.Second)
	d.send("a")
	d.End(d.now)
	assert.Equal(t, []string{"a 1 1m0s-1m10s partial"}, telling(d.tell()))
	d.Turn(d.now.Add(time.Hour))
	assert.Nil(t, d.Next(), "there is no window any more")
}

// TestAClockThatStepsBack: the window stays the one that it was.
func TestAClockThatStepsBack(t *testing.T) {
	d := openDiary(JournalOptions{MaxTenants: 2})
	d.turnAt(10 * time.Minute)
	d.at(time.Minute)
	d.send("a")
	d.End(d.now)
	assert.Equal(t, []string{"a 1 10m0s-10m0s partial"}, telling(d.tell()))
}

// TestWindowsThatWait: as many as may; then the open one goes on until there is
// room, and says so.
func TestWindowsThatWait(t *testing.T) {
	d := openDiary(JournalOptions{MaxTenants: 1, MaxEnded: 2})
	for minute := range 4 {
		d.at(time.Duration(minute)*time.Minute + time.Second)
		require.Nil(t, d.send("a"))
	}
	assert.EqualValues(t, 1, d.Merged())
	d.Next().Each(func(r *Record) { assert.Equal(t, []string{"a 1 0s-1m0s"}, telling([]Record{*r})) })
	d.Told()
	d.at(4*time.Minute - 1)
	assert.Equal(t, []string{"a 2 2m0s-4m0s partial"}, telling([]Record{*d.send("b")}), "what makes room says so, too")
	assert.Equal(t, []string{"a 1 1m0s-2m0s", "b 1 2m0s-4m0s partial"}, telling(d.turnAt(4*time.Minute)))
	d.send("b")
	assert.Equal(t, []string{"b 1 4m0s-5m0s"}, telling(d.turnAt(5*time.Minute)), "and all is as before")
	assert.EqualValues(t, 1, d.Merged())
}

func TestRecordsNameSoMuch(t *testing.T) {
	d := openDiary(JournalOptions{MaxTenants: 2})
	for i := range 30 {
		d.Count(&Request{Tenant: "a", Model: fmt.Sprint("m", i%12), Tier: "two\nlines", Variant: "sk-abc", TTFT: -1}, epoch)
	}
	r := d.turnAt(time.Minute)[0]
	assert.Equal(t, []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", Other}, r.Models)
	assert.Equal(t, []string{Invalid}, r.Tiers)
	assert.Equal(t, []string{Invalid}, r.Variants)
}

// tallies are what requests of each tenant add up to.
type tallies map[string]Tally

func (x tallies) hear(name string, add func(*Tally)) {
	tally, ok := x[name]
	if !ok {
		tally = buckets{0.25, 1, 10}.newTally()
	}
	add(&tally)
	x[name] = tally
}

// TestRecordsAddUp: over all records, whatever is told early or late, stands
// what was counted; and a record that is not partial is the only one of its
// tenant in its window, and of what was sent in that window.
func TestRecordsAddUp(t *testing.T) {
	type page struct {
		tenant string
		from   window.Instant
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		d := openDiary(JournalOptions{MaxTenants: limit, MaxEnded: rapid.IntRange(1, 3).Draw(t, "waiting"), Bounds: []float64{0.25, 1, 10}})
		counted, told, pages, sent := tallies{}, tallies{}, map[page]int{}, map[page]uint64{}
		whole := map[page]uint64{}
		take := func(r *Record) {
			require.Less(t, r.From, r.To)
			told.hear(r.Tenant, func(sum *Tally) { sum.add(&r.Tally) })
			p := page{r.Tenant, r.From}
			pages[p]++
			if !r.Partial {
				require.Equal(t, time.Minute, r.To.Sub(r.From))
				whole[p] = r.Requests[OK] + r.Requests[Failed] + r.Requests[Throttled]
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "requests") {
			d.now = d.now.Add(rapid.SampledFrom([]time.Duration{1, 7 * time.Second, 40 * time.Second, 3 * time.Minute}).Draw(t, "later"))
			r := drawRequest(t)
			counted.hear(r.Tenant, func(tally *Tally) { buckets{0.25, 1, 10}.count(tally, r) })
			sent[page{r.Tenant, (d.now - 1) / window.Instant(time.Minute) * window.Instant(time.Minute)}]++
			if early := d.Count(r, d.now); early != nil {
				require.True(t, early.Partial)
				take(early)
			}
			require.LessOrEqual(t, len(d.open.records), limit)
			require.LessOrEqual(t, len(d.ended), d.MaxEnded)
			if j := d.Next(); j != nil && rapid.Bool().Draw(t, "told") {
				j.Each(take)
				d.Told()
			}
		}
		d.End(d.now.Add(1))
		for j := d.Next(); j != nil; j = d.Next() {
			j.Each(take)
			d.Told()
		}
		require.Equal(t, counted, told)
		for p, n := range whole {
			require.Equal(t, 1, pages[p], "%s came in parts", p.tenant)
			require.Equal(t, sent[p], n)
		}
	})
}
