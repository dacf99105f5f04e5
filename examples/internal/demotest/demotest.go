// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package demotest plays the examples in simulated time: it reads the settings of
// their components, and scrapes their fleets.
package demotest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/scrapetest"
)

// Settings reads those of a component from the example's config.yaml into its
// defaults. The key is processors::fleet_outlier, for example.
func Settings[C interface{ Validate() error }](t *testing.T, key string, defaults any) C {
	t.Helper()
	text, err := os.ReadFile("config.yaml")
	require.NoError(t, err)
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal(text, &raw))
	section, err := confmap.NewFromStringMap(raw).Sub(key)
	require.NoError(t, err)
	config := defaults.(C)
	require.NoError(t, section.Unmarshal(config))
	require.NoError(t, config.Validate())
	return config
}

// Scraper scrapes what it keeps of a page: the rest, most of it, would only take
// time to be parsed.
type Scraper struct {
	keeps func(dialect.Match) bool
	known map[string]bool // families
}

// NewScraper keeps the families that a dialect has and that keeps accepts.
func NewScraper(keeps func(dialect.Match) bool) *Scraper {
	return &Scraper{keeps, map[string]bool{}}
}

// Scrape is a scrape of a target now, with its labels on the resource.
func (s *Scraper) Scrape(t *testing.T, target *fleetsim.Target) pmetric.Metrics {
	t.Helper()
	page, _ := target.AppendPage(nil)
	var kept strings.Builder
	for line := range strings.Lines(string(page)) {
		family, isType := strings.CutPrefix(line, "# TYPE ")
		if (isType || !strings.HasPrefix(line, "#")) && s.wants(family[:strings.IndexAny(family, "{ ")]) {
			kept.WriteString(line)
		}
	}
	md, err := scrapetest.Metrics(kept.String(), scrapetest.Target{Instance: target.Name(), At: time.Now()})
	require.NoError(t, err)
	resource := md.ResourceMetrics().At(0).Resource().Attributes()
	for key, value := range target.Labels() {
		resource.PutStr(key, value)
	}
	return md
}

func (s *Scraper) wants(family string) bool {
	if wanted, known := s.known[family]; known {
		return wanted
	}
	base := family
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base = strings.TrimSuffix(base, suffix)
	}
	for _, match := range dialect.Builtin().Match(base) {
		s.known[family] = s.known[family] || s.keeps(match)
	}
	return s.known[family]
}

// Gauges calls each with every point of every gauge.
func Gauges(md pmetric.Metrics, each func(metric string, point pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, point := range m.Gauge().DataPoints().All() {
					each(m.Name(), point)
				}
			}
		}
	}
}

// Attribute of a point; "" if it has none of that name.
func Attribute(point pmetric.NumberDataPoint, key string) string {
	value, ok := point.Attributes().Get(key)
	if !ok {
		return ""
	}
	return value.AsString()
}
