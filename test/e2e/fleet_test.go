// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// slowReplica is the pod that takes longer than the others.
const slowReplica = "chat-2"

// crowded replicas take few requests into a batch, so that the slow one has a queue, which grows.
var crowded = fourReplicas(fleetsim.Fleet{
	Limits:   fleetsim.Limits{MaxNumSeqs: 32},
	Arrivals: fleetsim.Arrivals{Rate: 60},
})

// calm replicas answer short requests that come one by one, so that no queue makes one second unlike the next.
var calm = fourReplicas(fleetsim.Fleet{
	Prompt:   fleetsim.Tokens{Mean: 256},
	Output:   fleetsim.Tokens{Mean: 4},
	Arrivals: fleetsim.Arrivals{Process: fleetsim.GammaSpaced, Burstiness: 50, Rate: 80},
})

// fourReplicas makes four vLLM replicas of one model, one of them 1.8 times as slow.
func fourReplicas(f fleetsim.Fleet) fleetsim.Scenario {
	f.Name, f.Engine, f.ModelName, f.Replicas = "chat", fleetsim.VLLM, "test/chat-8b", 4
	return fleetsim.Scenario{
		Seed:   7,
		Fleets: []fleetsim.Fleet{f},
		Faults: []fleetsim.Fault{{Kind: fleetsim.Slow, Replicas: []int{2}, Factor: 1.8}},
	}
}

// target is one replica as a scrape job names it.
type target struct{ Address, Pod string }

// startFleet serves a fleet in real time until the test ends.
func startFleet(t *testing.T, scenario fleetsim.Scenario) []target {
	t.Helper()
	return serveFleet(t, scenario).targets
}

// servedFleet is a fleet that is served in real time.
type servedFleet struct {
	start   time.Time
	targets []target
	stop    func() // idempotent
}

// serveFleet serves a fleet until it is stopped, or the test ends. The watchers are given the requests that end.
func serveFleet(t *testing.T, scenario fleetsim.Scenario, watchers ...func([]fleetsim.RequestRecord)) *servedFleet {
	t.Helper()
	f := &servedFleet{start: time.Now()}
	simulation, err := fleetsim.New(scenario, f.start)
	require.NoError(t, err)
	for _, watch := range watchers {
		simulation.Watch(watch)
	}
	server, err := fleetsim.Listen(simulation, "127.0.0.1", 0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, func() time.Duration { return time.Since(f.start) }) }()
	f.stop = sync.OnceFunc(func() {
		stop()
		assert.NoError(t, <-done)
	})
	t.Cleanup(f.stop)
	for i, page := range server.URLs() {
		parsed, err := url.Parse(page)
		require.NoError(t, err)
		f.targets = append(f.targets, target{Address: parsed.Host, Pod: simulation.Targets()[i].Name()})
	}
	return f
}
