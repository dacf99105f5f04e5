// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// Source is who tells of requests.
type Source string

// The sources.
const (
	// Gateway is an Envoy AI Gateway that names its attributes by the semantic
	// conventions for generative AI.
	Gateway Source = "gateway"
	// Engines are vLLM's own spans, llm_request.
	Engines Source = "engines"
)

// Options say where spans go and who sends them.
type Options struct {
	// Endpoint that takes OTLP over HTTP, such as http://127.0.0.1:4318. Without
	// a path, /v1/traces is added.
	Endpoint string
	// Sources that tell of each request. Default: the gateway.
	Sources []Source
	// QueueSize is how many requests may wait to be sent; what comes beyond that
	// is dropped. Default: 20000.
	QueueSize int
	// Tell is called with what a person should know: that nobody takes the
	// spans, and how many were dropped. Default: nobody is told.
	Tell func(message string)
	// Client that posts. Default: one of its own.
	Client *http.Client
}

const (
	batchSize    = 500         // requests
	sendInterval = time.Second // a batch that is not full waits so long
	firstPause   = 250 * time.Millisecond
	mostPause    = 4 * time.Second
	mostTries    = 6               // then a batch is dropped, after some eight seconds
	sendTimeout  = 5 * time.Second // of one try
	lastTimeout  = 5 * time.Second // for what is left at the end, by then begun
)

// Exporter sends the spans of the requests that it is given.
type Exporter struct {
	options Options
	url     string
	full    chan struct{} // a batch is full
	refused bool          // the newest post failed

	mu            sync.Mutex
	queue         []fleetsim.RequestRecord
	sent, dropped uint64 // requests
}

// New prepares an exporter; Run sends.
func New(o Options) (*Exporter, error) {
	endpoint, err := url.Parse(o.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("OTLP endpoint is %q: write a URL such as http://127.0.0.1:4318", o.Endpoint)
	}
	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = "/v1/traces"
	}
	if len(o.Sources) == 0 {
		o.Sources = []Source{Gateway}
	}
	for _, source := range o.Sources {
		if source != Gateway && source != Engines {
			return nil, fmt.Errorf("source of spans is %q: write %s or %s", source, Gateway, Engines)
		}
	}
	o.QueueSize = cmp.Or(o.QueueSize, 20_000)
	o.Client = cmp.Or(o.Client, &http.Client{})
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	return &Exporter{options: o, url: endpoint.String(), full: make(chan struct{}, 1)}, nil
}

// Add queues requests, for Simulation.Watch. It never waits.
func (x *Exporter) Add(records []fleetsim.RequestRecord) {
	x.mu.Lock()
	defer x.mu.Unlock()
	room := min(x.options.QueueSize-len(x.queue), len(records))
	x.queue = append(x.queue, records[:room]...)
	x.dropped += uint64(len(records) - room) //nolint:gosec // not negative
	if len(x.queue) >= batchSize {
		select {
		case x.full <- struct{}{}:
		default:
		}
	}
}

// Counts are of how many requests the spans were taken, and of how many they were
// dropped, because the queue was full or nobody took them.
func (x *Exporter) Counts() (sent, dropped uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent, x.dropped
}

// Run sends what is added until ctx is done, and then once what is left. A batch
// that nobody takes is tried again some times.
func (x *Exporter) Run(ctx context.Context) {
	ticker := time.NewTicker(sendInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-x.full:
		}
		x.flush(ctx, mostTries)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	x.flush(last, 1)
	if _, dropped := x.Counts(); dropped > 0 {
		x.options.Tell(fmt.Sprintf("the spans of %d requests were not sent to %s", dropped, x.url))
	}
}

// flush sends what is queued, batch by batch, until ctx is done.
func (x *Exporter) flush(ctx context.Context, tries int) {
	for ctx.Err() == nil {
		x.mu.Lock()
		batch := x.queue[:min(batchSize, len(x.queue))]
		x.queue = x.queue[len(batch):]
		x.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		x.send(ctx, batch, tries)
	}
}

// send sends the spans of all sources in one post.
func (x *Exporter) send(ctx context.Context, batch []fleetsim.RequestRecord, tries int) {
	traces := ptrace.NewTraces()
	for _, source := range x.options.Sources {
		Spans(source, batch).ResourceSpans().MoveAndAppendTo(traces.ResourceSpans())
	}
	counter := &x.sent
	if traces.SpanCount() > 0 && x.deliver(ctx, traces, tries) != nil {
		counter = &x.dropped
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	*counter += uint64(len(batch))
}
