// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// written is one series at one time, whoever wrote it. All gateways of a test run on one host, so that no other label than
// gateway tells them apart.
type written struct {
	series model.Fingerprint
	at     model.Time
}

// writers are what several gateways wrote: by series and time the values, by gateway.
type writers struct {
	values map[written]map[string]float64
	labels map[model.Fingerprint]model.Metric
}

// writers returns what the gateways wrote from one time on to another.
func (s *server) writers(selector string, from, to time.Time) writers {
	s.t.Helper()
	query := fmt.Sprintf("%s[%dms]", selector, to.Sub(from).Milliseconds()+1)
	result, _, err := s.api.Query(context.Background(), query, to)
	require.NoError(s.t, err, query)
	w := writers{values: map[written]map[string]float64{}, labels: map[model.Fingerprint]model.Metric{}}
	for _, stream := range result.(model.Matrix) {
		gateway := string(stream.Metric["gateway"])
		delete(stream.Metric, "gateway")
		series := stream.Metric.FastFingerprint()
		w.labels[series] = stream.Metric
		for _, sample := range stream.Values {
			key := written{series, sample.Timestamp}
			if w.values[key] == nil {
				w.values[key] = map[string]float64{}
			}
			w.values[key][gateway] = float64(sample.Value)
		}
	}
	return w
}

// doubles are the metrics of which a series has values of two gateways at one time, each with the first and the last time.
func (w writers) doubles() map[string][2]time.Time {
	found := map[string][2]time.Time{}
	for key, values := range w.values {
		if len(values) < 2 {
			continue
		}
		name, at := string(w.labels[key.series][model.MetricNameLabel]), key.at.Time()
		span, known := found[name]
		if !known || at.Before(span[0]) {
			span[0] = at
		}
		if at.After(span[1]) {
			span[1] = at
		}
		found[name] = span
	}
	return found
}

// last is when each gateway wrote a series of the model for the last time.
func (w writers) last(modelName string) map[string]time.Time {
	found := map[string]time.Time{}
	for key, values := range w.values {
		if string(w.labels[key.series]["model_name"]) != modelName {
			continue
		}
		for gateway := range values {
			if at := key.at.Time(); at.After(found[gateway]) {
				found[gateway] = at
			}
		}
	}
	return found
}

// owners are the gateways that judged each model's whole fleet in the newest evaluation that all of these gateways have
// written, and that evaluation's time.
func (s *server) owners(replicas float64, gateways []string) (found map[string][]string, at time.Time) {
	s.t.Helper()
	now := time.Now()
	w := s.writers(`llmfleet_fleet_replicas{state="judged"}`, now.Add(-20*time.Second), now)
	newest := map[string]model.Time{}
	for key, values := range w.values {
		for gateway := range values {
			if slices.Contains(gateways, gateway) {
				newest[gateway] = max(newest[gateway], key.at)
			}
		}
	}
	if len(newest) < len(gateways) {
		return nil, time.Time{}
	}
	common := slices.Min(slices.Collect(maps.Values(newest)))
	found = map[string][]string{}
	for key, values := range w.values {
		if key.at != common {
			continue
		}
		for gateway, judged := range values {
			if judged == replicas {
				name := string(w.labels[key.series]["model_name"])
				found[name] = append(found[name], gateway)
			}
		}
	}
	return found, common.Time()
}
