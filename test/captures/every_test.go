// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build captures

package captures

import (
	"cmp"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryPage: every captured page, of engines known and unknown, passes a scrape by the built collector, which says
// what it read of it and goes on.
func TestEveryPage(t *testing.T) {
	paths := pages(t, "*.prom")
	rows := make([]string, len(paths))
	t.Run("pages", func(t *testing.T) {
		for i, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				rows[i] = scrapeOnce(t, path)
			})
		}
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "page\tup\tsamples\tread as\tignored")
	fmt.Fprint(w, strings.Join(rows, ""))
	require.NoError(t, w.Flush())
	t.Logf("what was read:\n%s", table.String())
}

// scrapeOnce lets a collector scrape a page a few times and returns a row of the table.
func scrapeOnce(t *testing.T, path string) string {
	t.Helper()
	name := filepath.Base(path)
	r := serve(t, "captured", read(t, path))
	c := startCollector(t, r)
	var up, samples float64
	require.Eventually(t, func() bool {
		seen := false
		for _, p := range c.points(t) {
			switch p.metric {
			case "up":
				up = p.value
			case "scrape_samples_scraped":
				samples = p.value
				seen = r.visits.Load() > 1
			}
		}
		return seen || !c.Running()
	}, 2*time.Minute, 200*time.Millisecond, "%s was not scraped", name)
	require.True(t, c.Running(), "the collector ended while it scraped %s", name)
	telemetry := c.telemetry(t)
	c.Stop(t)
	assert.InDelta(t, 1, up, 0, "%s could not be scraped", name)
	observations := sums(telemetry, "otelcol_processor_fleet_outlier_observations", "dialect", "signal")
	if strings.HasPrefix(name, "vllm-") || strings.HasPrefix(name, "sglang-") {
		assert.Contains(t, observations, "/running=", "nothing was read of a page of a known engine")
	}
	ignored := sums(telemetry, "otelcol_processor_fleet_outlier_ignored", "reason")
	return fmt.Sprintf("%s\t%g\t%g\t%s\t%s\n", name, up, samples, cmp.Or(observations, "-"), cmp.Or(ignored, "-"))
}

// telemetry reads what the collector says about itself.
func (c *collector) telemetry(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := http.Get("http://" + c.telemetryAddress + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text := expfmt.NewTextParser(model.UTF8Validation)
	families, err := text.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	return families
}

// sums writes the label values of every series of a counter, whether or not its name ends in _total.
func sums(families map[string]*dto.MetricFamily, name string, labels ...string) string {
	family := families[name+"_total"]
	if family == nil {
		family = families[name]
	}
	var all []string
	for _, m := range family.GetMetric() {
		var values []string
		for _, wanted := range labels {
			for _, pair := range m.GetLabel() {
				if pair.GetName() == wanted {
					values = append(values, pair.GetValue())
				}
			}
		}
		all = append(all, fmt.Sprintf("%s=%g", strings.Join(values, "/"), m.GetCounter().GetValue()))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
