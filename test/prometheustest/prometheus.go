// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package prometheustest

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
)

// Prometheus is a storage and a query engine that knows the modifier `anchored`.
type Prometheus struct {
	t       *testing.T
	storage *teststorage.TestStorage
	engine  *promql.Engine
}

// New makes an empty Prometheus that lives as long as the test.
func New(t *testing.T) *Prometheus {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: math.MaxInt32,
		Timeout:    5 * time.Minute,
		// The library's switch for the server's feature promql-extended-range-selectors.
		Parser: parser.NewParser(parser.Options{EnableExtendedRangeSelectors: true}),
	})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	inMemory := func(o *tsdb.Options) { o.WALSegmentSize, o.StripeSize = -1, 1024 }
	return &Prometheus{t: t, storage: teststorage.New(t, inMemory), engine: engine}
}

// Load stores what fill appends.
func (p *Prometheus) Load(fill func(*Appender)) {
	p.t.Helper()
	app := &Appender{p.t, p.storage.AppenderV2(p.t.Context())}
	fill(app)
	require.NoError(p.t, app.to.Commit())
}

// Instant evaluates an expression at one instant.
func (p *Prometheus) Instant(expression string, at time.Time) promql.Vector {
	p.t.Helper()
	query, err := p.engine.NewInstantQuery(p.t.Context(), p.storage, nil, expression, at)
	require.NoError(p.t, err, expression)
	defer query.Close()
	vector, err := query.Exec(p.t.Context()).Vector()
	require.NoError(p.t, err, expression)
	return vector
}

// Range evaluates an expression at every step from one instant to another.
func (p *Prometheus) Range(expression string, from, to time.Time, step time.Duration) promql.Matrix {
	p.t.Helper()
	query, err := p.engine.NewRangeQuery(p.t.Context(), p.storage, nil, expression, from, to, step)
	require.NoError(p.t, err, expression)
	defer query.Close()
	matrix, err := query.Exec(p.t.Context()).Matrix()
	require.NoError(p.t, err, expression)
	// The engine takes the memory of its points back when the query is closed.
	copied := make(promql.Matrix, len(matrix))
	for i, series := range matrix {
		copied[i] = promql.Series{Metric: series.Metric, Floats: append([]promql.FPoint(nil), series.Floats...)}
	}
	return copied
}

// Appender takes samples.
type Appender struct {
	t  *testing.T
	to storage.AppenderV2
}

// Series is one series that takes samples in order of time.
type Series struct {
	*Appender
	labels labels.Labels
	ref    storage.SeriesRef
}

// Series makes a series with these labels.
func (a *Appender) Series(l labels.Labels) *Series { return &Series{Appender: a, labels: l} }

// Append stores a sample at an instant, to the millisecond.
func (s *Series) Append(at time.Time, v float64) { s.append(at, v, nil) }

// AppendHistogram stores a sample of a native histogram.
func (s *Series) AppendHistogram(at time.Time, h *histogram.Histogram) { s.append(at, 0, h) }

func (s *Series) append(at time.Time, v float64, h *histogram.Histogram) {
	s.t.Helper()
	ref, err := s.to.Append(s.ref, s.labels, 0, at.UnixMilli(), v, h, nil, storage.AOptions{})
	require.NoError(s.t, err)
	s.ref = ref
}
