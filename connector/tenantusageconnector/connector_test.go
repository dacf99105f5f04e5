// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

// ask is what one request says of itself.
type ask struct {
	tenant, tier, model string
	input               int64
}

// spans are a gateway's of requests, which end now.
func spans(asks ...ask) ptrace.Traces {
	td := ptrace.NewTraces()
	all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for _, a := range asks {
		span := all.AppendEmpty()
		span.SetKind(ptrace.SpanKindServer)
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		span.Attributes().PutStr("gen_ai.request.model", a.model)
		span.Attributes().PutInt("gen_ai.usage.input_tokens", a.input)
		span.Attributes().PutStr("tenant.id", a.tenant)
		if a.tier != "" {
			span.Attributes().PutStr("tier", a.tier)
		}
	}
	return td
}

func plainConfig() *Config {
	config := createDefaultConfig().(*Config)
	config.Tenant = TenantConfig{From: []string{"tenant.id"}, ID: idPlain}
	config.Interval = 10 * time.Second
	return config
}

// sum adds a metric's newest points that have some labels, and counts them.
func (s *stage) sum(at time.Duration, metric string, labels ...string) (total float64, series int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.told[at] {
		match := p.Name == metric && !p.Ended
		for i := 0; i < len(labels); i += 2 {
			match = match && p.Labels[labels[i]] == labels[i+1]
		}
		if match {
			total += p.Value
			series++
		}
	}
	return total, series
}

func (s *stage) requests(at time.Duration) float64 {
	total, _ := s.sum(at, emit.TenantRequests)
	return total
}

// TestEachRequestCountsOnce: both connectors are given all spans.
func TestEachRequestCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, plainConfig())
		s.raise()
		s.consume(spans(ask{tenant: "acme", model: "m", input: 5}))
		scenariotest.Wait(s.began.Add(time.Minute))
		s.shutdown()
		assert.InDelta(t, 1, s.requests(time.Minute), 0)
		require.Len(t, s.logRecords(), 1)
		assert.Contains(t, s.logRecords()[0].Body().Str(), "Tenant acme sent 1 request")
	})
}

// TestOneAlone: a core works with either of the connectors.
func TestOneAlone(t *testing.T) {
	for name, of := range map[string]func(*stage) error{
		"metrics": func(s *stage) error { s.metrics = s.makeMetrics(); return start(s.t, s.metrics) },
		"logs":    func(s *stage) error { s.metrics = s.makeLogs(); return start(s.t, s.metrics) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, plainConfig())
				require.NoError(t, of(s))
				assert.False(t, s.metrics.Capabilities().MutatesData)
				require.NoError(t, s.metrics.ConsumeTraces(t.Context(), spans(ask{tenant: "acme", model: "m"})))
				scenariotest.Wait(s.began.Add(time.Minute))
				require.NoError(t, s.metrics.Shutdown(t.Context()))
				require.NoError(t, s.metrics.Shutdown(t.Context()))
				assert.InDelta(t, map[string]float64{"metrics": 1}[name], s.requests(time.Minute), 0)
				assert.Len(t, s.logRecords(), map[string]int{"logs": 1}[name])
				require.NoError(t, s.metrics.ConsumeTraces(t.Context(), spans(ask{tenant: "acme", model: "m"})), "after the end")
			})
		})
	}
}

func start(t *testing.T, c component.Component) error {
	t.Helper()
	return c.Start(t.Context(), componenttest.NewNopHost())
}

// TestTheOtherGoesOn: whichever connector stops first, the other goes on reading.
func TestTheOtherGoesOn(t *testing.T) {
	for _, first := range []string{"metrics", "logs"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, plainConfig())
				s.raise()
				s.consume(spans(ask{tenant: "acme", model: "m"}))
				scenariotest.Wait(s.began.Add(5 * time.Second))
				if first == "metrics" {
					require.NoError(t, s.metrics.Shutdown(t.Context()))
				} else {
					require.NoError(t, s.logs.Shutdown(t.Context()))
				}
				s.consume(spans(ask{tenant: "acme", model: "m"}))
				scenariotest.Wait(s.began.Add(20 * time.Second))
				s.shutdown()
				require.Len(t, s.logRecords(), 1)
				if first == "metrics" {
					assert.InDelta(t, 1, s.requests(5*time.Second), 0)
					assert.Contains(t, s.logRecords()[0].Body().Str(), "2 requests")
				} else {
					assert.InDelta(t, 2, s.requests(20*time.Second), 0)
					assert.Contains(t, s.logRecords()[0].Body().Str(), "1 request ")
				}
			})
		})
	}
}

// TestTwoConfigurationsShareNothing.
func TestTwoConfigurationsShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newStage(t, plainConfig()), newStage(t, plainConfig())
		a.raise()
		b.raise()
		a.consume(spans(ask{tenant: "acme", model: "m"}))
		scenariotest.Wait(a.began.Add(10 * time.Second))
		a.shutdown()
		b.shutdown()
		assert.InDelta(t, 1, a.requests(10*time.Second), 0)
		assert.Zero(t, b.requests(10*time.Second))
		assert.Zero(t, cores.Len(), "nothing is kept")
	})
}

// TestShutdownWithinItsTime: a next component that takes for ever holds nobody up
// longer than the context says.
func TestShutdownWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, plainConfig())
		next, err := consumer.NewLogs(func(ctx context.Context, _ plog.Logs) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		c, err := NewFactory().CreateTracesToLogs(t.Context(), s.settings, s.config, next)
		require.NoError(t, err)
		require.NoError(t, start(t, c))
		require.NoError(t, c.ConsumeTraces(t.Context(), spans(ask{tenant: "acme", model: "m"})))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, c.Shutdown(ctx), "it gives up what it cannot send")
		assert.InDelta(t, 1, s.counts()["lost"], 0)
		assert.Equal(t, time.Second, time.Since(s.began))
	})
}

// TestSlowExporterHoldsUpNoSpans: what is sent is sent outside of the lock.
func TestSlowExporterHoldsUpNoSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, plainConfig())
		release := make(chan struct{})
		var once sync.Once
		next, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
			<-release
			return errors.New("too late")
		})
		require.NoError(t, err)
		c, err := NewFactory().CreateTracesToLogs(t.Context(), s.settings, s.config, next)
		require.NoError(t, err)
		require.NoError(t, start(t, c))
		defer once.Do(func() { close(release) })
		require.NoError(t, c.ConsumeTraces(t.Context(), spans(ask{tenant: "acme", model: "m"})))
		scenariotest.Wait(s.began.Add(time.Minute)) // the loop sends, and waits
		require.NoError(t, c.ConsumeTraces(t.Context(), spans(ask{tenant: "acme", model: "m"})))
		assert.Equal(t, time.Minute, time.Since(s.began))
		once.Do(func() { close(release) })
		require.NoError(t, c.Shutdown(t.Context()))
		assert.InDelta(t, 2, s.counts()["lost"], 0)
	})
}

// TestRequestsOfAnotherTime: what ended more than a day before or after it came
// is told with the time at which it came.
func TestRequestsOfAnotherTime(t *testing.T) {
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		config := plainConfig()
		config.Events.EachRequest = true
		s := newStage(t, config)
		s.raise()
		scenariotest.Wait(s.began.Add(time.Second))
		came := s.began.Add(time.Second)
		td := spans(make([]ask, 6)...)
		all := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		want := []time.Time{came.Add(-day), came.Add(day), came, came, came, came}
		for i, end := range []time.Time{want[0], want[1], came.Add(-day - 1), came.Add(day + 1), time.Unix(0, 0), time.Unix(0, math.MaxInt64)} {
			all.At(i).SetEndTimestamp(pcommon.NewTimestampFromTime(end))
		}
		last := all.AppendEmpty()
		all.At(0).CopyTo(last)
		last.SetEndTimestamp(math.MaxUint64)
		s.consume(td)
		for i, r := range s.logRecords() {
			assert.Equal(t, append(want, came)[i].UTC(), r.Timestamp().AsTime(), i)
		}
		assert.Len(t, s.logRecords(), 7)
		s.shutdown()
	})
}

// TestWarningsShowNothingOfClients: a span's name may be anything that one sent.
func TestWarningsShowNothingOfClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, plainConfig())
		core, logs := observer.New(zap.WarnLevel)
		s.settings.Logger = zap.New(core)
		s.raise()
		td := spans(ask{tenant: "acme", model: "m", input: -1})
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", "edge")
		td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetName("sk-abc")
		s.consume(td)
		scenariotest.Wait(s.began.Add(10 * time.Second))
		s.shutdown()
		require.Equal(t, 1, logs.Len())
		assert.Equal(t, map[string]any{"reason": "bad_usage", "source": "edge", "sender": "", "so_far": uint64(1)}, logs.All()[0].ContextMap())
	})
}

// TestConcurrentCalls: spans of many pipelines, while the loops run.
func TestConcurrentCalls(t *testing.T) {
	config := plainConfig()
	config.Interval, config.Events.Window, config.Events.MaxTenants = time.Second, time.Second, 3
	config.Events.EachRequest = true
	const calls, pipelines, tenants = 200, 4, 5
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, config)
		s.raise()
		var all sync.WaitGroup
		for p := range pipelines {
			all.Go(func() {
				for i := range calls {
					td := spans(ask{tenant: fmt.Sprint("t", (i+p)%tenants), model: "m", input: 1})
					for _, c := range []consumer.Traces{s.metrics, s.logs} {
						assert.NoError(t, c.ConsumeTraces(t.Context(), td))
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		all.Wait()
		scenariotest.Wait(s.began.Add(11 * time.Second))
		s.shutdown()
		assert.InDelta(t, calls*pipelines, s.requests(11*time.Second), 0)
		windows, each := int64(0), 0
		for _, r := range s.logRecords() {
			switch r.EventName() {
			case eventUsage:
				n, _ := r.Attributes().Get("llmfleet.tenant.requests.ok")
				windows += n.Int()
			case eventRequest:
				each++
			}
		}
		assert.EqualValues(t, calls*pipelines, windows)
		assert.Equal(t, calls*pipelines, each)
	})
}

// TestBatchesLetGo: a batch that is given back keeps no text of spans.
func TestBatchesLetGo(t *testing.T) {
	b := new(batch)
	b.add(&tenant.Request{Tenant: "acme", Tier: "gold", Model: "m", Variant: "v2"}, new(intake.SpanFacts))
	kept := b.requests
	b.giveBack()
	assert.Equal(t, []tenant.Request{{}}, kept)
}
