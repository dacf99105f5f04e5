// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scrapetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const smallPage = `# TYPE queue gauge
queue{lane="a",pod="engine"} 3
queue{lane="b"} 4
# TYPE done_total counter
done_total 7
# TYPE ttft histogram
ttft_bucket{le="0.5"} 2
ttft_bucket{le="+Inf"} 9
ttft_sum 12.5
ttft_count 9
# TYPE gc summary
gc_sum 1
gc_count 2
`

// lines writes every point as one line: its series, and its value or "ended".
func lines(md pmetric.Metrics) (all []string) {
	add := func(m pmetric.Metric, i int, ended bool, value any) {
		line := strings.ReplaceAll(series(m, pointsOf(m)[i]), "\x00", " ")
		if ended {
			value = "ended"
		}
		all = append(all, fmt.Sprintf("%s: %v", line, value))
	}
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		switch m.Type() {
		case pmetric.MetricTypeHistogram:
			for i, p := range m.Histogram().DataPoints().All() {
				add(m, i, p.Flags().NoRecordedValue(), p.BucketCounts().AsRaw())
			}
		case pmetric.MetricTypeSummary:
			for i, p := range m.Summary().DataPoints().All() {
				add(m, i, p.Flags().NoRecordedValue(), p.Count())
			}
		default:
			for i, p := range numbersOf(m).All() {
				add(m, i, p.Flags().NoRecordedValue(), p.DoubleValue())
			}
		}
	}
	return all
}

func TestTargetsLabelsGoBeforeThoseOfThePage(t *testing.T) {
	s := NewScraper("10.0.0.1:8000", map[string]string{"k8s.pod.name": "exporter"})
	md, err := s.Scrape(smallPage, map[string]string{"pod": "exporter"}, at)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"service.instance.id": "10.0.0.1:8000", "k8s.pod.name": "exporter"},
		md.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	assert.ElementsMatch(t, []string{
		"queue exported_pod=engine lane=a pod=exporter: 3",
		"queue lane=b pod=exporter: 4",
		"done_total pod=exporter: 7",
		"ttft pod=exporter: [2 7]",
		"gc pod=exporter: 2",
		"up pod=exporter: 1",
	}, lines(md))
}

func TestAFailedScrapeEndsEverySeriesOnce(t *testing.T) {
	s := NewScraper("a", nil)
	_, err := s.Scrape(smallPage, nil, at)
	require.NoError(t, err)
	later := at.Add(time.Minute)
	md := s.Fail(nil, later)
	assert.ElementsMatch(t, []string{
		"up: 0", "queue lane=a pod=engine: ended", "queue lane=b: ended", "done_total: ended", "ttft: ended", "gc: ended",
	}, lines(md))
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Name() == "ttft" {
			p := m.Histogram().DataPoints().At(0)
			assert.Equal(t, later, p.Timestamp().AsTime())
			assert.Equal(t, []uint64{0, 0}, p.BucketCounts().AsRaw())
			assert.Zero(t, p.Count())
		}
	}
	assert.Equal(t, []string{"up: 0"}, lines(s.Fail(nil, later)))
}

func TestASeriesWithOtherLabelsIsAnotherOne(t *testing.T) {
	s := NewScraper("a", nil)
	_, err := s.Scrape("queue 1\n", map[string]string{"revision": "1"}, at)
	require.NoError(t, err)
	md, err := s.Scrape("queue 1\n", map[string]string{"revision": "2"}, at)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{
		"queue revision=2: 1", "queue revision=1: ended", "up revision=2: 1", "up revision=1: ended",
	}, lines(md))
}
