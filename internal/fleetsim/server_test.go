// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type answer struct {
	status            int
	contentType, body string
	err               error
}

func get(t *testing.T, url string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{status: response.StatusCode, contentType: response.Header.Get("Content-Type"), body: string(body)}
}

func TestServerAnswersAsTheEnginesDo(t *testing.T) {
	sim := simulate(t, oneVLLM+`
faults:
  - {kind: gap, replicas: [1], from: 5s}
  - {kind: gap, replicas: [2], from: 5s, status: 503}
`)
	server, err := Listen(sim, "127.0.0.1", 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var elapsed atomic.Int64
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, func() time.Duration { return time.Duration(elapsed.Load()) }) }()

	elapsed.Store(int64(10 * time.Second))
	urls := server.URLs()
	require.Len(t, urls, 3)
	page := get(t, urls[0])
	assert.Equal(t, http.StatusOK, page.status)
	assert.Equal(t, "text/plain; version=0.0.4; charset=utf-8", page.contentType)
	twin := simulate(t, oneVLLM)
	assert.Equal(t, pageAt(t, twin, 0, 10*time.Second), page.body)

	require.ErrorIs(t, get(t, urls[1]).err, io.EOF, "the connection is closed")
	assert.Equal(t, http.StatusServiceUnavailable, get(t, urls[2]).status)

	cancel()
	require.NoError(t, <-served)
	require.Error(t, get(t, urls[0]).err)
}

// serve shows a simulation at ports of this machine until the test ends.
func serve(t *testing.T, sim *Simulation, at time.Duration) *Server {
	t.Helper()
	server, err := Listen(sim, "127.0.0.1", 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, func() time.Duration { return at }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	return server
}

func TestPrometheusFindsAllPages(t *testing.T) {
	sim := simulate(t, twoNodes)
	server := serve(t, sim, time.Minute)
	found := get(t, server.TargetsURL())
	assert.Equal(t, "application/json", found.contentType)
	var groups []struct {
		Targets []string
		Labels  map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(found.body), &groups))
	require.Len(t, groups, 6, "four replicas and two nodes")
	for i, target := range sim.Targets() {
		require.Len(t, groups[i].Targets, 1)
		assert.Equal(t, server.URLs()[i], "http://"+groups[i].Targets[0]+groups[i].Labels["__metrics_path__"])
		delete(groups[i].Labels, "__metrics_path__")
		assert.Equal(t, target.Labels(), groups[i].Labels)
	}
	assert.Contains(t, get(t, server.URLs()[4]).body, "DCGM_FI_DEV_SM_CLOCK{")
	byName := get(t, strings.Replace(server.TargetsURL(), "127.0.0.1", "localhost", 1))
	assert.Contains(t, byName.body, `"localhost:`, "as the client reached it")
}

func TestPrometheusFindsThePodsOfTheMoment(t *testing.T) {
	for at, pods := range map[time.Duration][]string{
		time.Second: {"qwen-0", "qwen-1", "qwen-2"}, time.Minute: {"qwen-0", "qwen-2", "qwen-b-1"},
	} {
		sim := simulate(t, oneVLLM+"faults: [{kind: new_revision, mode: replace, replicas: [1], revision: b, from: 30s}]\n")
		server := serve(t, sim, at)
		found := get(t, server.TargetsURL()).body
		for i, target := range sim.Targets() {
			exists := slices.Contains(pods, target.Name())
			assert.Equal(t, exists, strings.Contains(found, `"pod": "`+target.Name()+`"`), "%s at %v", target.Name(), at)
			page := get(t, server.URLs()[i])
			assert.Equal(t, exists, page.err == nil && page.status == http.StatusOK, "%s at %v", target.Name(), at)
		}
	}
}

func TestAScrapeThatTimesOutGetsNoAnswer(t *testing.T) {
	server := serve(t, simulate(t, oneVLLM+"faults: [{kind: gap, replicas: [1], mode: timeout}]\n"), time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URLs()[1], http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		response.Body.Close()
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, http.StatusOK, get(t, server.URLs()[0]).status, "the others go on")
}

func TestBusyPortIsNamed(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	_, err = Listen(simulate(t, oneVLLM), "127.0.0.1", port)
	require.ErrorContains(t, err, "port "+strconv.Itoa(port)+" for qwen-0")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}

func TestWatchedRequestsEndWithoutAScrape(t *testing.T) {
	sim := simulate(t, oneVLLM)
	first := make(chan RequestRecord, 1)
	sim.Watch(func(records []RequestRecord) {
		select {
		case first <- records[0]:
		default:
		}
	})
	serve(t, sim, time.Minute)
	assert.Equal(t, http.StatusOK, (<-first).Status)
}
