// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

func TestHealth(t *testing.T) {
	var told []*componentstatus.Event
	h := newHealth(func(e *componentstatus.Event) { told = append(told, e) })
	at := func(seconds int) time.Time { return time.Date(2026, 3, 1, 10, 0, seconds, 0, time.UTC) }
	h.failed("pods", errors.New("forbidden"), at(0))
	h.failed("nodes", errors.New("other"), at(30))
	h.check(at(60))
	assert.Empty(t, told, "a minute is borne")
	h.check(at(61))
	h.check(at(71))
	require.Len(t, told, 1, "told once")
	assert.Equal(t, componentstatus.StatusRecoverableError, told[0].Status())
	require.EqualError(t, told[0].Err(),
		"pods cannot be watched since 2026-03-01T10:00:00Z: grant list and watch on them, or name them in ignore_resources: forbidden")
	h.works("pods")
	h.check(at(80))
	require.Len(t, told, 2)
	assert.Equal(t, componentstatus.StatusOK, told[1].Status(), "nodes have not failed for long")
	h.check(at(91))
	require.Len(t, told, 3)
	h.rest()
	h.check(at(200))
	assert.Equal(t, componentstatus.StatusOK, told[3].Status(), "who does not watch is not ill")
}

// grants are the verbs of rbac.yaml, by group and resource.
func grants(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("rbac.yaml")
	require.NoError(t, err)
	granted := make(map[string]string)
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document map[string]any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return granted
		}
		require.NoError(t, err)
		var role rbacv1.ClusterRole
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(document, &role))
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					granted[group+"/"+resource] = fmt.Sprint(rule.Verbs)
				}
			}
		}
	}
}

// TestRestart: with a storage, what was told before is not told again.
func TestRestart(t *testing.T) {
	s := newAPIServer(t)
	s.put(podOf("a", scheduled))
	id := component.MustNewID("file_storage")
	host := scenariotest.Host{id: &scenariotest.Shelf{}}
	for _, want := range [][]string{
		{"10:00:00 llmfleet.pod.created replayed", "10:00:01 llmfleet.pod.scheduled replayed"},
		{"10:00:30 llmfleet.container.started engine replayed"},
	} {
		sink := new(consumertest.LogsSink)
		r, err := newFactory(s.dial).CreateLogs(t.Context(), nopSettings(), testConfig(func(c *Config) { c.Storage = &id }), sink)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), host))
		eventually(t, sink, want...)
		require.NoError(t, r.Shutdown(t.Context()))
		s.put(podOf("a", running))
	}
}

func TestSelfTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.WithoutCancel(t.Context()))) })
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	s.objects.PrependReactor("list", eventsResource, func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	s.put(podOf("a", scheduled))
	startLogs(t, set, s, testConfig(), sink)
	eventually(t, sink, "10:00:00 llmfleet.pod.created replayed", "10:00:01 llmfleet.pod.scheduled replayed")
	s.put(podOf("a", running))
	for name, want := range map[string]map[string]float64{
		"facts":        {"llmfleet.pod.created": 1, "llmfleet.pod.scheduled": 1, "llmfleet.container.started": 1},
		"duplicates":   {"llmfleet.pod.created": 1, "llmfleet.pod.scheduled": 1},
		"leader":       {"": 1},
		"pods":         {"": 1},
		"lost":         {"": 0},
		"watch_errors": {"events": 1, "pods": 0},
	} {
		if !waitFor(t, func() bool { return contains(values(t, tel, name), want) }) {
			t.Errorf("%s: %v, not %v", name, values(t, tel, name), want)
		}
	}
	assert.Contains(t, values(t, tel, "last_event_age"), "pods")
}

// contains tells whether values are there; of errors there can be more.
func contains(values, want map[string]float64) bool {
	for of, v := range want {
		if got, ok := values[of]; !ok || got < v {
			return false
		}
	}
	return true
}

// values are those of a metric of self-telemetry, by its one attribute.
func values(t *testing.T, tel *componenttest.Telemetry, name string) map[string]float64 {
	t.Helper()
	of := make(map[string]float64)
	m, err := tel.GetMetric("otelcol_receiver_k8s_fleet_" + name)
	if err != nil {
		return of
	}
	note := func(attributes attribute.Set, v float64) {
		key := ""
		if kv, ok := attributes.Get(0); ok {
			key = kv.Value.AsString()
		}
		of[key] = v
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			note(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			note(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			note(p.Attributes, p.Value)
		}
	}
	return of
}
