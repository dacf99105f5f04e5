// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
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

func TestBusyPortIsNamed(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	_, err = Listen(simulate(t, oneVLLM), "127.0.0.1", port)
	require.ErrorContains(t, err, "port "+strconv.Itoa(port)+" for qwen-0")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}
