// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// untilStopped is a collector that ends when it is asked to.
const untilStopped = "trap 'exit 0' TERM; while :; do sleep 0.05; done"

// example is one whose collector does nothing, and whose spans are counted.
func example(t *testing.T, show func(context.Context, *Demo) error) (x *Example, o *Options, posts *atomic.Int64) {
	t.Helper()
	posts = &atomic.Int64{}
	spans := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posts.Add(1) }))
	t.Cleanup(spans.Close)
	free, err := net.Listen("tcp", Host+":0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())

	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	writeFile(t, fleet, "fleets: [{engine: vllm, model_name: chat, output_tokens: {mean: 4}, arrivals: {rate: 100}}]")
	x = &Example{Name: "test", FirstPort: port, SpansURL: spans.URL, EventsPath: filepath.Join(t.TempDir(), "events"), Show: show}
	return x, &Options{Collector: script(t, untilStopped), Fleet: fleet}, posts
}

func TestSpansReachTheCollectorAndAllEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var posts *atomic.Int64
	var x *Example
	var o *Options
	x, o, posts = example(t, func(ctx context.Context, d *Demo) error {
		assert.Eventually(t, func() bool { return posts.Load() > 0 }, time.Minute, 10*time.Millisecond)
		response, err := http.Get(fmt.Sprintf("http://%s:%d/metrics", Host, x.FirstPort))
		if assert.NoError(t, err) {
			assert.Equal(t, http.StatusOK, response.StatusCode)
			assert.NoError(t, response.Body.Close())
		}
		cancel()
		return d.Follow(ctx)
	})
	var out bytes.Buffer
	require.NoError(t, x.run(ctx, o, &out))
	assert.Equal(t, "\nstopped\n", out.String())
	require.NoError(t, CheckPorts([]int{x.FirstPort}), "the pages are gone")
}

func TestWhatShowReturnsIsReturned(t *testing.T) {
	x, o, _ := example(t, func(context.Context, *Demo) error { return errors.New("nothing to show") })
	require.ErrorContains(t, x.run(t.Context(), o, &bytes.Buffer{}), "nothing to show")
	x, o, _ = example(t, func(_ context.Context, d *Demo) error {
		<-d.Ended
		return nil
	})
	o.Collector = script(t, "echo no config; exit 2")
	require.ErrorContains(t, x.run(t.Context(), o, &bytes.Buffer{}), "no config")
	o.Fleet = filepath.Join(t.TempDir(), "none.yaml")
	require.ErrorContains(t, x.run(t.Context(), o, &bytes.Buffer{}), "none.yaml")
}

func TestEachEventIsToldOnceAndNoLineTwice(t *testing.T) {
	var out bytes.Buffer
	d := &Demo{Out: &out, start: time.Now(), events: events{path: filepath.Join(t.TempDir(), "events")}}
	writeFile(t, d.events.path, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a is noisy."}}]}]}]}`+"\n")
	require.NoError(t, d.TellEvents())
	require.NoError(t, d.TellEvents())
	d.Tell("20 ms")
	d.Tell("20 ms")
	assert.Equal(t, "  0 s  a is noisy.\n  0 s  20 ms\n", out.String())
	assert.Equal(t, 1, d.Told)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
