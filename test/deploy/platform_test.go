// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/fleetsim/gateway"
	"github.com/llmfleet/llmfleet/test/binarytest"
)

// setting is what is special about one platform.
type setting struct {
	// faults of the simulated fleets.
	faults []fleetsim.Fault
	// warmup is for how long a replica is watched before it may be flagged.
	warmup time.Duration
	// engines are scraped by Prometheus, as without llmfleet.
	engines bool
}

// platform is a simulated fleet with a gateway before it, the built collector that watches it, and a Prometheus that has
// loaded all rules, on time that runs hastened times as fast.
type platform struct {
	*prometheus
	start     time.Time
	collector *binarytest.Process
	otlp      string // URL that takes spans and logs
	discovery *discovery
	cluster   *cluster
	store     *store
}

// startPlatform runs a platform until the test ends.
func startPlatform(t *testing.T, s setting) *platform {
	t.Helper()
	p := &platform{start: time.Now(), cluster: startCluster(t), store: startStore(t)}
	receiver, self := freePort(t), freePort(t)
	p.otlp = "http://" + binarytest.LoopbackAddress(receiver)
	p.discovery = startDiscovery(t, p.serve(t, s.faults))
	values := map[string]any{
		"OTLP": binarytest.LoopbackAddress(receiver), "Derived": binarytest.LoopbackAddress(freePort(t)),
		"SelfPort": self, "Self": binarytest.LoopbackAddress(self),
		"Kubernetes": p.cluster.address, "Store": p.store.url, "Targets": p.discovery.url,
		"Warmup": s.warmup, "Engines": s.engines, "Rules": hastenedRules(t),
	}
	config := binarytest.WriteFile(t, "collector.yaml", render(t, "testdata/collector.yaml", values))
	p.collector = binarytest.Start(t, binarytest.Collector(t), "--config="+config)
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + values["Self"].(string) + "/metrics")
		return err == nil && response.Body.Close() == nil
	}, time.Minute, 100*time.Millisecond, "the collector does not answer")
	p.prometheus = startPrometheus(t, render(t, "testdata/prometheus.yaml", values))
	return p
}

// serve plays the fleets in real time, and sends a gateway's spans of their requests. It returns where their pages are listed.
func (p *platform) serve(t *testing.T, faults []fleetsim.Fault) (targets string) {
	t.Helper()
	scenario, err := fleetsim.Load("testdata/fleet.yaml")
	require.NoError(t, err)
	scenario.Faults = faults
	simulation, err := fleetsim.New(scenario, p.start)
	require.NoError(t, err)
	spans, err := gateway.New(gateway.Options{Endpoint: p.otlp})
	require.NoError(t, err)
	simulation.Watch(spans.Add)
	server, err := fleetsim.Listen(simulation, "127.0.0.1", 0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served, sent := make(chan error, 1), make(chan struct{})
	go func() { served <- server.Serve(ctx, func() time.Duration { return time.Since(p.start) }) }()
	go func() {
		defer close(sent)
		spans.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-served)
		<-sent
	})
	return server.TargetsURL()
}

// awaitData waits until each of these queries has an answer.
func (p *platform) awaitData(patience time.Duration, queries ...string) {
	p.t.Helper()
	p.await(patience, "an answer to each of "+strings.Join(queries, " and "), func() bool {
		return !slices.ContainsFunc(queries, func(query string) bool { return len(p.now(query)) == 0 })
	})
}

// await waits until a condition holds that asks Prometheus.
func (p *platform) await(patience time.Duration, what string, holds func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			require.FailNow(p.t, what+" is not there after "+patience.String())
		}
	}
}

// cluster is the page that tells of Kubernetes: the k8s_fleet receiver's metrics as they were recorded, and those of
// kube-state-metrics.
type cluster struct {
	address string
	page    atomic.Pointer[[]byte]
}

// startCluster serves the page of a cluster in which no pod waits.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	c.show(t, "healthy")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(*c.page.Load())
	}))
	t.Cleanup(server.Close)
	c.address = strings.TrimPrefix(server.URL, "http://")
	return c
}

// show changes what the page tells.
func (c *cluster) show(t *testing.T, name string) {
	t.Helper()
	var page []byte
	for _, of := range []string{"k8s_fleet", "kube_state_metrics"} {
		text, err := os.ReadFile("testdata/kubernetes/" + of + "-" + name + ".prom")
		require.NoError(t, err)
		page = append(page, text...)
	}
	c.page.Store(&page)
}

// discovery tells which pages there are, or none, as after a role was taken away.
type discovery struct {
	url  string
	lost atomic.Bool
}

func startDiscovery(t *testing.T, targets string) *discovery {
	t.Helper()
	d := &discovery{}
	all, err := url.Parse(targets)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: all.Scheme, Host: all.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.lost.Load() {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("[]"))
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	d.url = server.URL + all.Path
	return d
}

// store takes traces, or refuses them.
type store struct {
	url     string
	refuses atomic.Bool
}

func startStore(t *testing.T) *store {
	t.Helper()
	s := &store{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s.refuses.Load() {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ports are those that platforms listen at: below those that the system gives to whoever asks for any, so that nobody takes one
// between its choice and its use.
var ports atomic.Int32

func init() { ports.Store(20_000 + int32(os.Getpid()*97%10_000)) }

// freePort returns a port of the loopback interface that nobody listens on, and that is returned once.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := int(ports.Add(1))
		if listener, err := net.Listen("tcp", binarytest.LoopbackAddress(port)); err == nil {
			require.NoError(t, listener.Close())
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// render fills in a template.
func render(t *testing.T, path string, values any) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, template.Must(template.New("").Option("missingkey=error").Parse(string(text))).Execute(&b, values))
	return b.String()
}
