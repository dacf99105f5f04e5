// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/scrapetest"
	"github.com/llmfleet/llmfleet/internal/window"
)

// acme uses all that tells points apart.
const acme = `
engine: acme
prefix: acme
labels: {ranks: [dp], first: [tp], role: [mode], reject: [router]}
signals:
  ttft:
    - {type: histogram, names: [first_seconds]}
    - {type: histogram, names: [first_ms], unit: ms}
  waiting: {type: gauge, add: [queue, parked], keep: {priority: [""]}}
  kv_usage: {type: gauge, names: [cache], unit: percent}
  prefix_hits:
    - {type: counter, names: [cached], keep: {source: [device, host]}}
    - {type: counter, names: [cached], only: {source: [total]}}
  prompt_tokens: {type: histogram, part: sum, names: [sizes]}
  finished: {type: counter, names: [done]}
  errors: {type: counter, names: [done], only: {why: [error]}}
info:
  build_info: {engine_version: [version]}
ignore:
  "of no use": [noise]
`

const acmePage = `
# TYPE acme:first_seconds histogram
acme:first_seconds_bucket{le="1",model_name="m",dp="0"} 3
acme:first_seconds_sum{model_name="m",dp="0"} 4.5
acme:first_seconds_count{model_name="m",dp="0"} 4
# TYPE acme:first_ms histogram
acme:first_ms_sum{model_name="m",dp="0"} 4500
acme:first_ms_count{model_name="m",dp="0"} 4
# TYPE acme:queue gauge
acme:queue{model_name="m",dp="0",tp="0"} 2
acme:queue{model_name="m",dp="0",tp="1"} 2
acme:queue{model_name="m",dp="1",tp="0"} 5
acme:queue{model_name="m",dp="0",tp="0",priority="7"} 1
acme:queue{model_name="m",router="r"} 9
# TYPE acme:parked gauge
acme:parked{model_name="m",dp="0",tp="0"} 1
# TYPE acme:cache gauge
acme:cache{model_name="m",dp="0"} 250
acme:cache{model_name="m",dp="1"} 25
acme:cache{dp="2"} 25
# TYPE acme:cached_total counter
acme:cached_total{model_name="m",source="total"} 700
# TYPE acme:sizes histogram
acme:sizes_sum{model_name="m"} 1000
acme:sizes_count{model_name="m"} 4
# TYPE acme:done_total counter
acme:done_total{model_name="m",why="stop"} 8
acme:done_total{model_name="m",why="error"} 2
# TYPE acme:done_created gauge
acme:done_created{model_name="m",why="stop"} 1.7e9
# TYPE acme:build_info gauge
acme:build_info{version="3.1"} 1
# TYPE acme:noise gauge
acme:noise 1
# TYPE acme:noise_created gauge
acme:noise_created 1
# TYPE acme_cached_total gauge
acme_cached_total{model_name="m"} 1
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1
# TYPE up gauge
up 1
# TYPE stranger gauge
stranger 1
`

func explained(t *testing.T, dialects *dialect.Set, page string, groupBy ...string) map[string]Sense {
	t.Helper()
	md := scraped(t, page, time.Second)
	all := make(map[string]Sense)
	for _, sense := range Explain(Options{Dialects: dialects, GroupBy: groupBy}, md) {
		all[sense.Metric] = sense
	}
	return all
}

// scraped is the page as it was after noon.
func scraped(t *testing.T, page string, after time.Duration) pmetric.Metrics {
	t.Helper()
	md, err := scrapetest.Metrics(page, scrapetest.Target{Instance: "10.0.0.1:8000", At: time.Unix(0, int64(noon.Add(after)))})
	require.NoError(t, err)
	return md
}

func TestExplain(t *testing.T) {
	set, err := dialect.Parse("acme.yaml", []byte(acme))
	require.NoError(t, err)
	senses := explained(t, set, acmePage, "model_name")

	var told []string
	for _, name := range []string{"acme:first_seconds", "acme:first_ms", "acme:queue", "acme:parked", "acme:cache", "acme:cached_total", "acme_cached_total", "acme:sizes", "acme:done_total"} {
		for _, p := range senses[name].Told {
			reason := ""
			if p.Reason != 0 {
				reason = p.Reason.String()
			}
			told = append(told, fmt.Sprintf("%s %s %v %d rank=%s %s", name, p.Entry.Signal, p.Value, p.Count, p.Rank, reason))
		}
	}
	assert.Equal(t, []string{
		"acme:first_seconds ttft 4.5 4 rank=0 ",
		"acme:first_ms ttft 4.5 4 rank=0 unspoken", // the same under an older name
		"acme:queue waiting 2 0 rank=0 ",
		"acme:queue waiting 2 0 rank=0 unspoken", // the same by another tensor-parallel rank
		"acme:queue waiting 5 0 rank=1 ",
		"acme:queue waiting 1 0 rank=0 label", // part of the first
		"acme:queue waiting 9 0 rank= router_copy",
		"acme:parked waiting 1 0 rank=0 ",
		"acme:cache kv_usage 2.5 0 rank=0 range",
		"acme:cache kv_usage 0.25 0 rank=1 ",
		"acme:cache kv_usage 0.25 0 rank=2 no_model",
		"acme:cached_total prefix_hits 700 0 rank= label",
		"acme:cached_total prefix_hits 700 0 rank= ", // by the other form
		"acme_cached_total prefix_hits 0 0 rank= type",
		"acme_cached_total prefix_hits 0 0 rank= type",
		"acme:sizes prompt_tokens 1000 0 rank= ",
		"acme:done_total finished 8 0 rank= ",
		"acme:done_total finished 2 0 rank= ",
		"acme:done_total errors 8 0 rank= label",
		"acme:done_total errors 2 0 rank= ",
	}, told)
	identity := senses["acme:parked"].Told[0].Identity
	assert.Equal(t, "10.0.0.1:8000", identity.Replica)
	assert.Equal(t, []fleet.Label{{Name: "model_name", Value: "m"}}, identity.Keys)

	assert.Equal(t, []fleet.Facts{{fleet.EngineVersion: "3.1"}}, senses["acme:build_info"].Facts)
	for name, why := range map[string]string{
		"acme:noise": "of no use", "acme:noise_created": "when counting began", "acme:done_created": "when counting began",
		"up":                         "the scraper's word on the target",
		"process_start_time_seconds": "since when the process runs, which tells two scrapes of one process from two processes",
	} {
		sense := senses[name]
		assert.Equal(t, why, sense.Why, name)
		assert.True(t, sense.Known(), name)
	}
	stranger := senses["stranger"]
	assert.False(t, stranger.Known())
}

// TestExplainSaysWhatAReaderDoes: the points that a reader uses are those that
// are explained as used.
func TestExplainSaysWhatAReaderDoes(t *testing.T) {
	set, err := dialect.Parse("acme.yaml", []byte(acme))
	require.NoError(t, err)
	agree(t, set, acmePage)
}

// agree reads a page and explains it. A reader finds out with the first page
// which of several names is preferred: what counts is the second.
func agree(t *testing.T, set *dialect.Set, page string) {
	t.Helper()
	groupBy := []string{keyModelName}
	used := make(map[string]int64)
	var signals []fleet.Signal
	for s := range fleet.SignalCount {
		signals = append(signals, s)
	}
	for _, sense := range Explain(Options{Dialects: set, Signals: signals, GroupBy: groupBy}, scraped(t, page, 0)) {
		for _, told := range sense.Told {
			if told.Reason == 0 && told.Entry.Dialect.Component == dialect.Engine {
				used[told.Entry.Dialect.Name+" "+told.Entry.Signal.String()]++
			}
		}
	}
	const lateness = 5 * time.Second
	registry := fleet.NewRegistry(fleet.Options{
		Grids: []window.Grid{window.NewGrid(interval, time.Minute, lateness)}, Lateness: lateness, MaxReplicas: 100,
	})
	registry.Open(noon + 1)
	reader := NewReader(Options{Dialects: set, Signals: signals, GroupBy: groupBy}, registry)
	read := make(map[string]int64)
	count := func(sign int64) {
		reader.Tally().Observed(func(engine string, signal fleet.Signal, points uint64) {
			read[engine+" "+signal.String()] += sign * int64(points)
		})
	}
	reader.Read(scraped(t, page, time.Second))
	count(-1)
	reader.Read(scraped(t, page, 2*time.Second))
	count(1)
	maps.DeleteFunc(read, func(_ string, points int64) bool { return points == 0 })
	assert.Equal(t, used, read)
}

// TestExplainOnlyWhatIsAskedFor: the other signals are passed over.
func TestExplainOnlyWhatIsAskedFor(t *testing.T) {
	set, err := dialect.Parse("acme.yaml", []byte(acme))
	require.NoError(t, err)
	senses := Explain(Options{Dialects: set, Signals: []fleet.Signal{fleet.Errors}, GroupBy: []string{keyModelName}}, scraped(t, acmePage, 0))
	told := slices.DeleteFunc(senses, func(s Sense) bool { return len(s.Told) == 0 })
	require.Len(t, told, 1)
	assert.Equal(t, "acme:done_total", told[0].Metric)
	assert.Equal(t, fleet.Errors, told[0].Told[0].Entry.Signal)
}
