// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Page is a Prometheus page of derived metrics.
type Page map[string]*dto.MetricFamily

// Fetch reads the page at a URL.
func Fetch(ctx context.Context, url string) (Page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return ReadPage(response.Body)
}

// ReadPage reads a page in the text format.
func ReadPage(text io.Reader) (Page, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("read the derived metrics: %w", err)
	}
	return families, nil
}

// Gauges calls each with every point of a gauge whose labels are those wanted,
// and others perhaps.
func (p Page) Gauges(name string, want map[string]string, each func(labels map[string]string, value float64)) {
	for _, point := range p[name].GetMetric() {
		labels := map[string]string{}
		for _, pair := range point.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if matches(labels, want) {
			each(labels, point.GetGauge().GetValue())
		}
	}
}

func matches(labels, want map[string]string) bool {
	for name, value := range want {
		if labels[name] != value {
			return false
		}
	}
	return true
}
