// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build captures

package captures

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/prometheustest"
)

// before and after are the instants at which Prometheus is told that the pages were scraped. Only their order counts.
var (
	before = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	after  = before.Add(time.Minute)
)

// families are vLLM's histograms behind the latency signals.
var families = map[string]string{
	"ttft":       "vllm:time_to_first_token_seconds",
	"itl":        "vllm:inter_token_latency_seconds",
	"tpot":       "vllm:request_time_per_output_token_seconds",
	"e2e":        "vllm:e2e_request_latency_seconds",
	"queue_time": "vllm:request_queue_time_seconds",
}

// scrape reads a page as Prometheus does and stores it as the pod's samples of an instant.
func scrape(t *testing.T, p *prometheustest.Prometheus, pod string, page []byte, at time.Time) {
	t.Helper()
	text, err := textparse.New(page, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(t, err)
	p.Load(func(app *prometheustest.Appender) {
		for {
			entry, err := text.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(t, err)
			if entry != textparse.EntrySeries {
				continue
			}
			_, _, v := text.Series()
			var series labels.Labels
			text.Labels(&series)
			app.Series(labels.NewBuilder(series).Set("pod", pod).Labels()).Append(at, v)
		}
	})
}

// ask evaluates an expression after the load, as values by pod; one of the whole fleet has an empty pod.
func ask(p *prometheustest.Prometheus, format string, args ...any) map[string]float64 {
	values := map[string]float64{}
	for _, sample := range p.Instant(fmt.Sprintf(format, args...), after) {
		values[sample.Metric.Get("pod")] = sample.F
	}
	return values
}
