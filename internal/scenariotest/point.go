// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Point is one point that came out.
type Point struct {
	Name   string
	Labels map[string]string
	Value  float64
	Ended  bool // it says that there is no value
}

// Series is the point's series as it is written.
func (p *Point) Series() string { return SeriesName(p.Name, p.Labels) }

func (p *Point) has(labels map[string]string) bool {
	for k, v := range labels {
		if p.Labels[k] != v {
			return false
		}
	}
	return true
}

// SeriesName is a series as it is written.
func SeriesName(name string, labels map[string]string) string {
	if len(labels) == 0 {
		return name
	}
	var pairs []string
	for k, v := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, v))
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// PointOf is a point of a gauge or a sum.
func PointOf(name string, dp pmetric.NumberDataPoint) Point {
	return Point{Name: name, Labels: Labels(dp.Attributes()), Value: dp.DoubleValue(), Ended: dp.Flags().NoRecordedValue()}
}

// Labels are attributes as text.
func Labels(attributes pcommon.Map) map[string]string {
	labels := map[string]string{}
	for key, value := range attributes.All() {
		labels[key] = value.AsString()
	}
	return labels
}
