// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"

	"github.com/llmfleet/llmfleet/internal/stats"
)

// middle is what the replica in the middle has of one quantile, and of each of
// its bounds. While less than half of the replicas are bad, it is a good one's.
type middle struct {
	all, lows, highs    []float64
	quantile, low, high quantile
}

func (m *middle) reset() {
	m.all, m.lows, m.highs = m.all[:0], m.lows[:0], m.highs[:0]
}

// add adds a replica's quantile, if it has one to compare. Above the top bound
// is above all others.
func (m *middle) add(own quantile) {
	switch {
	case own.withheld != Given:
	case own.saturated:
		m.all = append(m.all, math.Inf(1))
	default:
		m.all = append(m.all, own.seconds)
	}
}

// addBounds adds its bounds. One that is not known may lie as far off as can be.
func (m *middle) addBounds(low, high quantile) {
	if low.withheld != Given {
		low.seconds = 0
	}
	if high.withheld != Given {
		high.seconds = math.Inf(1)
	}
	m.lows, m.highs = append(m.lows, low.seconds), append(m.highs, high.seconds)
}

// settle finds the middle of all that was added.
func (m *middle) settle() {
	m.quantile = quantile{seconds: stats.Median(m.all)}
	switch {
	case len(m.all) == 0:
		m.quantile = quantile{withheld: FewReplicas}
	case math.IsInf(m.quantile.seconds, 1):
		m.quantile = quantile{saturated: true}
	}
	m.low, m.high = bounded(stats.Median(m.lows)), bounded(stats.Median(m.highs))
}

// bounded is a bound, if it is one.
func bounded(seconds float64) quantile {
	if seconds == 0 || math.IsInf(seconds, 1) {
		return quantile{withheld: Unbounded}
	}
	return quantile{seconds: seconds}
}
