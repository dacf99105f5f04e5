// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

func lifecycleReader() *Lifecycle {
	return NewLifecycle(LifecycleOptions{Dialects: dialect.Builtin(), MaxPods: 100})
}

// readLogs are the facts of log records.
func readLogs(l *Lifecycle, ld plog.Logs, received window.Instant) (facts []lifecycle.Fact) {
	l.ReadLogs(ld, received, func(f *lifecycle.Fact) { facts = append(facts, *f) })
	return facts
}

// written is a fact on its way: as bytes of OTLP, as another collector gets it.
func written(t require.TestingT, f *lifecycle.Fact) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	emit.WriteFactResource(f, rl.Resource())
	emit.WriteFact(f, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	data, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	ld, err = (&plog.ProtoUnmarshaler{}).UnmarshalLogs(data)
	require.NoError(t, err)
	return ld
}

// TestFactsComeAsTheyWent: every fact, whatever it says, is read as it was
// written.
func TestFactsComeAsTheyWent(t *testing.T) {
	l := lifecycleReader()
	text := rapid.StringMatching(`[a-z][-a-z0-9/ ]{0,9}`)
	maybe := rapid.OneOf(rapid.Just(""), text)
	at := rapid.Int64Range(1, math.MaxInt64/2)
	long := rapid.Int64Range(0, int64(7*24*time.Hour))
	count := rapid.IntRange(0, 1000)
	pods := rapid.Custom(func(t *rapid.T) lifecycle.Pod {
		p := lifecycle.Pod{
			Name: text.Draw(t, "name"), Namespace: maybe.Draw(t, "namespace"), Node: maybe.Draw(t, "node"),
			Model: maybe.Draw(t, "model"), Engine: maybe.Draw(t, "engine"), GPUModel: maybe.Draw(t, "gpu"),
			GPUs: count.Draw(t, "gpus"), Group: maybe.Draw(t, "group"), Leader: maybe.Draw(t, "leader"), GroupSize: count.Draw(t, "size"),
		}
		if rapid.Bool().Draw(t, "made") {
			p.WorkloadKind = rapid.SampledFrom([]string{"Deployment", "Job", "LeaderWorkerSet", "RayCluster"}).Draw(t, "kind")
			p.Workload = text.Draw(t, "workload")
		}
		for range rapid.IntRange(0, 3).Draw(t, "containers") {
			role := lifecycle.ContainerRole(rapid.IntRange(0, int(lifecycle.Sidecar)).Draw(t, "role"))
			p.Containers = append(p.Containers, lifecycle.Container{Name: text.Draw(t, "container"), Role: role})
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		f := lifecycle.Fact{
			Pod: text.Draw(t, "pod"), Name: lifecycle.Name(rapid.IntRange(1, int(lifecycle.Deleted)).Draw(t, "fact")),
			At: window.Instant(at.Draw(t, "at")), Grain: rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second}).Draw(t, "grain"),
			Clock:   lifecycle.Clock{Kind: lifecycle.ClockKind(rapid.IntRange(0, int(lifecycle.Engine)).Draw(t, "clock")), Of: maybe.Draw(t, "of")},
			Learned: window.Instant(rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "learned")),
			Count:   count.Draw(t, "count"), Until: window.Instant(rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "until")),
			Container: maybe.Draw(t, "container"), Attempt: rapid.IntRange(-1, 100).Draw(t, "attempt"),
			Took: time.Duration(long.Draw(t, "took")), Waited: time.Duration(long.Draw(t, "waited")),
			Reason: maybe.Draw(t, "reason"), Message: maybe.Draw(t, "message"), Cached: rapid.Bool().Draw(t, "cached"), Copy: maybe.Draw(t, "copy"),
		}
		if f.Name == lifecycle.ContainerExited {
			f.ExitCode = rapid.IntRange(0, 255).Draw(t, "code")
		}
		if rapid.Bool().Draw(t, "known") {
			about := pods.Draw(t, "about")
			f.About = &about
		}
		assert.Equal(t, []lifecycle.Fact{f}, readLogs(l, written(t, &f), 1))
	})
}

// TestEveryFactIsWritten: each with its event name and a sentence of its own, and
// with an id that only what tells facts apart changes.
func TestEveryFactIsWritten(t *testing.T) {
	bodies, ids := make(map[string]lifecycle.Name), make(map[string]lifecycle.Name)
	for name := lifecycle.Desired; name <= lifecycle.Deleted; name++ {
		f := lifecycle.Fact{Pod: "uid", Name: name, At: 1e18, Attempt: 0}
		record := written(t, &f).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		require.NotEmpty(t, record.EventName())
		require.NotEmpty(t, record.Body().Str())
		assert.Zero(t, bodies[record.Body().Str()], record.Body().Str())
		bodies[record.Body().Str()] = name
		id := textOf(record.Attributes(), lifecycle.KeyID)
		assert.Zero(t, ids[id])
		ids[id] = name
		assert.Equal(t, []lifecycle.Fact{f}, readLogs(lifecycleReader(), written(t, &f), 1))

		again := f
		again.Learned, again.Message, again.Took = 2e18, "once more", time.Second
		record = written(t, &again).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		assert.Equal(t, id, textOf(record.Attributes(), lifecycle.KeyID))
	}
}

// TestRecentForgetsTheOldest: never more than twice its size, and what is used
// stays.
func TestRecentForgetsTheOldest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		r := recently[int, int](size)
		var used []int
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			key := rapid.IntRange(0, 20).Draw(t, "key")
			if rapid.Bool().Draw(t, "put") {
				r.put(key, key)
			} else if _, ok := r.get(key); !ok {
				continue
			}
			used = append(slices.DeleteFunc(used, func(k int) bool { return k == key }), key)
			assert.LessOrEqual(t, len(r.young)+len(r.old), 2*size)
			for _, recentKey := range used[max(0, len(used)-size):] {
				_, young := r.young[recentKey]
				_, old := r.old[recentKey]
				assert.True(t, young || old, "%d of %v", recentKey, used)
			}
		}
	})
}
