// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// uid of the n-th pod.
func uid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// warmStart is the facts of a pod that was ready 20 s after the story began.
const warmStart = `0s pod.created name=a namespace=ai model=m containers=engine
1s pod.scheduled
2s pod.sandbox_ready
2s image.pulled container=engine cached=true
3s container.started container=engine attempt=0
10s engine.initializing container=engine
15s engine.ready container=engine
20s pod.ready`

func (s *stage) facts(pod, body string) plog.Logs {
	s.t.Helper()
	return s.readFacts(scenariotest.Step{Words: []string{pod}, Body: body})
}

// TestAnotherReadsOn: whoever of the parts that are given logs goes first, the other
// one reads, and traces come from one that is still there.
func TestAnotherReadsOn(t *testing.T) {
	for first := range 2 {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, createDefaultConfig().(*Config))
				s.raise()
				require.NoError(t, s.logs[first].Shutdown(t.Context()))
				require.NoError(t, s.logs[1-first].ConsumeLogs(t.Context(), s.facts(uid(1), warmStart)))
				require.NoError(t, s.logs[first].ConsumeLogs(t.Context(), s.facts(uid(2), warmStart)), "late, and not read")
				scenariotest.Wait(s.began.Add(time.Minute))
				assert.Len(t, s.starts, 1)
				assert.InDelta(t, 1, s.counts()[`facts{fact="llmfleet.pod.ready"}`], 0)
				s.shutdown()
				s.shutdown()
				assert.Zero(t, cores.Len(), "nothing is kept")
			})
		})
	}
}

// TestLastWithTracesEndsTheLoop: what follows it may be gone already.
func TestLastWithTracesEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, createDefaultConfig().(*Config))
		s.raise()
		s.consumeLogs(s.facts(uid(1), warmStart))
		scenariotest.Wait(s.began.Add(25 * time.Second))
		for _, last := range []interface{ Shutdown(context.Context) error }{s.traces[0], s.metrics[0], s.logs[0]} {
			require.NoError(t, last.Shutdown(t.Context()))
		}
		scenariotest.Wait(s.began.Add(5 * time.Minute))
		assert.Empty(t, s.starts)
		assert.NotContains(t, s.told, 30*time.Second)
		s.shutdown()
	})
}

// TestTwoGateways: what tells of a pod goes to one of two collectors by the pod's uid,
// as load_balancing routes resources by their attribute. Each start is told once,
// whole, by its owner.
func TestTwoGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 20
		gateways := [2]*stage{newStage(t, createDefaultConfig().(*Config)), newStage(t, createDefaultConfig().(*Config))}
		for _, s := range gateways {
			s.raise()
		}
		for n := range pods {
			for _, rl := range gateways[0].facts(uid(n), warmStart).ResourceLogs().All() {
				key, ok := rl.Resource().Attributes().Get("k8s.pod.uid")
				require.True(t, ok)
				one := plog.NewLogs()
				rl.MoveTo(one.ResourceLogs().AppendEmpty())
				gateways[crc32.ChecksumIEEE([]byte(key.Str()))%2].consumeLogs(one)
			}
		}
		scenariotest.Wait(gateways[0].began.Add(time.Minute))
		seen := map[string]bool{}
		for _, s := range gateways {
			assert.NotEmpty(t, s.starts)
			for _, start := range s.starts {
				assert.NotContains(t, seen, traceOf(start.span))
				seen[traceOf(start.span)] = true
				assert.Equal(t, []string{
					"replica.cold_start 0s..20s", "  scheduling 0s..1s", "  sandbox 1s..2s", "  container.create 2s..3s",
					"  engine.boot 3s..10s", "  unattributed 10s..15s", "  ready 15s..20s",
				}, lines(start.span, s.began))
			}
			s.shutdown()
		}
		assert.Len(t, seen, pods)
	})
}

// TestMetricsAlone: without a pipeline for traces none wait, and none are lost.
func TestMetricsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, createDefaultConfig().(*Config))
		next, err := consumer.NewMetrics(s.takeMetrics)
		require.NoError(t, err)
		c, err := NewFactory().CreateLogsToMetrics(t.Context(), s.settings, s.config, next)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), s.host))
		require.NoError(t, c.ConsumeLogs(t.Context(), s.facts(uid(1), warmStart)))
		scenariotest.Wait(s.began.Add(time.Minute))
		counts := s.counts()
		assert.InDelta(t, 1, counts[`starts{outcome="served"}`], 0)
		assert.Zero(t, counts["waiting"])
		assert.NotEmpty(t, s.told[50*time.Second])
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Zero(t, s.counts()["lost"])
	})
}

// TestTwoConfigurationsShareNothing.
func TestTwoConfigurationsShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newStage(t, createDefaultConfig().(*Config)), newStage(t, createDefaultConfig().(*Config))
		a.raise()
		b.raise()
		a.consumeLogs(a.facts(uid(1), warmStart))
		scenariotest.Wait(a.began.Add(time.Minute))
		assert.Len(t, a.starts, 1)
		assert.Empty(t, b.starts)
		a.shutdown()
		b.shutdown()
	})
}

// TestSameStartIsTheSameTrace: in whatever order and however often its facts come.
func TestSameStartIsTheSameTrace(t *testing.T) {
	facts := strings.Split(warmStart, "\n")
	var want []byte
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, createDefaultConfig().(*Config))
			s.raise()
			told := append(append([]string{}, facts...), facts...)
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(told), func(i, j int) { told[i], told[j] = told[j], told[i] })
			for _, fact := range told {
				s.consumeLogs(s.facts(uid(1), fact))
			}
			scenariotest.Wait(s.began.Add(time.Minute))
			require.Len(t, s.starts, 1)
			td := ptrace.NewTraces()
			s.starts[0].span.CopyTo(td.ResourceSpans().AppendEmpty())
			got, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
			require.NoError(t, err)
			if want == nil {
				want = got
			}
			assert.JSONEq(t, string(want), string(got))
			s.shutdown()
		})
	}
}

// TestAllSignalsAtOnce: pipelines do not wait for each other.
func TestAllSignalsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, createDefaultConfig().(*Config))
		s.raise()
		const pods = 50
		var all sync.WaitGroup
		for n := range pods {
			facts := s.facts(uid(n), warmStart)
			facts.MarkReadOnly()
			spans := s.readSpans(scenariotest.Step{Words: []string{"k8s.pod.uid=" + uid(n), "vllm.process_id=7"}, Body: "11s..14s Load model"})
			spans.MarkReadOnly()
			for i := range 2 {
				all.Go(func() { assert.NoError(t, s.logs[i].ConsumeLogs(t.Context(), facts)) })
				all.Go(func() { assert.NoError(t, s.traces[i].ConsumeTraces(t.Context(), spans)) })
			}
		}
		all.Wait()
		scenariotest.Wait(s.began.Add(time.Minute))
		assert.Len(t, s.starts, pods)
		s.shutdown()
	})
}

// TestNextThatTakesForEver holds up neither who consumes, nor the shutdown longer
// than its context says.
func TestNextThatTakesForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, createDefaultConfig().(*Config))
		next, err := consumer.NewTraces(func(ctx context.Context, _ ptrace.Traces) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		c, err := NewFactory().CreateLogsToTraces(t.Context(), s.settings, s.config, next)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), s.host))
		require.NoError(t, c.ConsumeLogs(t.Context(), s.facts(uid(1), warmStart)))
		scenariotest.Wait(s.began.Add(55 * time.Second))
		before := time.Now()
		require.NoError(t, c.ConsumeLogs(t.Context(), s.facts(uid(2), warmStart)))
		assert.Zero(t, time.Since(before))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(before))
	})
}

// TestStorageThatIsNone is told of at the start, which fails.
func TestStorageThatIsNone(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Storage = &disk
	s := newStage(t, config)
	s.host = scenariotest.Host{}
	c, err := NewFactory().CreateLogsToTraces(t.Context(), s.settings, config, consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, c.Start(t.Context(), componenttest.NewNopHost()), `storage: there is no extension "file_storage": define it under extensions`)
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Zero(t, cores.Len())
}

// TestStorageThatCannotBeRead is reported, and what is known is saved over it.
func TestStorageThatCannotBeRead(t *testing.T) {
	for name, shelf := range map[string]*scenariotest.Shelf{
		"refused": {ReadError: errors.New("no such disk")}, "damaged": {Value: []byte("what is this")}, "empty": {Value: []byte{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, logs := storedStage(t, shelf, zapcore.WarnLevel)
				s.raise()
				require.Equal(t, 1, logs.Len())
				assert.Contains(t, logs.All()[0].Message, "what was known of starts cannot be gone on with")
				s.consumeLogs(s.facts(uid(1), warmStart))
				scenariotest.Wait(s.began.Add(25 * time.Second))
				s.shutdown()
				shelf.ReadError = nil
				s.raise()
				scenariotest.Wait(s.began.Add(time.Minute))
				assert.Len(t, s.starts, 1)
				assert.Equal(t, 1, logs.Len())
				s.shutdown()
			})
		})
	}
}

// TestStorageThatIsFull is reported and counted, and starts are told.
func TestStorageThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := &scenariotest.Shelf{WriteError: errors.New("disk is full")}
		s, logs := storedStage(t, shelf, zapcore.ErrorLevel)
		s.raise()
		s.consumeLogs(s.facts(uid(1), warmStart))
		scenariotest.Wait(s.began.Add(time.Minute))
		assert.Len(t, s.starts, 1)
		assert.Equal(t, 2, logs.Len(), "when facts came, and when the start was told")
		assert.InDelta(t, 2, s.counts()["storage_errors"], 0)
		var all error
		for _, c := range s.all() {
			all = errors.Join(all, c.Shutdown(t.Context()))
		}
		require.ErrorContains(t, all, "disk is full")
		assert.True(t, shelf.Closed)
	})
}

func storedStage(t *testing.T, shelf *scenariotest.Shelf, level zapcore.Level) (*stage, *observer.ObservedLogs) {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Storage = &disk
	s := newStage(t, config)
	core, logs := observer.New(level)
	s.host[disk], s.settings.Logger = shelf, zap.New(core)
	return s, logs
}

func TestOutboxAtTheLimit(t *testing.T) {
	o := newOutbox()
	full := func(n int) ptrace.Traces {
		td := ptrace.NewTraces()
		for range n {
			td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		}
		return td
	}
	refusal := consumertest.NewErr(errors.New("busy"))
	for extra, tooMany := range []int{0, 1} {
		o.put(full(outboxTraces*(1-extra) + extra))
		_, _, err := o.send(t.Context(), refusal)
		require.Error(t, err)
		assert.Equal(t, tooMany, o.bound(), "the oldest is lost")
		assert.Equal(t, outboxTraces, o.len())
	}

	// What ends at once is no more than is taken at once: only what waits is bounded.
	o.put(full(outboxTraces))
	sink := new(consumertest.TracesSink)
	sent, lost, err := o.send(t.Context(), sink)
	require.NoError(t, err)
	assert.Equal(t, 2*outboxTraces, sent)
	assert.Zero(t, lost)
	assert.Zero(t, o.bound())
	assert.Zero(t, o.len())
	for _, td := range sink.AllTraces() {
		assert.LessOrEqual(t, td.ResourceSpans().Len(), batchTraces)
	}
}

func TestTraceID(t *testing.T) {
	for uid, want := range map[string]string{
		"5b3c1a2e-0f6d-4c8b-9a7e-112233445566": "5b3c1a2e0f6d4c8b9a7e112233445566",
		"5B3C1A2E-0F6D-4C8B-9A7E-112233445566": "5b3c1a2e0f6d4c8b9a7e112233445566",
		// The first half of what sha256sum says.
		"static-pod-on-n1":                     "91581da159024063428c8673b3f52a34",
		"00000000-0000-0000-0000-000000000000": "12b9377cbe7e5c94e8a70d9d23929523",
		"5b3c1a2e0f6d4c8b9a7e112233445566":     "2f93e193bf46239af3b0ee7012a556c9",
		"5b3c1a2e-0f6d-4c8b-9a7e-11223344556g": "f283419082cc513f2f146b68509c785a",
	} {
		assert.Equal(t, want, traceID(uid).String(), uid)
	}
}
