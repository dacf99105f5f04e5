// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// valve is a next component that takes nothing until it is opened.
type valve struct {
	*stage
	opened chan struct{}
}

func (v *valve) take(ctx context.Context, logs plog.Logs) error {
	<-v.opened
	return v.takeLogs(ctx, logs)
}

// startBehindValve starts the connector to logs, alone.
func startBehindValve(t *testing.T, config *Config) *valve {
	t.Helper()
	v := &valve{newStage(t, config), make(chan struct{})}
	next, err := consumer.NewLogs(v.take)
	require.NoError(t, err)
	v.logs, err = NewFactory().CreateTracesToLogs(t.Context(), v.settings, config, next)
	require.NoError(t, err)
	require.NoError(t, start(t, v.logs))
	return v
}

// send feeds requests of a tenant in, a second after each of some minutes began.
func (v *valve) send(name string, minutes ...int) {
	v.t.Helper()
	for _, minute := range minutes {
		scenariotest.Wait(v.began.Add(time.Duration(minute)*time.Minute + time.Second))
		require.NoError(v.t, v.logs.ConsumeTraces(v.t.Context(), spans(ask{tenant: name, model: "m"})))
	}
}

// windows are what records tell, in order: of whom, how many requests, when.
func (v *valve) windows() (lines []string) {
	for _, r := range v.logRecords() {
		a := r.Attributes()
		get := func(key string) string { v, _ := a.Get(key); return v.AsString() }
		line := get("tenant") + " " + get("llmfleet.tenant.requests.ok") + " " + get("llmfleet.window.start")[11:19] + "-" + get("llmfleet.window.end")[11:19]
		if get("llmfleet.partial") == "true" {
			line += " partial"
		}
		lines = append(lines, line)
	}
	return lines
}

// TestSlowExporterLosesNoWindow: while the next component holds one window up,
// others end in time and wait; where too many would, they are told together, as
// what they are.
func TestSlowExporterLosesNoWindow(t *testing.T) {
	for _, c := range []struct {
		minutes int
		merged  float64
		want    []string
	}{
		{3, 0, []string{"a 1 00:00:00-00:01:00", "a 1 00:01:00-00:02:00", "a 1 00:02:00-00:03:00"}},
		{4, 0, []string{"a 1 00:00:00-00:01:00", "a 1 00:01:00-00:02:00", "a 1 00:02:00-00:03:00", "a 1 00:03:00-00:04:00"}},
		{6, 2, []string{"a 1 00:00:00-00:01:00", "a 1 00:01:00-00:02:00", "a 1 00:02:00-00:03:00", "a 3 00:03:00-00:06:00 partial"}},
	} {
		t.Run(fmt.Sprint(c.minutes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := startBehindValve(t, plainConfig())
				for minute := range c.minutes {
					v.send("a", minute)
				}
				assert.InDelta(t, c.merged, v.counts()["merged"], 0)
				close(v.opened)
				scenariotest.Wait(v.began.Add(time.Duration(c.minutes) * time.Minute))
				assert.Equal(t, c.want, v.windows())
				v.send("b", c.minutes)
				require.NoError(t, v.logs.Shutdown(t.Context()))
				from := v.began.Add(time.Duration(c.minutes) * time.Minute).UTC()
				assert.Equal(t, append(c.want, "b 1 "+from.Format(time.TimeOnly)+"-"+from.Add(time.Second).Format(time.TimeOnly)+" partial"), v.windows())
			})
		})
	}
}

// TestQuietWindowsDoNotWait: only those in which somebody sent something do.
func TestQuietWindowsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := startBehindValve(t, plainConfig())
		v.send("a", 0, 9, 30)
		close(v.opened)
		scenariotest.Wait(v.began.Add(time.Hour))
		assert.Equal(t, []string{"a 1 00:00:00-00:01:00", "a 1 00:09:00-00:10:00", "a 1 00:30:00-00:31:00"}, v.windows())
		assert.Zero(t, v.counts()["merged"])
		require.NoError(t, v.logs.Shutdown(t.Context()))
	})
}

// TestShutdownTellsWhatWaits: windows that ended, and the part of the open one;
// what cannot be told in time is counted as lost.
func TestShutdownTellsWhatWaits(t *testing.T) {
	for _, opens := range []bool{true, false} {
		t.Run(fmt.Sprint(opens), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := startBehindValve(t, plainConfig())
				v.send("a", 0, 1, 2)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if opens {
					time.AfterFunc(time.Second/2, func() { close(v.opened) })
					require.NoError(t, v.logs.Shutdown(ctx))
					assert.Equal(t, []string{"a 1 00:00:00-00:01:00", "a 1 00:01:00-00:02:00", "a 1 00:02:00-00:02:01 partial"}, v.windows())
					return
				}
				require.ErrorIs(t, v.logs.Shutdown(ctx), context.DeadlineExceeded)
				v.refuse(errors.New("too late"))
				close(v.opened)
				synctest.Wait()
				assert.InDelta(t, 3, v.counts()["lost"], 0)
			})
		})
	}
}
