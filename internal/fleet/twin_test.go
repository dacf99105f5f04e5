// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/window"
)

// pair is two targets of one replica, scraped 7 s apart.
func pair(tl *timeline) (one, two *scrape) { return tl.scrape(1, "a"), tl.scrape(2, "a") }

const (
	phaseOne = 3
	phaseTwo = 10
)

func TestSecondScrapeOfAProcessIsACopy(t *testing.T) {
	for name, process := range map[string]float64{"equal start of the process": 1_767_000_000, "equal counters": 0} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline()
			one, two := pair(tl)
			one.process, two.process = process, process
			tl.scraped(phaseOne, 700, one.steady)
			tl.scraped(phaseTwo, 700, two.steady)
			views := tl.run(690)
			for end := 30; end <= 690; end += 30 {
				assert.Equal(t, 1, views[end].copies, "at %d s", end)
				if end >= 330 {
					assert.Equal(t, perWindow, views[end].members["a"].observations, "at %d s", end)
				}
			}
		})
	}
}

func TestOtherProcessOfAReplicaIsARank(t *testing.T) {
	for name, process := range map[string]float64{"another start of the process": 1_767_000_000, "other counters": 0} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline()
			one, two := pair(tl)
			if process != 0 {
				one.process, two.process = process, process+5
			}
			tl.scraped(phaseOne, 700, one.steady)
			tl.scraped(phaseTwo, 700, func(at window.Instant) { // three a second since noon
				two.total(at, uint64(3*at.Sub(noon).Seconds()))
			})
			views := tl.run(690)
			for end := 330; end <= 690; end += 30 {
				assert.Zero(t, views[end].copies, "at %d s", end)
				assert.Equal(t, 4*perWindow, views[end].members["a"].observations, "at %d s", end)
			}
		})
	}
}

// Equal counts under other rank labels are two ranks with equal counts.
func TestOtherRankIsNoCopy(t *testing.T) {
	tl := newTimeline()
	one, two := pair(tl)
	one.spelling.Rank, two.spelling.Rank = 1, 2
	tl.scraped(phaseOne, 400, one.steady)
	tl.scraped(phaseTwo, 400, two.steady)
	v := tl.run(390)[390]
	assert.Zero(t, v.copies)
	assert.Equal(t, 2*perWindow, v.members["a"].observations)
}

func TestCopyTakesTheSilentOnesPlace(t *testing.T) {
	for name, stop := range map[string]func(one *scrape){
		"scrape fails": func(one *scrape) { one.tl.scraped(600, 1300, one.fail) },
		"target gone":  func(*scrape) {},
	} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline()
			one, two := pair(tl)
			tl.scraped(phaseOne, 600, one.steady)
			tl.scraped(phaseTwo, 1300, two.steady)
			stop(one)
			views := tl.run(1290)
			for end := 330; end <= 1290; end += 30 {
				m := views[end].members["a"]
				if name == "target gone" && end == 630 {
					// Not yet departed, and its last sample came at 588 s.
					assert.Equal(t, perWindow-30, m.observations)
					continue
				}
				assert.Equal(t, perWindow, m.observations, "at %d s", end)
				assert.False(t, m.unreachable, "at %d s", end)
				assert.False(t, m.warming, "at %d s", end)
			}
		})
	}
}

func TestOriginalThatReturnsIsACopy(t *testing.T) {
	tl := newTimeline()
	one, two := pair(tl)
	tl.scraped(phaseOne, 600, one.steady)
	tl.scraped(603, 700, one.fail)
	tl.scraped(708, 1300, one.steady)
	tl.scraped(phaseTwo, 1300, two.steady)
	views := tl.run(1290)
	for end := 330; end <= 1290; end += 30 {
		assert.Equal(t, 1, views[end].copies, "at %d s", end)
		assert.Equal(t, perWindow, views[end].members["a"].observations, "at %d s", end)
	}
}

func TestThreeScrapesOfAProcessAreOne(t *testing.T) {
	tl := newTimeline()
	one, two := pair(tl)
	three := tl.scrape(3, "a")
	tl.scraped(phaseOne, 600, one.steady)
	tl.scraped(phaseTwo, 900, two.steady)
	tl.scraped(13, 1300, three.steady)
	tl.scraped(600, 1300, one.fail)
	tl.scraped(905, 1300, two.fail)
	views := tl.run(1290)
	for end := 330; end <= 1290; end += 30 {
		assert.Equal(t, 2, views[end].copies, "at %d s", end)
		assert.Equal(t, perWindow, views[end].members["a"].observations, "at %d s", end)
	}
}

// A restart falls anywhere between the scrapes and the evaluations: what the
// replica did is what one of the two targets has seen of it, never their sum.
func TestRestartIsNotCountedTwice(t *testing.T) {
	for name, told := range map[string]bool{"start of the process told": true, "untold": false} {
		for restart := 600; restart < 630; restart++ {
			t.Run(fmt.Sprintf("%s, at %d s", name, restart), func(t *testing.T) {
				tl := newTimeline()
				one, two := pair(tl)
				alone := [2]*timeline{newTimeline(), newTimeline()}
				for i, s := range []*scrape{one, two} {
					phase := []int{phaseOne, phaseTwo}[i]
					single := alone[i].scrape(1, "a")
					restarting := func(s *scrape) func(at window.Instant) {
						return func(at window.Instant) {
							began := after(-100_000)
							if at >= after(restart) {
								began = after(restart)
							}
							if told {
								s.process = float64(began) / 1e9
							}
							s.total(at, uint64(at.Sub(began).Seconds()))
						}
					}
					tl.scraped(phase, 1300, restarting(s))
					alone[i].scraped(phase, 1300, restarting(single))
				}
				views, first, second := tl.run(1290), alone[0].run(1290), alone[1].run(1290)
				for end := 330; end <= 1290; end += 30 {
					assert.Contains(t, []uint64{first[end].members["a"].observations, second[end].members["a"].observations},
						views[end].members["a"].observations, "at %d s", end)
				}
			})
		}
	}
}

// Two idle ranks look like one process scraped twice, until they work.
func TestIdleRanksAreToldApartOnceTheyWork(t *testing.T) {
	tl := newTimeline()
	one, two := pair(tl)
	for rate, s := range map[uint64]*scrape{1: one, 2: two} {
		tl.scraped(phaseOne*int(rate), 1300, func(at window.Instant) {
			s.total(at, rate*uint64(max(0, at.Sub(after(600)).Seconds())))
		})
	}
	views := tl.run(1290)
	assert.Equal(t, 1, views[600].copies)
	for end := 720; end <= 1290; end += 30 {
		assert.Zero(t, views[end].copies, "at %d s", end)
	}
	assert.Equal(t, 3*perWindow, views[1290].members["a"].observations)
}

// A scrape target that is renamed, or a pod that comes back under its name: the
// replica goes on elsewhere before it counts as departed.
func TestReplicaGoesOnUnderAnotherAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		process float64 // start of the process at the new address
		began   int     // when it began to count
	}{
		"same process":         {1_767_000_000, -100_000},
		"same process, untold": {0, -100_000},
		"new process":          {1_767_269_395, 595},
		"new process, untold":  {0, 595},
	} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline()
			former, current := pair(tl)
			current.process = tc.process
			if tc.process != 0 {
				former.process = 1_767_000_000
			}
			count := func(s *scrape, began int) func(at window.Instant) {
				return func(at window.Instant) { s.total(at, uint64(at.Sub(after(began)).Seconds())) }
			}
			tl.scraped(phaseOne, 600, count(former, -100_000))
			tl.scraped(603, 1300, count(current, tc.began))
			views := tl.run(1290)
			for end := 330; end <= 1290; end += 30 {
				assert.Contains(t, views[end].members, "a", "at %d s", end)
				m := views[end].members["a"]
				assert.False(t, m.warming, "at %d s", end)
				assert.LessOrEqual(t, m.observations, perWindow, "at %d s", end)
				// What lies between the last page here and the first one there
				// is unknown, as is what comes until the new address is trusted.
				assert.GreaterOrEqual(t, m.observations, perWindow-60, "at %d s", end)
			}
			assert.Equal(t, perWindow, views[1290].members["a"].observations)
		})
	}
}

// TestGatewaysThatCountAlike: requests that are dealt to two processes in turn
// make counts that could be those of one. Where that is usual, only the start of
// the process tells.
func TestGatewaysThatCountAlike(t *testing.T) {
	for name, c := range map[string]struct {
		process float64
		copies  int
		total   uint64
	}{
		"nobody says when it began": {0, 0, 2 * perWindow},
		"both say the same":         {1_767_000_000, 1, perWindow},
	} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline(func(o *Options) { o.CopiesByProcess = true })
			one, two := pair(tl)
			one.process, two.process = c.process, c.process
			tl.scraped(phaseOne, 700, one.steady)
			tl.scraped(phaseTwo, 700, two.steady)
			views := tl.run(690)
			for end := 330; end <= 690; end += 30 {
				assert.Equal(t, c.copies, views[end].copies, "at %d s", end)
				assert.Equal(t, c.total, views[end].members["a"].observations, "at %d s", end)
			}
		})
	}
}
