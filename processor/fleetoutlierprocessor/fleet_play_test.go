// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Hours of simulated pages take minutes under the race detector. It sees the same
// goroutines in TestConduct.
//go:build !race

package fleetoutlierprocessor

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/scrapetest"
)

const (
	scrapeEvery   = 15 * time.Second
	scrapeTimeout = 10 * time.Second
)

// chronicle is what was told of a simulated fleet.
type chronicle struct {
	t       *testing.T
	config  *Config
	strikes time.Duration // when its first fault does
	lasts   time.Duration
	began   time.Time
	mu      sync.Mutex
	told    []telling
}

// telling is one derived point of one evaluation.
type telling struct {
	at time.Duration // since the simulation began
	scenariotest.Point
}

// play plays a scenario of the simulator through a processor, in simulated
// time, with its first fault moved.
func play(t *testing.T, config *Config, scenario string, strikes, lasts time.Duration) *chronicle {
	t.Helper()
	s, err := fleetsim.Builtin(scenario)
	require.NoError(t, err)
	c := &chronicle{t: t, config: config, strikes: strikes, lasts: lasts}
	earlier := s.Faults[0].From - strikes
	for i := range s.Faults {
		s.Faults[i].From -= earlier
	}
	synctest.Test(t, func(t *testing.T) {
		c.began = time.Now()
		sim, err := fleetsim.New(s, c.began)
		require.NoError(t, err)
		next, err := consumer.NewMetrics(c.note)
		require.NoError(t, err)
		p := subject.Start(t, zap.NewNop(), config, next)
		scrapers := scraping{t: t, sim: sim, began: c.began, consume: func(md pmetric.Metrics) {
			assert.NoError(t, p.ConsumeMetrics(context.Background(), md))
		}}
		scrapers.run(c.began.Add(lasts + config.Lateness))
		synctest.Wait()
	})
	return c
}

func (c *chronicle) note(_ context.Context, md pmetric.Metrics) error {
	if !subject.Derived(md) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		for _, dp := range m.Gauge().DataPoints().All() {
			c.told = append(c.told, telling{dp.Timestamp().AsTime().Sub(c.began), scenariotest.PointOf(m.Name(), dp)})
		}
	}
	return nil
}

// scraping reads all targets of a simulation as the prometheus receiver does:
// each at its own moment of the interval, and each for as long as it takes.
type scraping struct {
	t       *testing.T
	began   time.Time
	consume func(pmetric.Metrics)
	mu      sync.Mutex // guards the simulation
	sim     *fleetsim.Simulation
}

// run scrapes until a time.
func (s *scraping) run(until time.Time) {
	var group sync.WaitGroup
	targets := s.sim.Targets()
	for i, target := range targets {
		group.Go(func() {
			scraper := scrapetest.NewScraper(target.Name()+":8000", map[string]string{
				"service.name": "engines", "k8s.namespace.name": fleetsim.Namespace, "k8s.pod.name": target.Name(),
			})
			first := s.began.Add(scrapeEvery * time.Duration(i) / time.Duration(len(targets)))
			for at := first; at.Before(until); at = at.Add(scrapeEvery) {
				time.Sleep(time.Until(at))
				s.scrape(target, scraper)
			}
		})
	}
	group.Wait()
	time.Sleep(time.Until(until))
}

// scrape reads one page. A scrape that times out is told of when it does, with
// the time at which it began.
func (s *scraping) scrape(target *fleetsim.Target, scraper *scrapetest.Scraper) {
	at := time.Now()
	s.mu.Lock()
	s.sim.AdvanceTo(at.Sub(s.began))
	page, status := target.AppendPage(nil)
	labels := target.Labels()
	s.mu.Unlock()
	if status != http.StatusOK {
		if status == fleetsim.TimedOut {
			time.Sleep(scrapeTimeout)
		}
		s.consume(scraper.Fail(labels, at))
		return
	}
	md, err := scraper.Scrape(string(page), labels, at)
	assert.NoError(s.t, err)
	s.consume(md)
}

// labels are those that a series has at least.
type labels map[string]string

// of lists the values that were told of one metric, from a time on.
func (c *chronicle) of(metric string, with labels, from time.Duration) (found []telling) {
	for _, x := range c.told {
		if x.at >= from && !x.Ended && x.Name == metric && with.areOf(x.Labels) {
			found = append(found, x)
		}
	}
	return found
}

func (some labels) areOf(all map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

// flagged lists the values of one label of those series of a flag that were ever
// 1, sorted.
func (c *chronicle) flagged(flag, label string, with labels) (values []string) {
	for _, x := range c.of(flag, with, 0) {
		if value := x.Labels[label]; x.Value == 1 && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

// onset is when a flag of a pod was first 1.
func (c *chronicle) onset(flag, pod string) time.Duration {
	c.t.Helper()
	found := c.of(flag, labels{"pod": pod}, 0)
	i := slices.IndexFunc(found, func(x telling) bool { return x.Value == 1 })
	require.GreaterOrEqual(c.t, i, 0, "%s of %s is never 1", flag, pod)
	return found[i].at
}

// evaluations is how many there are from a time on.
func (c *chronicle) evaluations(from time.Duration) int {
	return int((c.lasts-from)/c.config.Interval) + 1
}

// all holds that the values of one metric from a time on are told at every
// evaluation, and all near to one value.
func (c *chronicle) all(metric string, with labels, from time.Duration, want, near float64) {
	c.t.Helper()
	found := c.of(metric, with, from)
	values := len(found)
	assert.Equal(c.t, c.evaluations(from), values, "values of %s %v", metric, with)
	for _, x := range found {
		assert.InDelta(c.t, want, x.Value, near, "@%s %s", x.at, x.Series())
	}
}
