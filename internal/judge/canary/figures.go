// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"

	"github.com/llmfleet/llmfleet/internal/stats"
)

// tell writes the report of a fleet.
func (j *Judge) tell(r *rollout) *Report {
	c := r.current
	report := &j.report
	*report = Report{
		Of: c.Names, Replicas: c.Replicas, Others: c.Others, Verdict: c.Verdict, Reasons: j.whole(c), Since: c.Since,
		Driver: -1, Measures: report.Measures[:0],
	}
	for arm, ages := range c.Ages {
		report.Age[arm] = withheld(Unobserved)
		if len(ages) > 0 {
			report.Age[arm] = given(stats.Median(ages))
		}
	}
	if c.Since != 0 {
		report.For = c.Until.Sub(c.Since)
	}
	driver := j.drives(c)
	for i := range j.measures {
		m, of := &j.measures[i], &c.Records[i]
		if !of.Told[Canary] && !of.Told[Baseline] && !j.counts(i, of) {
			continue
		}
		if i == driver {
			report.Driver = len(report.Measures)
		}
		report.Measures = append(report.Measures, MeasureReport{
			Measure: m, Watched: j.watched[i], Verdict: of.Verdict, Reasons: j.why(c, m, of), Evidence: j.evidence(m, of),
			Observations: of.observations(m), Boundary: of.boundary(m), Statistics: of.statistics(m),
		})
	}
	return report
}

func given(v float64) Figure { return Figure{Value: v} }

func withheld(why Withheld) Figure { return Figure{Withheld: why} }

// boundary is where the arms differ most.
func (r *record) boundary(m *Measure) Figure {
	if at, ok := r.furthest(m); ok && m.kind == distribution {
		return given(r.Bounds[at].Value)
	}
	return withheld(Unobserved)
}

// errorPerArm is that of the confidence sequence of one arm: of both together, 5 %.
const errorPerArm = 0.025

// statistics are the figures of a measure.
func (r *record) statistics(m *Measure) []Statistic {
	switch m.kind {
	case distribution:
		return []Statistic{r.quantile("p50", 0.5), r.quantile("p95", 0.95), r.average()}
	case fraction:
		return []Statistic{r.share("ratio", 0, func(counts []uint64) uint64 { return counts[1] })}
	case categories:
		all := make([]Statistic, 0, len(r.Bounds))
		for i := range r.Bounds {
			all = append(all, r.share(r.Bounds[i].Name, i, func(counts []uint64) uint64 { return counts[i] }))
		}
		return all
	default:
		return []Statistic{r.rate()}
	}
}

// compare fills in how the values of a statistic relate.
func (s *Statistic) compare() {
	s.Delta, s.Ratio = given(s.Values[Canary].Value-s.Values[Baseline].Value), given(0)
	for _, v := range s.Values {
		if v.Withheld != Given {
			s.Delta, s.Ratio = v, v
			return
		}
	}
	s.Ratio = over(s.Values[Canary], s.Values[Baseline])
}

// over is one figure over another.
func over(a, b Figure) Figure {
	switch {
	case a.Withheld != Given:
		return a
	case b.Withheld != Given:
		return b
	case b.Value == 0:
		return withheld(ZeroBaseline)
	}
	return given(a.Value / b.Value)
}

// bound fills in between which ratios the arms are, by the bounds of each.
func (s *Statistic) bound(low, high [ArmCount]Figure) {
	s.Low, s.High = over(low[Canary], high[Baseline]), over(high[Canary], low[Baseline])
	if s.High.Withheld == ZeroBaseline {
		s.High = withheld(Unbounded) // the baseline's may be next to nothing
	}
}

// quantile is a quantile of a distribution.
func (r *record) quantile(name string, q float64) Statistic {
	s := Statistic{Name: name}
	var low, high [ArmCount]Figure
	values := r.values()
	for arm := range s.Values {
		cumulative := make([]float64, 0, len(values)+1)
		total := 0.0
		for _, n := range grown(r.Counts[arm], len(values)+1) {
			total += float64(n)
			cumulative = append(cumulative, total)
		}
		s.Values[arm] = quantileOf(q, values, cumulative)
		dispersion := r.dispersionAt(q, values, cumulative)
		for i := range cumulative {
			cumulative[i] /= dispersion
		}
		l, h, lowFinite, highFinite := stats.QuantileBounds(q, values, cumulative, errorPerArm)
		low[arm], high[arm] = withheld(Unbounded), withheld(Unbounded)
		if lowFinite {
			low[arm] = given(l)
		}
		if highFinite {
			high[arm] = given(h)
		}
	}
	s.compare()
	s.bound(low, high)
	return s
}

func quantileOf(q float64, bounds, cumulative []float64) Figure {
	switch value, state := stats.Quantile(q, bounds, cumulative); state {
	case stats.Defined:
		return given(value)
	case stats.Saturated:
		return withheld(Saturated)
	case stats.LowestBucket:
		return withheld(LowestBucket)
	default:
		return withheld(Unobserved)
	}
}

// dispersionAt is that of the boundary next to a quantile.
func (r *record) dispersionAt(q float64, values, cumulative []float64) float64 {
	total := cumulative[len(cumulative)-1]
	for i := range values {
		if cumulative[i] >= q*total {
			return r.Bounds[i].Evidence.dispersion(r.Clump)
		}
	}
	return 1
}

// average is the mean of a distribution.
func (r *record) average() Statistic {
	s := Statistic{Name: "mean", Low: withheld(Unbounded), High: withheld(Unbounded)}
	for arm := range s.Values {
		n := float64(sum(r.Counts[arm]))
		switch {
		case n == 0:
			s.Values[arm] = withheld(Unobserved)
		case math.IsNaN(r.Sums[arm]):
			s.Values[arm] = withheld(SumUnknown)
		default:
			s.Values[arm] = given(r.Sums[arm] / n)
		}
	}
	s.compare()
	return s
}

// share is a share of the observations.
func (r *record) share(name string, at int, part func(counts []uint64) uint64) Statistic {
	s := Statistic{Name: name}
	var low, high [ArmCount]Figure
	for arm := range s.Values {
		n := float64(sum(r.Counts[arm]))
		if n == 0 {
			s.Values[arm] = withheld(Unobserved)
			low[arm], high[arm] = s.Values[arm], s.Values[arm]
			continue
		}
		x := float64(part(grown(r.Counts[arm], len(r.Bounds))))
		s.Values[arm] = given(x / n)
		dispersion := r.Bounds[at].Evidence.dispersion(r.Clump)
		l, h := stats.ShareBounds(x/dispersion, n/dispersion, errorPerArm)
		low[arm], high[arm] = given(l), given(h)
	}
	s.compare()
	s.bound(low, high)
	return s
}

// rate is a level: the mean of all panes.
func (r *record) rate() Statistic {
	s := Statistic{Name: "mean", Low: withheld(Unbounded), High: withheld(Unbounded)}
	for arm := range s.Values {
		s.Values[arm] = withheld(Unobserved)
		if r.Rates.Panes > 0 {
			s.Values[arm] = given(r.Rates.Sums[arm] / r.Rates.Panes)
		}
	}
	s.compare()
	if n := r.Rates.Panes; n > 1 && s.Ratio.Withheld == Given {
		radius := stats.MeanRadius(n, r.Rates.deviation(s.Ratio.Value), 2*errorPerArm) / s.Values[Baseline].Value
		s.Low, s.High = given(max(0, s.Ratio.Value-radius)), given(s.Ratio.Value+radius)
	}
	return s
}
