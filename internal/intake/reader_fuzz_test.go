// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/scrapetest"
)

// FuzzRead scrapes any page, twice within a pane, for a reader of each kind. What
// is read stays as it was, no more replicas are followed than there is room for,
// and what the pane then tells are numbers.
func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob(pageFolder + "*.prom")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		page, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(page))
	}
	f.Fuzz(func(t *testing.T, page string) {
		inspected, accelerators := newInspected()
		for _, tc := range []struct {
			reader *Reader
			ask    []fleet.Signal
		}{
			{newReader(), []fleet.Signal{fleet.TTFT, fleet.Waiting}},
			{inspected, []fleet.Signal{fleet.Waiting}},
			{newTenantReader(2, nil), ofTenants},
			{newQualityReader(Options{}), measured},
		} {
			for _, after := range []time.Duration{time.Second, 11 * time.Second} {
				md, err := scrapetest.Metrics(page, scrapetest.Target{Instance: "10.0.0.1:8000", At: time.Unix(0, int64(noon.Add(after)))})
				if err != nil {
					return
				}
				sent := metricBytes(t, md)
				tc.reader.Read(md)
				assert.Equal(t, sent, metricBytes(t, md), "what was read is another's")
			}
			members := 0
			tc.reader.registry.Close(noon.Add(interval), fleet.Ask{Signals: tc.ask}, func(f *fleet.Frame) { members += followed(t, f) })
			_, room := tc.reader.registry.Members()
			assert.LessOrEqual(t, members, room)
		}
		accelerators.Sweep(noon.Add(interval))
	})
}

// followed checks what a frame tells, and counts its members; who stands for many needs no place.
func followed(t *testing.T, f *fleet.Frame) (members int) {
	t.Helper()
	for i := range f.Members {
		m := &f.Members[i]
		if !m.Identity.Many {
			members++
		}
		for _, d := range m.Told {
			if d.SumKnown {
				assert.False(t, math.IsNaN(d.Sum) || math.IsInf(d.Sum, 0), "%s: %v", m.Identity.Replica, d.Sum)
			}
		}
		for _, l := range append(m.Load[:], m.Levels...) {
			for _, v := range []float64{l.Mean, l.Now} {
				assert.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s: %v", m.Identity.Replica, v)
			}
		}
	}
	return members
}

// metricBytes are metrics as they are sent.
func metricBytes(tb testing.TB, md pmetric.Metrics) []byte {
	tb.Helper()
	sent, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(tb, err)
	return sent
}
