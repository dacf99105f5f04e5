// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// everySignal are all that an engine's page may tell.
var everySignal = []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.E2E, fleet.PromptTokens, fleet.GenerationTokens, fleet.Finished, fleet.Waiting, fleet.KVUsage}

func newEngineReader(options fleet.Options) *Reader {
	options.Grids = []window.Grid{window.NewGrid(interval, time.Minute, 5*time.Second)}
	options.Lateness, options.MaxReplicas = 5*time.Second, 10
	registry := fleet.NewRegistry(options)
	registry.Open(noon + 1)
	return NewReader(Options{Dialects: dialect.Builtin(), Signals: everySignal, GroupBy: []string{keyModelName}}, registry)
}

// enginePage is a vLLM engine's page when it has answered n requests.
func enginePage(n int) string {
	const labels = `engine="0",model_name="m",namespace="prod",pod="p-1"`
	return fmt.Sprintf(`
# TYPE process_start_time_seconds gauge
process_start_time_seconds{namespace="prod",pod="p-1"} 1.7672e+09
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{%[1]s,le="0.1"} %[2]d
vllm:time_to_first_token_seconds_bucket{%[1]s,le="+Inf"} %[2]d
vllm:time_to_first_token_seconds_count{%[1]s} %[2]d
vllm:time_to_first_token_seconds_sum{%[1]s} %[2]d
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{%[1]s} %[2]d
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{%[1]s} 2
`, labels, n)
}

// from makes pages those of one target, as a job of this name scraped them.
func from(md pmetric.Metrics, job, uid, pod string) pmetric.Metrics {
	attributes := md.ResourceMetrics().At(0).Resource().Attributes()
	attributes.PutStr("service.name", job)
	if uid != "" {
		attributes.PutStr(resourcePodUID, uid)
		attributes.PutStr(resourcePod, pod)
		attributes.PutStr(resourceNamespace, "prod")
	}
	return md
}

// up adds what the scraper says of the page's target.
func up(md pmetric.Metrics, value float64, after time.Duration) pmetric.Metrics {
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName("up")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetDoubleValue(value)
	p.SetTimestamp(pcommon.Timestamp(noon.Add(after)))
	return md
}

// toldOf is what replicas told in the window that ends with a pane after noon: of
// TTFT and of tokens.
func toldOf(r *Reader, pane int) map[string][2]uint64 {
	all := map[string][2]uint64{}
	end := noon.Add(time.Duration(pane) * interval)
	r.registry.Close(end, fleet.Ask{Signals: []fleet.Signal{fleet.TTFT, fleet.GenerationTokens}}, func(f *fleet.Frame) {
		for _, m := range f.Members {
			all[m.Identity.Replica] = [2]uint64{m.Told[0].Observations(), m.Told[1].Observations()}
		}
	})
	return all
}

// TestScrapedAndFederated: a pod that is scraped directly, too, is one replica, and
// counts once, whichever page comes first.
func TestScrapedAndFederated(t *testing.T) {
	for _, c := range []struct {
		name    string
		uid     string
		replica string
	}{
		{name: "on Kubernetes", uid: "u-1", replica: "u-1"},
		{name: "by its labels", replica: "prod/p-1"},
	} {
		for _, federatedFirst := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, federated first: %v", c.name, federatedFirst), func(t *testing.T) {
				r := newEngineReader(fleet.Options{DepartedAfter: 25 * time.Second})
				for pane := range 3 {
					for i := range 3 {
						after := time.Duration(pane)*interval + time.Duration(1+9*i)*time.Second
						page := enginePage(100 + 30*pane + 10*i)
						direct := from(scraped(t, page, after+time.Second), "engines", c.uid, "p-1")
						federated := federate(from(scraped(t, page, after), "vllm", "", ""))
						if federatedFirst {
							r.Read(federated)
							r.Read(direct)
						} else {
							r.Read(direct)
							r.Read(federated)
						}
					}
					if told := toldOf(r, pane+1); pane == 2 { // a window of two panes, and all is settled
						assert.Equal(t, map[string][2]uint64{c.replica: {60, 60}}, told)
					}
				}
			})
		}
	}
}

// TestWhoIsUpOnFederatedPages: what the scrape of the federating server says of
// that server says nothing of the engines.
func TestWhoIsUpOnFederatedPages(t *testing.T) {
	unreachable := func(r *Reader) (found bool) {
		r.registry.Close(noon.Add(interval), fleet.Ask{Signals: []fleet.Signal{fleet.TTFT}}, func(f *fleet.Frame) {
			found = f.Members[0].Unreachable
		})
		return found
	}
	read := func(r *Reader, value float64, label string) {
		for i := range 2 {
			after := time.Duration(10*i+1) * time.Second
			md := federate(up(scraped(t, enginePage(10*i), after), value, after))
			if label != "" {
				EachPoint(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(1), func(attributes pcommon.Map, _ bool) {
					attributes.PutStr(label, "10.0.0.1:8000")
				})
			}
			r.Read(md)
		}
	}
	for _, c := range []struct {
		name  string
		up    float64
		label string
		want  bool
	}{
		{"the engine is up", 1, "", false},
		{"the engine is down", 0, "", true},
		{"the server is down, its last page is read", 0, exportedInstance, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newEngineReader(fleet.Options{DepartedAfter: time.Minute})
			read(r, c.up, c.label)
			assert.Equal(t, c.want, unreachable(r))
		})
	}
}

// TestTheFederatingServerIsNoEngine that has nothing to tell.
func TestTheFederatingServerIsNoEngine(t *testing.T) {
	server := func() pmetric.Metrics {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.instance.id", "prometheus:9090")
		rm.ScopeMetrics().AppendEmpty()
		return up(md, 1, time.Second)
	}
	r := newEngineReader(fleet.Options{})
	r.Read(server())
	require.Equal(t, uint64(1), r.Tally().Ignored(NoSignals), "scraped for itself, it is one")

	md := server()
	federate(scraped(t, enginePage(1), time.Second)).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	r.Read(md)
	assert.Equal(t, uint64(1), r.Tally().Ignored(NoSignals))
}

// TestFederatedCounters: they are known by the dialect, and a gauge that repeats
// one under the same name without _total is not added to it.
func TestFederatedCounters(t *testing.T) {
	for _, c := range []struct {
		name  string
		names []string
		echo  uint64
	}{
		{"as Prometheus spells them", []string{"vllm:generation_tokens_total"}, 0},
		{"without _total", []string{"vllm:generation_tokens"}, 0},
		{"both, as on a page of Ray's agent", []string{"ray_vllm:generation_tokens", "ray_vllm:generation_tokens_total"}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newEngineReader(fleet.Options{DepartedAfter: time.Minute})
			for i, value := range []float64{100, 107, 3} { // the last after a restart
				md, m := pageOf("i", "vllm:cache_config_info")
				m.SetEmptyGauge()
				f := federation{md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics(), map[string]pmetric.Metric{}}
				labels := pcommon.NewMap()
				labels.PutStr("model_name", "m")
				for _, name := range c.names {
					f.sample(name, labels, pcommon.Timestamp(noon.Add(time.Duration(5*i+1)*time.Second)), 0, value)
				}
				r.Read(md)
			}
			assert.Equal(t, map[string][2]uint64{"u": {0, 10}}, toldOf(r, 1))
			assert.Equal(t, c.echo, r.Tally().Ignored(Unspoken))
			assert.Zero(t, r.Tally().Ignored(Type))
		})
	}
}

// TestTheClerkReadsFederatedPages as it does typed ones: who they are of, and what
// their signals are in the one spelling.
func TestTheClerkReadsFederatedPages(t *testing.T) {
	read := func(md pmetric.Metrics) (told []string, dropped int) {
		c := newClerk()
		var page Page
		c.Metrics(md.ResourceMetrics().At(0), &page)
		for _, r := range page.Readings(nil, dialect.Engine) {
			page.Points(&r, func(p Point) {
				line := fmt.Sprint(r.Entry.Signal, " ", p.Of.ID, " ", p.Serves, " ", p.Rank, " ", p.Number)
				if p.Histogram != nil && r.Entry.Part == dialect.Whole {
					line += fmt.Sprint(p.Histogram.ExplicitBounds().AsRaw(), p.Histogram.BucketCounts().AsRaw(), p.Histogram.Sum())
				}
				told = append(told, line)
			})
		}
		for i := range page.Sighted {
			if s := &page.Sighted[i]; s.Tells(func(fleet.Signal) bool { return true }) {
				dropped++
			}
		}
		assert.Len(t, page.Sighted, dropped, "whatever is told otherwise may be dropped")
		return told, dropped
	}
	page := scraped(t, enginePage(7), time.Second)
	direct, metrics := read(page)
	federated, parts := read(federate(page))
	assert.NotEmpty(t, direct)
	assert.ElementsMatch(t, direct, federated)
	assert.Equal(t, metrics+2, parts, "a histogram is in three parts")

	incomplete := federate(page)
	incomplete.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
		return m.Name() == "vllm:time_to_first_token_seconds_sum"
	})
	c := newClerk()
	var kept Page
	c.Metrics(incomplete.ResourceMetrics().At(0), &kept)
	for i := range kept.Sighted {
		s := &kept.Sighted[i]
		assert.Equal(t, s.part == isWhole, s.Tells(func(fleet.Signal) bool { return true }), "%s: what is not told otherwise stays", s.Metric.Name())
	}
}

// TestOneResidentScrapedAndFederated: the clerk knows a pod by its uid, and by its
// name alone.
func TestOneResidentScrapedAndFederated(t *testing.T) {
	for _, federatedFirst := range []bool{false, true} {
		c := newClerk()
		of := func(md pmetric.Metrics) (id string) {
			var page Page
			c.Metrics(md.ResourceMetrics().At(0), &page)
			for _, r := range page.Readings(nil, dialect.Engine) {
				page.Points(&r, func(p Point) { id = p.Of.ID })
			}
			return id
		}
		direct := from(scraped(t, enginePage(7), time.Second), "engines", "u-1", "p-1")
		federated := federate(from(scraped(t, enginePage(7), time.Second), "vllm", "", ""))
		if federatedFirst {
			require.Equal(t, "prod/p-1", of(federated))
		}
		assert.Equal(t, "u-1", of(direct))
		assert.Equal(t, "u-1", of(federated))
	}
}
