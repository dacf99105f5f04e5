// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// keptIn is a stage with that storage, and what the connector logs.
func keptIn(t *testing.T, k *scenariotest.Shelf) (*stage, *observer.ObservedLogs) {
	t.Helper()
	id := component.MustNewID("keeper")
	s := newStage(t, createDefaultConfig().(*Config))
	s.config.Storage = &id
	s.host[id] = k
	core, logs := observer.New(zap.WarnLevel)
	s.settings.Logger = zap.New(core)
	return s, logs
}

// TestStoredOtherwise: what cannot be read is reported and ignored.
func TestStoredOtherwise(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"broken": {`{"version":1,"on":[{"fl`, "unexpected end of JSON input"},
		"older":  {`{"version":0,"on":[{"flag":"llmfleet.replica.outlier","labels":{"replica":"a"},"since":1,"at":1}]}`, "its version is 0, not 1"},
		"newer":  {`{"version":2}`, "its version is 2, not 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, logs := keptIn(t, &scenariotest.Shelf{Value: []byte(c.value)})
			s.raise()
			require.Equal(t, 1, logs.Len())
			assert.Equal(t, c.want, logs.All()[0].ContextMap()["error"])
			s.consume(gauge(emit.ReplicaOutlier, "a", 30, 1))
			assert.Equal(t, []string{"Replica a is an outlier."}, s.bodies())
			s.shutdown()
		})
	}
}

// TestStoredForm: version 1 of the form stays readable, of a time when it had no
// states and now. A flag or a state that is unknown here, as one of a later
// release, is left out.
func TestStoredForm(t *testing.T) {
	s, logs := keptIn(t, &scenariotest.Shelf{Value: []byte(`{"version":1,"on":[
		{"flag":"llmfleet.replica.outlier","resource":{"service.instance.id":"gw-0"},"labels":{"replica":"a","role":"decode"},"since":10000000000,"at":30000000000},
		{"flag":"llmfleet.replica.stuck","resource":{"service.instance.id":"gw-0"},"labels":{"replica":"a","role":"decode"},"since":20000000000,"at":30000000000},
		{"flag":"llmfleet.canary.verdict","of":"overall","state":"pass","resource":{"service.instance.id":"gw-0"},"labels":{"canary":"x"},"since":20000000000,"at":30000000000},
		{"flag":"llmfleet.canary.verdict","of":"ttft","state":"better","resource":{"service.instance.id":"gw-0"},"labels":{"canary":"y"},"since":1,"at":1},
		{"flag":"llmfleet.canary.verdict","of":"ttft","state":"off","resource":{"service.instance.id":"gw-0"},"labels":{"canary":"y"},"since":1,"at":1},
		{"flag":"llmfleet.canary.worse","resource":{},"labels":{"canary":"z"},"since":1,"at":1}]}`)})
	s.raise()
	assert.Zero(t, logs.Len())
	assert.InDelta(t, 2, s.counts()[`series{followed="flags"}`], 0)
	s.consume(gauge(emit.ReplicaOutlier, "a", 60, 1))
	s.consume(gauge(emit.ReplicaStuck, "a", 60, 0))
	s.consume(gauge(emit.ReplicaOutlier, "a", 90, 0))
	s.consume(verdictOf("pass", 60))
	s.consume(verdictOf("fail", 90))
	assert.Equal(t, []string{
		"Replica a is no longer stuck, after 40s.", "Replica a is no longer an outlier, after 1m20s.",
		"Canary x fails against its baseline, after a pass of 1m10s.",
	}, s.bodies())
	s.shutdown()
}

// TestFormThatIsStored: what is written is that form.
func TestFormThatIsStored(t *testing.T) {
	for stored, shown := range map[string][]pmetric.Metrics{
		`"flag":"llmfleet.replica.outlier","labels":{"replica":"a"},"since":30000000000,"at":60000000000`: {
			gauge(emit.ReplicaOutlier, "a", 30, 1), gauge(emit.ReplicaOutlier, "a", 60, 1), gauge(emit.ReplicaStuck, "a", 60, 0),
		},
		`"flag":"llmfleet.canary.verdict","of":"overall","state":"fail","labels":{"canary":"x"},"since":60000000000,"at":60000000000`: {
			verdictOf("inconclusive", 30), verdictOf("fail", 60),
		},
	} {
		shelf := &scenariotest.Shelf{}
		s, _ := keptIn(t, shelf)
		s.raise()
		for _, md := range shown {
			s.consume(md)
		}
		s.shutdown()
		assert.JSONEq(t, `{"version":1,"on":[{"resource":{"service.instance.id":"gw-0"},`+stored+`}]}`, string(shelf.Value))
	}
}

func TestStoredMoreThanMayBeFollowed(t *testing.T) {
	s, _ := keptIn(t, &scenariotest.Shelf{Value: []byte(`{"version":1,"on":[
		{"flag":"llmfleet.replica.outlier","labels":{"replica":"a"},"since":1,"at":1},
		{"flag":"llmfleet.replica.outlier","labels":{"replica":"b"},"since":1,"at":1}]}`)})
	s.config.MaxSeries = 1
	s.raise()
	assert.InDelta(t, 1, s.counts()[`series{followed="flags"}`], 0)
	assert.InDelta(t, 1, s.counts()[`overflow{followed="flags"}`], 0)
	s.shutdown()
}

// TestStorageFails: to open it is needed to start, to write it is not needed to
// tell.
func TestStorageFails(t *testing.T) {
	k := &scenariotest.Shelf{Value: []byte("kept"), ReadError: errors.New("no such disk")}
	s, _ := keptIn(t, k)
	c, err := NewFactory().CreateMetricsToLogs(t.Context(), s.settings, s.config, consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, c.Start(t.Context(), s.host), "no such disk")
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Equal(t, "kept", string(k.Value), "nothing is written over what could not be read")
	assert.True(t, k.Closed)

	s, logs := keptIn(t, &scenariotest.Shelf{WriteError: errors.New("disk is full")})
	s.raise()
	s.consume(gauge(emit.ReplicaOutlier, "a", 30, 1))
	assert.Len(t, s.records(), 1)
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "disk is full", logs.All()[0].ContextMap()["error"])
	s.shutdown()
}

func TestStorageThatIsNone(t *testing.T) {
	id := component.MustNewID("file_storage")
	s := newStage(t, &Config{MaxSeries: 1, ForgetAfter: time.Hour})
	s.config.Storage = &id
	for _, c := range []struct {
		host component.Host
		want string
	}{
		{scenariotest.Host{}, `storage: there is no extension "file_storage": define it under extensions, and list it under service::extensions`},
		{scenariotest.Host{id: nil}, `storage: extension "file_storage" keeps nothing: use a storage extension, as file_storage`},
		{componenttest.NewNopHost(), `storage: there is no extension "file_storage"`},
	} {
		connector, err := NewFactory().CreateMetricsToLogs(t.Context(), s.settings, s.config, consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, connector.Start(t.Context(), c.host), c.want)
		require.NoError(t, connector.Shutdown(t.Context()))
	}
}
