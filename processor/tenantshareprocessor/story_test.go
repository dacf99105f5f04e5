// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// world is a fleet of two engines and its gateway, scraped every 15 s. Its
// inter-token latency is a line: 9 ms, and 11 ms at the usual prompt tokens of all
// tenants together; each pane is off by some 2 %.
type world struct {
	random   *rand.Rand
	tenants  map[string]float64 // prompt tokens a pane, on average
	engines  map[string]float64 // what counters show
	gateway  map[string]float64
	targets  scenariotest.Targets
	perEach  map[string]float64 // prompt tokens a scrape, in this pane
	itl      float64            // in this pane
	replicas []string
	deaf     bool          // the gateway is not reached
	at       time.Duration // how far it was played
}

const (
	scrapesPerPane = 4
	usualPrompts   = 100_000 // a pane
	stepsPerScrape = 1000    // of one engine
)

// newWorld has ten tenants: tenant-0 sends 5 % of all prompt tokens, the others
// the rest, the first of them most.
func newWorld() *world {
	w := &world{
		random: rand.New(rand.NewPCG(1, 2)), tenants: map[string]float64{"tenant-0": 0.05 * usualPrompts},
		engines: map[string]float64{}, gateway: map[string]float64{}, targets: scenariotest.Targets{}, replicas: []string{"engine-0", "engine-1"},
	}
	harmonic := 0.0
	for i := 1; i < 10; i++ {
		harmonic += 1 / float64(i)
	}
	for i := 1; i < 10; i++ {
		w.tenants[fmt.Sprintf("tenant-%d", i)] = 0.95 * usualPrompts / harmonic / float64(i)
	}
	return w
}

// draw decides what happens in the next pane: the traffic of all swings by a
// quarter, that of each by a tenth beside.
func (w *world) draw() {
	w.perEach = map[string]float64{}
	swing := 1 + 0.25*(2*w.random.Float64()-1)
	total := 0.0
	for _, name := range sortedKeys(w.tenants) {
		tokens := w.tenants[name] * swing * (1 + 0.1*(2*w.random.Float64()-1))
		w.perEach[name] = float64(int(tokens / scrapesPerPane))
		total += scrapesPerPane * w.perEach[name]
	}
	w.itl = (0.009 + 0.011*total/usualPrompts) * (1 + 0.02*w.random.NormFloat64())
}

// pages are what the targets show next.
func (w *world) pages(at time.Duration) []scenariotest.Page {
	total := 0.0
	gateway := []scenariotest.Line{{Typed: "counter", Name: emit.TenantTokens}}
	for _, name := range sortedKeys(w.perEach) {
		total += w.perEach[name]
		w.gateway[name] += w.perEach[name]
		for kind, value := range map[string]float64{"input_uncached": w.gateway[name], "output": w.gateway[name] / 10} {
			gateway = append(gateway, scenariotest.Line{
				Name: emit.TenantTokens, Labels: fmt.Sprintf(`model_name="m",tenant=%q,token_type=%q`, name, kind), Value: float64(int(value)),
			})
		}
	}
	pages := []scenariotest.Page{{At: at, Target: map[string]string{"pod": "gateway"}, Lines: gateway}}
	for _, pod := range w.replicas {
		w.engines[pod+" steps"] += stepsPerScrape
		w.engines[pod+" seconds"] += stepsPerScrape * w.itl
		w.engines[pod+" prompt"] += total / float64(len(w.replicas))
		pages = append(pages, scenariotest.Page{At: at, Target: map[string]string{"pod": pod}, Lines: []scenariotest.Line{
			{Typed: "histogram", Name: "vllm:inter_token_latency_seconds"},
			{Name: "vllm:inter_token_latency_seconds_sum", Labels: `model_name="m"`, Value: w.engines[pod+" seconds"]},
			{Name: "vllm:inter_token_latency_seconds_count", Labels: `model_name="m"`, Value: w.engines[pod+" steps"]},
			{Typed: "gauge", Name: "vllm:num_requests_running"},
			{Name: "vllm:num_requests_running", Labels: `model_name="m"`, Value: 16},
			{Typed: "counter", Name: "vllm:prompt_tokens_total"},
			{Name: "vllm:prompt_tokens_total", Labels: `model_name="m"`, Value: w.engines[pod+" prompt"]},
		}})
	}
	return pages
}

// play plays the world on the stage until some time.
func (w *world) play(stage *scenariotest.Stage[*Config], until time.Duration) {
	for ; w.at < until; w.at += stage.Config.Pane / scrapesPerPane {
		if w.at%stage.Config.Pane == 0 {
			w.draw()
		}
		scenariotest.Wait(stage.Began.Add(w.at + stage.Config.Pane/scrapesPerPane/2))
		for _, page := range w.pages(time.Since(stage.Began)) {
			if page.Target["pod"] == "gateway" && w.deaf {
				page.Lines, page.Failed = nil, true
			}
			stage.Consume(w.targets.Scrape(&page, stage.Began))
		}
	}
}

func sortedKeys(m map[string]float64) []string { return slices.Sorted(maps.Keys(m)) }

const (
	burst   = 40 * time.Minute // when something happens
	midst   = 47 * time.Minute // when something else does
	storyAt = 55 * time.Minute // when the story ends
)

// tell plays 40 minutes, lets change happen to the tenants' usual tokens, plays 15
// more, and lets something happen to the processor or its input in their midst. It
// returns what was told, by time.
func tell(t *testing.T, config *Config, change func(tenants map[string]float64), during func(*scenariotest.Stage[*Config], *world)) scenariotest.Told {
	t.Helper()
	stage, w := subject.Stage(t, config), newWorld()
	stage.Raise()
	w.play(stage, burst)
	change(w.tenants)
	w.play(stage, midst)
	during(stage, w)
	w.play(stage, storyAt)
	scenariotest.Wait(stage.Began.Add(storyAt + config.Lateness + time.Millisecond))
	stage.Shutdown()
	return stage.Told(t)
}

func nothing(*scenariotest.Stage[*Config], *world) {}

func restart(s *scenariotest.Stage[*Config], _ *world) {
	s.Shutdown()
	s.Raise()
}

// figure is the value of a series at one time; false if it was not told.
func figure(points []scenariotest.Point, name, tenant string) (float64, bool) {
	for _, p := range points {
		if p.Name == name && p.Labels["tenant"] == tenant && !p.Ended {
			return p.Value, true
		}
	}
	return 0, false
}

// accused are the tenants that were ever noisy, and when first.
func accused(told scenariotest.Told) map[string]time.Duration {
	first := map[string]time.Duration{}
	for at, points := range told {
		for _, p := range points {
			if p.Name != emit.TenantNoisy || p.Value != 1 || p.Ended {
				continue
			}
			if before, ok := first[p.Labels["tenant"]]; !ok || at < before {
				first[p.Labels["tenant"]] = at
			}
		}
	}
	return first
}

// meanITL is the fleet's latency since the burst, as it was told.
func meanITL(told scenariotest.Told) float64 {
	sum, n := 0.0, 0.0
	for at := burst + time.Minute; at <= storyAt; at += time.Minute {
		itl, _ := figure(told[at], emit.FleetITL, "")
		sum, n = sum+itl, n+1
	}
	return sum / n
}

// burstOf makes a tenant that had 5 % of all send 45 %, the others as before. The
// latency goes from 20 to 9 + 11·0.95/0.55 = 28 ms.
func burstOf(tenants map[string]float64) {
	tenants["tenant-0"] = 0.95 * usualPrompts * 0.45 / 0.55
}

// TestNoisyNeighbourIsNamed is the story of one tenant whose share goes from 5 to
// 45 %, and the fleet's latency from 20 to 28 ms with it: named within five panes,
// with an excess of 0.4 and its onset within a pane.
func TestNoisyNeighbourIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := tell(t, subject.Defaults(), burstOf, nothing)
		first := accused(told)
		require.Contains(t, first, "tenant-0")
		require.Len(t, first, 1, "nobody else is named: %v", first)
		assert.LessOrEqual(t, first["tenant-0"], burst+5*time.Minute)
		assert.Greater(t, first["tenant-0"], burst)
		for at := first["tenant-0"]; at <= storyAt; at += time.Minute {
			noisy, _ := figure(told[at], emit.TenantNoisy, "tenant-0")
			assert.InDelta(t, 1, noisy, 0, "%s", at)
			excess, ok := figure(told[at], emit.TenantITLExcess, "tenant-0")
			require.True(t, ok, "%s", at)
			assert.InDelta(t, 0.4, excess, 0.1, "%s", at)
			ago, _ := figure(told[at], emit.TenantNoisyDuration, "tenant-0")
			onset := at - time.Duration(ago*float64(time.Second))
			assert.InDelta(t, burst.Minutes(), onset.Minutes(), 1, "%s", at)
			usual, _ := figure(told[at], emit.TenantUsualShare, "tenant-0")
			assert.InDelta(t, 0.05, usual, 0.01, "%s", at)
			itl, _ := figure(told[at], emit.FleetUsualITL, "")
			assert.InDelta(t, 0.020, itl, 0.001, "%s", at)
			score, _ := figure(told[at], emit.TenantNoisyScore, "tenant-0")
			assert.Greater(t, score, 5.0, "%s", at)
		}
		share, _ := figure(told[storyAt], emit.TenantTokenShare, "tenant-0")
		assert.InDelta(t, 0.45, share, 0.03)
		assert.InDelta(t, 0.028, meanITL(told), 0.001)
	})
}

// TestSurgeOfAllAccusesNobody is the same latency from a surge in which everyone
// sends more and shares stay as they are.
func TestSurgeOfAllAccusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := tell(t, subject.Defaults(), func(tenants map[string]float64) {
			for name := range tenants {
				tenants[name] /= 0.55 / 0.95
			}
		}, nothing)
		assert.Empty(t, accused(told))
		assert.InDelta(t, 0.028, meanITL(told), 0.001)
		for at := burst + 5*time.Minute; at <= storyAt; at += time.Minute {
			noisy, ok := figure(told[at], emit.TenantNoisy, "tenant-0")
			assert.True(t, ok && noisy == 0, "it is known that tenant-0 is not noisy at %s", at)
		}
	})
}

// TestGatewayThatIsNotReached is missing for two minutes while a tenant is noisy,
// and then tells of them and of the next at once. The tenant stays noisy, for no
// excess that can be measured meanwhile; the heap of tokens is nobody's burst.
func TestGatewayThatIsNotReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := tell(t, subject.Defaults(), burstOf, func(s *scenariotest.Stage[*Config], w *world) {
			w.deaf = true
			w.play(s, midst+2*time.Minute)
			w.deaf = false
		})
		assert.Len(t, accused(told), 1)
		for at := midst; at <= midst+2*time.Minute; at += time.Minute {
			noisy, _ := figure(told[at], emit.TenantNoisy, "tenant-0")
			assert.InDelta(t, 1, noisy, 0, "%s", at)
			_, measured := figure(told[at], emit.TenantITLExcess, "tenant-0")
			assert.Equal(t, at == midst, measured, "%s", at)
		}
		excess, _ := figure(told[storyAt], emit.TenantITLExcess, "tenant-0")
		assert.InDelta(t, 0.4, excess, 0.1)
	})
}

// TestGatewayThatIsGone is missing for longer than a window: who was noisy is not
// known any more.
func TestGatewayThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := tell(t, subject.Defaults(), burstOf, func(s *scenariotest.Stage[*Config], w *world) {
			w.deaf = true
			w.play(s, storyAt)
		})
		for at := midst + time.Minute; at <= storyAt; at += time.Minute {
			_, ok := figure(told[at], emit.TenantNoisy, "tenant-0")
			assert.Equal(t, at < midst+createDefaultConfig().(*Config).Window, ok, "%s", at)
			_, ok = figure(told[at], emit.FleetITL, "")
			assert.True(t, ok, "%s", at)
		}
	})
}

// TestRestartWithStorageGoesOn restarts the collector while a tenant is noisy: it
// stays so, since when it was.
func TestRestartWithStorageGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := tell(t, subject.Stored(t), burstOf, restart)
		assert.Len(t, accused(told), 1)
		for at := midst + 2*time.Minute; at <= storyAt; at += time.Minute {
			noisy, ok := figure(told[at], emit.TenantNoisy, "tenant-0")
			assert.True(t, ok && noisy == 1, "%s", at)
			ago, _ := figure(told[at], emit.TenantNoisyDuration, "tenant-0")
			assert.InDelta(t, burst.Minutes(), (at - time.Duration(ago*float64(time.Second))).Minutes(), 1, "%s", at)
		}
	})
}

// TestRestartWithoutStorageAccusesNobody: what a tenant usually sends is not known
// after a restart, and what it sends now is not held against it.
func TestRestartWithoutStorageAccusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := tell(t, subject.Defaults(), burstOf, restart)
		for at := midst + time.Minute; at <= storyAt; at += time.Minute {
			noisy, _ := figure(told[at], emit.TenantNoisy, "tenant-0")
			assert.Zero(t, noisy, "%s", at)
		}
	})
}
