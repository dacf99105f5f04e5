// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// pageSamples is the size of a real page: a current vLLM with one engine that has
// served requests on two routes, Python client and server metrics included.
const pageSamples = 446

// vllmPage is the metrics page of a busy vLLM replica as it goes on from scrape
// to scrape: the simulator shows two pages one step apart, and every counter
// and histogram of the pages after that grows by the same step, which keeps them
// true to each other for ever.
type vllmPage struct {
	lines []pageLine
}

// pageLine is one line of the page; a comment is a prefix alone.
type pageLine struct {
	prefix     string // up to the value
	sample     bool
	first      float64
	difference float64 // from one scrape to the next
}

// simulateVLLM lets one replica run for five minutes and looks at it twice,
// step apart.
func simulateVLLM(step time.Duration) (*vllmPage, error) {
	const warmUp = 5 * time.Minute
	simulation, err := fleetsim.New(fleetsim.Scenario{
		Seed: 1,
		Fleets: []fleetsim.Fleet{{
			Engine:    fleetsim.VLLM,
			ModelName: "bench",
			Arrivals:  fleetsim.Arrivals{Rate: 8},
		}},
	}, time.Unix(0, 0))
	if err != nil {
		return nil, err
	}
	simulation.AdvanceTo(warmUp)
	before, _ := simulation.Engines()[0].AppendPage(nil)
	simulation.AdvanceTo(warmUp + step)
	after, _ := simulation.Engines()[0].AppendPage(nil)
	page, err := newVLLMPage(string(before), string(after))
	if err != nil {
		return nil, err
	}
	page.fill()
	return page, nil
}

// fill brings the page to the real size with a counter that no dialect knows:
// real pages have more that is to be passed over than simulated ones.
func (p *vllmPage) fill() {
	p.lines = append(p.lines, pageLine{prefix: "# TYPE requests_by_route_total counter"})
	for i := range pageSamples - p.samples() {
		p.lines = append(p.lines, pageLine{
			prefix:     fmt.Sprintf("requests_by_route_total{route=\"/%d\"} ", i),
			sample:     true,
			difference: 1,
		})
	}
}

func newVLLMPage(before, after string) (*vllmPage, error) {
	if strings.Count(before, "\n") != strings.Count(after, "\n") {
		return nil, errors.New("the two pages have different lines")
	}
	page := &vllmPage{}
	rest := after
	cumulative := false
	for line := range strings.Lines(before) {
		var later string
		later, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimSuffix(line, "\n")
		if kind, isType := strings.CutPrefix(line, "# TYPE "); isType {
			cumulative = !strings.HasSuffix(kind, " gauge")
		}
		if strings.HasPrefix(line, "#") {
			page.lines = append(page.lines, pageLine{prefix: line})
			continue
		}
		value := strings.LastIndexByte(line, ' ') + 1
		if !strings.HasPrefix(later, line[:value]) {
			return nil, errors.New("the two pages differ in more than values: " + line)
		}
		first, errFirst := strconv.ParseFloat(line[value:], 64)
		second, errSecond := strconv.ParseFloat(later[value:], 64)
		if err := errors.Join(errFirst, errSecond); err != nil {
			return nil, err
		}
		sample := pageLine{prefix: line[:value], sample: true, first: first}
		if cumulative {
			sample.difference = second - first
		}
		page.lines = append(page.lines, sample)
	}
	return page, nil
}

// samples is the number of samples on the page.
func (p *vllmPage) samples() int {
	n := 0
	for _, line := range p.lines {
		if line.sample {
			n++
		}
	}
	return n
}

// families is the number of metric families on the page.
func (p *vllmPage) families() int {
	n := 0
	for _, line := range p.lines {
		if strings.HasPrefix(line.prefix, "# TYPE ") {
			n++
		}
	}
	return n
}

// at is the page as the scrape of that number sees it.
func (p *vllmPage) at(scrape int) []byte {
	var page []byte
	for _, line := range p.lines {
		page = append(page, line.prefix...)
		if line.sample {
			page = strconv.AppendFloat(page, line.first+float64(scrape)*line.difference, 'g', -1, 64)
		}
		page = append(page, '\n')
	}
	return page
}

// pageServer shows the page to whoever asks; it goes on by one scrape every
// step of real time.
type pageServer struct {
	page  *vllmPage
	step  time.Duration
	start time.Time

	mu     sync.Mutex
	scrape int
	text   []byte
}

func newPageServer(step time.Duration) (*pageServer, error) {
	page, err := simulateVLLM(step)
	if err != nil {
		return nil, err
	}
	return &pageServer{page: page, step: step, start: time.Now(), text: page.at(0)}, nil
}

func (s *pageServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = bytes.NewReader(s.current()).WriteTo(w) // a scraper that has gone away is no concern of ours
}

func (s *pageServer) current() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scrape := int(time.Since(s.start) / s.step); scrape != s.scrape {
		s.scrape, s.text = scrape, s.page.at(scrape)
	}
	return s.text
}
