// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// receiver takes posts without a network. It answers the first ones with the
// statuses given, 0 being no connection, and then always with 200.
type receiver struct {
	statuses []int

	mu     sync.Mutex
	posts  []time.Time
	spans  []int // of each post that was taken
	traces []ptrace.Traces
}

func (r *receiver) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.posts = append(r.posts, time.Now())
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if len(r.statuses) > 0 {
		status, r.statuses = r.statuses[0], r.statuses[1:]
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	if status == http.StatusOK {
		traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(body)
		if err != nil || request.URL.Path != "/v1/traces" || request.Header.Get("Content-Type") != "application/x-protobuf" {
			return nil, errors.New("this is no OTLP over HTTP")
		}
		r.spans = append(r.spans, traces.SpanCount())
		r.traces = append(r.traces, traces)
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader("")), Request: request}, nil
}

// taken is the spans of each post that was taken, so far.
func (r *receiver) taken() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// times are those of all posts, so far.
func (r *receiver) times() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.posts)
}

// running starts an exporter to r; stop ends it and waits.
func running(t *testing.T, r *receiver, o Options) (x *Exporter, told *[]string, stop func()) {
	t.Helper()
	told = new([]string)
	o.Endpoint, o.Client = "http://collector:4318", &http.Client{Transport: r}
	o.Tell = func(message string) { *told = append(*told, message) }
	x, err := New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.Run(ctx)
	}()
	return x, told, func() {
		cancel()
		<-done
	}
}

func requests(n int) []fleetsim.RequestRecord {
	all := make([]fleetsim.RequestRecord, n)
	for i := range all {
		all[i] = answered
		all[i].Number = uint64(i)
	}
	return all
}

func counts(x *Exporter) [2]int {
	sent, dropped := x.Counts()
	return [2]int{int(sent), int(dropped)}
}

func TestBatchesAreSentWhenFullAndEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		x, told, stop := running(t, r, Options{})
		begin := time.Now()
		x.Add(requests(20))
		synctest.Wait()
		assert.Empty(t, r.taken(), "a batch that is not full waits")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []int{20}, r.taken())
		assert.Equal(t, time.Second, r.times()[0].Sub(begin))
		x.Add(requests(1100))
		synctest.Wait()
		assert.Equal(t, []int{20, 500, 500, 100}, r.taken())
		assert.Equal(t, time.Second, r.times()[3].Sub(begin))
		x.Add(requests(3))
		stop()
		assert.Equal(t, []int{20, 500, 500, 100, 3}, r.taken(), "what is left is sent at the end")
		assert.Equal(t, [2]int{1123, 0}, counts(x))
		assert.Empty(t, *told)
	})
}

func TestARefusedBatchIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{statuses: []int{0, 503, 429}}
		x, told, stop := running(t, r, Options{})
		x.Add(requests(20))
		time.Sleep(10 * time.Second)
		stop()
		assert.Equal(t, []int{20}, r.taken())
		assert.Equal(t, [2]int{20, 0}, counts(x))
		require.Len(t, r.times(), 4)
		for i, pause := range []time.Duration{250, 500, 1000} {
			assert.Equal(t, pause*time.Millisecond, r.times()[i+1].Sub(r.times()[i]))
		}
		require.Len(t, *told, 2, "that it failed and that it is over, once each")
		assert.Contains(t, (*told)[0], "nobody takes the spans at http://collector:4318/v1/traces: ")
		assert.Contains(t, (*told)[0], "connection refused")
		assert.Equal(t, "the spans are taken again at http://collector:4318/v1/traces", (*told)[1])
	})
}

func TestWhatNobodyTakesIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{statuses: make([]int, 100)}
		x, told, stop := running(t, r, Options{QueueSize: 600})
		x.Add(requests(20))
		time.Sleep(10 * time.Second)
		assert.Equal(t, [2]int{0, 20}, counts(x), "after six tries")
		assert.Len(t, r.times(), 6)
		x.Add(requests(900))
		assert.Equal(t, [2]int{0, 320}, counts(x), "600 wait")
		stop()
		assert.Equal(t, [2]int{0, 920}, counts(x))
		require.Len(t, *told, 2)
		assert.Equal(t, "the spans of 920 requests were not sent to http://collector:4318/v1/traces", (*told)[1])
	})
}

func TestAnAnswerThatStaysIsNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{statuses: []int{http.StatusBadRequest}}
		x, _, stop := running(t, r, Options{})
		x.Add(requests(20))
		time.Sleep(5 * time.Second)
		assert.Equal(t, [2]int{0, 20}, counts(x))
		assert.Len(t, r.times(), 1)
		stop()
	})
}

func TestBothSourcesTellOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		x, _, stop := running(t, r, Options{Sources: []Source{Gateway, Engines}})
		x.Add(requests(20))
		stop()
		assert.Equal(t, []int{40}, r.taken())
		assert.Equal(t, 2, r.traces[0].ResourceSpans().Len())
		assert.Equal(t, [2]int{20, 0}, counts(x))
	})
}

func TestMistakesSayWhatToWrite(t *testing.T) {
	for _, endpoint := range []string{"", "127.0.0.1:4318", "ftp://a", "http://", "http://a b"} {
		_, err := New(Options{Endpoint: endpoint})
		require.ErrorContains(t, err, "write a URL such as http://127.0.0.1:4318", endpoint)
	}
	_, err := New(Options{Endpoint: "http://a", Sources: []Source{"router"}})
	require.ErrorContains(t, err, `source of spans is "router": write gateway or engines`)
	x, err := New(Options{Endpoint: "http://a/otlp/v1/traces"})
	require.NoError(t, err)
	assert.Equal(t, "http://a/otlp/v1/traces", x.url)
}

// What arrives over real HTTP sums to what the engines counted themselves.
func TestSpansSumToWhatTheEnginesCount(t *testing.T) {
	scenario, err := fleetsim.Parse([]byte(`
fleets:
  - name: chat
    engine: vllm
    model_name: qwen3-8b
    replicas: 2
    prefix_hit_ratio: 0.5
    arrivals: {rate: 20, requests: 3000}
    tenants: {count: 50, tiers: [gold, trial]}
`))
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, noon)
	require.NoError(t, err)

	type totals struct{ requests, prompt, cached, output float64 }
	var told, counted totals
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		assert.NoError(t, err)
		traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(body)
		assert.NoError(t, err)
		for _, span := range traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			number := func(key string) float64 {
				v, found := span.Attributes().Get(key)
				assert.True(t, found, key)
				return float64(v.Int())
			}
			told.requests++
			told.prompt += number("gen_ai.usage.input_tokens")
			told.cached += number("gen_ai.usage.cache_read.input_tokens")
			told.output += number("gen_ai.usage.output_tokens")
		}
	}))
	defer server.Close()

	x, err := New(Options{Endpoint: server.URL})
	require.NoError(t, err)
	sim.Watch(x.Add)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { x.Run(ctx) })
	sim.AdvanceTo(10 * time.Minute)
	cancel()
	group.Wait()
	for _, e := range sim.Engines() {
		s := e.Snapshot()
		counted.requests += s.Finished
		counted.prompt += s.PromptTokens
		counted.cached += s.PrefixHits
		counted.output += s.GeneratedTokens
	}
	assert.Equal(t, counted, told)
	assert.Equal(t, [2]int{3000, 0}, counts(x))
}
