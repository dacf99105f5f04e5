// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// plain is a drawn fleet of one latency, without noise.
func plain(replicas int, latency DrawnLatency) Drawn {
	return Drawn{Name: "f", Replicas: replicas, Rate: 60, Latencies: []DrawnLatency{latency}}
}

func draw(t *testing.T, plan Drawn) *Drawing {
	t.Helper()
	d, err := Draw(plan, 1)
	require.NoError(t, err)
	return d
}

// play adds up what each replica counted of the first latency in some panes.
func play(d *Drawing, panes int) [][]float64 {
	total := make([][]float64, len(d.replicas))
	for range panes {
		d.Next()
		for i := range total {
			counts := d.Counts(i, 0)
			total[i] = append(total[i], make([]float64, len(counts)-len(total[i]))...)
			for b, c := range counts {
				total[i][b] += float64(c)
			}
		}
	}
	return total
}

var ttftBounds = Bounds(VLLM, fleet.TTFT)

// The means are 0.3 s and a cv of 1/2; the distribution functions are the
// textbooks'. The Weibull's shape for that cv was solved for elsewhere.
func TestDrawnLatenciesFollowTheirDistribution(t *testing.T) {
	const mean, cv = 0.3, 0.5
	sigma := math.Sqrt(math.Log(1 + cv*cv))
	mu := math.Log(mean) - sigma*sigma/2
	const k = 2.1013 // Weibull: cv² = Γ(1+2/k)/Γ(1+1/k)² - 1
	distributions := map[Shape]func(x float64) float64{
		ShapeLognormal: func(x float64) float64 { return math.Erfc(-(math.Log(x)-mu)/sigma/math.Sqrt2) / 2 },
		ShapeWeibull:   func(x float64) float64 { return -math.Expm1(-math.Pow(x*math.Gamma(1+1/k)/mean, k)) },
		ShapeGamma: func(x float64) float64 { // of shape 1/cv² = 4: Erlang's
			y := x * 4 / mean
			return 1 - math.Exp(-y)*(1+y+y*y/2+y*y*y/6)
		},
	}
	for shape, below := range distributions {
		for _, factor := range []float64{1, 1.5} {
			t.Run(fmt.Sprint(shape, factor), func(t *testing.T) {
				plan := plain(1, DrawnLatency{Bounds: ttftBounds, Mean: mean, CV: cv, Distribution: shape})
				plan.Slowdowns = []Slowdown{{From: 0, To: 5000, Factor: factor}}
				counts := play(draw(t, plan), 5000)[0]
				total, chi2, cells, last := 0.0, 0.0, 0, 0.0
				for _, c := range counts {
					total += c
				}
				for b, c := range counts {
					up := 1.0
					if b < len(ttftBounds) {
						up = below(ttftBounds[b] / factor)
					}
					if expected := total * (up - last); expected >= 5 {
						chi2 += (c - expected) * (c - expected) / expected
						cells++
					}
					last = up
				}
				require.Greater(t, cells, 5)
				// Five standard deviations of a chi-square above its mean.
				freedom := float64(cells - 1)
				assert.Less(t, chi2, freedom+5*math.Sqrt(2*freedom))
			})
		}
	}
}

func TestDrawnRequestsArePoissonAndSwingWithTheDay(t *testing.T) {
	plan := plain(200, DrawnLatency{Bounds: ttftBounds, Mean: 0.3, CV: 0.5, Distribution: ShapeLognormal})
	plan.RateSwing, plan.ErrorRatio = 0.5, 0.02
	d := draw(t, plan)
	var sum, square, finished, failed, noon float64
	for pane := range 1440 {
		d.Next()
		for i := range plan.Replicas {
			f, e := d.Requests(i)
			finished += float64(f)
			failed += float64(e)
			switch pane {
			case 0:
				sum += float64(f)
				square += float64(f) * float64(f)
			case 360:
				noon += float64(f)
			}
		}
	}
	n := float64(plan.Replicas)
	assert.InDelta(t, 60, sum/n, 5*math.Sqrt(60/n), "at the middle of its swing")
	variance := square/n - sum/n*sum/n
	assert.InDelta(t, 60, variance, 5*60*math.Sqrt(2/n), "Poisson: the variance is the mean")
	assert.InDelta(t, 90, noon/n, 5*math.Sqrt(90/n), "a quarter of a day later")
	assert.InEpsilon(t, 60*1440*n, finished, 0.01, "over a day the swing cancels")
	assert.InEpsilon(t, 0.02, failed/finished, 5/math.Sqrt(0.02*finished))
}

// The distribution function is summed up from its terms.
func TestPoissonFollowsItsDistribution(t *testing.T) {
	for _, mean := range []float64{0.4, 3, 12, 60} {
		const draws = 200_000
		random := stream(1, "poisson", fmt.Sprint(mean))
		counts := map[uint64]float64{}
		for range draws {
			counts[poisson(random, mean)]++
		}
		chi2, cells := 0.0, 0.0
		for n := range uint64(200) {
			logFactorial, _ := math.Lgamma(float64(n) + 1)
			expected := draws * math.Exp(float64(n)*math.Log(mean)-mean-logFactorial)
			if expected >= 5 {
				chi2 += (counts[n] - expected) * (counts[n] - expected) / expected
				cells++
			}
		}
		assert.Less(t, chi2, cells+5*math.Sqrt(2*cells), "mean %v", mean)
	}
}

// drifts returns the logarithm of each replica's factor, pane by pane.
func drifts(d *Drawing, panes int) [][]float64 {
	factors := make([][]float64, panes)
	for t := range factors {
		d.Next()
		for i := range d.replicas {
			factors[t] = append(factors[t], d.replicas[i].offset+d.replicas[i].drift)
		}
	}
	return factors
}

func TestDrawnNoiseHasItsVarianceAndMemory(t *testing.T) {
	plan := plain(2000, DrawnLatency{Bounds: ttftBounds, Mean: 0.3, CV: 0.5, Distribution: ShapeLognormal})
	plan.Rate = 1
	moments := func(plan Drawn, lag int) (variance, covariance float64) {
		factors := drifts(draw(t, plan), 51)
		for i := range plan.Replicas {
			first, later := factors[50-lag][i], factors[50][i]
			variance += later * later / float64(plan.Replicas)
			covariance += first * later / float64(plan.Replicas)
		}
		return variance, covariance
	}
	drifting := plan
	drifting.DriftNoise = 0.05
	variance, covariance := moments(drifting, 3)
	assert.InEpsilon(t, 0.05*0.05, variance, 0.16) // five standard errors, 5·√(2/2000)
	assert.InDelta(t, 0.8*0.8*0.8, covariance/variance, 0.1)

	apart := plan
	apart.PodNoise = 0.05
	variance, covariance = moments(apart, 50)
	assert.InEpsilon(t, 0.05*0.05, variance, 0.16)
	assert.InEpsilon(t, 1.0, covariance/variance, 1e-9, "a pod's offset stays")
}

func TestASlowdownStrikesOneReplicaForItsPanes(t *testing.T) {
	plan := plain(3, DrawnLatency{Bounds: ttftBounds, Mean: 0.3, CV: 0.5, Distribution: ShapeGamma})
	struck := plan
	struck.Slowdowns = []Slowdown{{Replica: 1, From: 2, To: 4, Factor: 3}}
	a, b := draw(t, plan), draw(t, struck)
	for pane := range 6 {
		a.Next()
		b.Next()
		for i := range plan.Replicas {
			if i == 1 && (pane == 2 || pane == 3) {
				assert.NotEqual(t, a.Counts(i, 0), b.Counts(i, 0), "pane %d", pane)
			} else {
				assert.Equal(t, a.Counts(i, 0), b.Counts(i, 0), "replica %d, pane %d", i, pane)
			}
		}
	}
}

func TestDrawRefusesWhatCannotBeDrawn(t *testing.T) {
	latency := DrawnLatency{Bounds: ttftBounds, Mean: 0.3, CV: 0.5, Distribution: ShapeGamma}
	for name, plan := range map[string]Drawn{
		"no replicas":     plain(0, latency),
		"cv of zero":      plain(1, DrawnLatency{Bounds: ttftBounds, Mean: 0.3, Distribution: ShapeGamma}),
		"unknown shape":   plain(1, DrawnLatency{Bounds: ttftBounds, Mean: 0.3, CV: 1, Distribution: "cauchy"}),
		"falling bounds":  plain(1, DrawnLatency{Bounds: []float64{2, 1}, Mean: 0.3, CV: 1, Distribution: ShapeGamma}),
		"strange replica": {Replicas: 1, Rate: 1, Latencies: []DrawnLatency{latency}, Slowdowns: []Slowdown{{Replica: 1, Factor: 2}}},
	} {
		_, err := Draw(plan, 1)
		assert.Error(t, err, name)
	}
}

func TestBoundsAreThoseOfThePage(t *testing.T) {
	assert.Equal(t, vllmTTFT.v1, Bounds(VLLM, fleet.TTFT))
	assert.Equal(t, sglangITLBounds, Bounds(SGLang, fleet.ITL))
	assert.Equal(t, vllmRequest.v1, Bounds(VLLM, fleet.E2E))
	assert.Nil(t, Bounds("none", fleet.TTFT))
	assert.Nil(t, Bounds(VLLM, fleet.QueueTime))
}

// BenchmarkDrawnPane draws one pane of a thousand replicas.
func BenchmarkDrawnPane(b *testing.B) {
	d, err := Draw(plain(1000, DrawnLatency{Bounds: ttftBounds, Mean: 0.3, CV: 0.6, Distribution: ShapeLognormal}), 1)
	require.NoError(b, err)
	for b.Loop() {
		d.Next()
	}
	b.ReportMetric(60_000*float64(b.N)/b.Elapsed().Seconds(), "draws/s")
}
