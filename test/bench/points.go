// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/scrapetest"
)

// pointsOf makes of a page in text format what the prometheus receiver makes
// of it, `up` included.
func pointsOf(page []byte) (pmetric.Metrics, error) {
	md, err := scrapetest.Metrics(string(page), scrapetest.Target{})
	if err != nil {
		return pmetric.Metrics{}, err
	}
	up := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	up.SetName("up")
	up.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(1)
	return md, nil
}

// address makes the page that of one replica at one time: the resource of its
// pod, target labels on every point, one timestamp.
func address(md pmetric.Metrics, replica int, at time.Time) {
	pod := fmt.Sprintf("vllm-%d", replica)
	resource := md.ResourceMetrics().At(0).Resource().Attributes()
	resource.PutStr("service.name", "engines")
	resource.PutStr("service.instance.id", pod+":8000")
	resource.PutStr("server.address", pod)
	resource.PutStr("server.port", "8000")
	resource.PutStr("url.scheme", "http")
	resource.PutStr("k8s.namespace.name", "bench")
	resource.PutStr("k8s.pod.name", pod)
	resource.PutStr("k8s.pod.uid", fmt.Sprintf("00000000-0000-4000-8000-%012d", replica))
	timestamp := pcommon.NewTimestampFromTime(at)
	target := func(attributes pcommon.Map) {
		attributes.PutStr("namespace", "bench")
		attributes.PutStr("pod", pod)
	}
	for _, metric := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		switch metric.Type() {
		case pmetric.MetricTypeHistogram:
			for _, point := range metric.Histogram().DataPoints().All() {
				point.SetTimestamp(timestamp)
				target(point.Attributes())
			}
		case pmetric.MetricTypeSummary:
			for _, point := range metric.Summary().DataPoints().All() {
				point.SetTimestamp(timestamp)
				target(point.Attributes())
			}
		case pmetric.MetricTypeSum:
			addressNumbers(metric.Sum().DataPoints(), timestamp, target)
		case pmetric.MetricTypeGauge:
			addressNumbers(metric.Gauge().DataPoints(), timestamp, target)
		}
	}
}

func addressNumbers(points pmetric.NumberDataPointSlice, timestamp pcommon.Timestamp, target func(pcommon.Map)) {
	for _, point := range points.All() {
		point.SetTimestamp(timestamp)
		target(point.Attributes())
	}
}

// keep leaves only the named metrics on the page.
func keep(md pmetric.Metrics, names ...string) {
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
		return !slices.Contains(names, m.Name())
	})
}
