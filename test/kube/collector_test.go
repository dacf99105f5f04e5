// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// collectorConfig makes traces of the starts that the receiver tells of, and writes every fact to a file.
const collectorConfig = `
extensions:
  file_storage: {directory: "{{ .Folder }}"}
receivers:
  k8s_fleet:
    auth_type: kubeConfig
    storage: file_storage
    collection_interval: 1s
    leader_election:
      lease_namespace: llmfleet
      lease_duration: 4s
      renew_deadline: 3s
      retry_period: 1s
{{ range .Receiver }}    {{ . }}
{{ end }}connectors:
  cold_start: {interval: 1s, wait: 3s, storage: file_storage}
exporters:
  file: {path: "{{ .Facts }}", append: true}
  prometheus: {endpoint: "{{ .Metrics }}", without_scope_info: true}
{{ if .Jaeger }}  otlp_grpc: {endpoint: "{{ .Jaeger }}", tls: {insecure: true}}
{{ end }}service:
  extensions: [file_storage]
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: {{ .Port }}}}}}]
  pipelines:
    logs: {receivers: [k8s_fleet], exporters: [cold_start, file]}
    metrics: {receivers: [k8s_fleet], exporters: [prometheus]}
    traces: {receivers: [cold_start], exporters: [{{ if .Jaeger }}otlp_grpc{{ else }}file{{ end }}]}
`

// collector is the built collector as it is set up for a test, under way or not.
type collector struct {
	*binarytest.Process

	kubeconfig, config string
	facts              string // the file that facts are written to
	metrics, own       string // addresses of metrics of the fleet, and of the collector's own
}

// startCollector runs the collector with a kubeconfig. Its traces go to an OTLP address, if there is one; lines are more
// configuration of the receiver.
func startCollector(t *testing.T, kubeconfig, jaeger string, lines ...string) *collector {
	t.Helper()
	folder, port := t.TempDir(), binarytest.FreePort(t)
	c := &collector{
		kubeconfig: kubeconfig,
		facts:      filepath.Join(folder, "facts.jsonl"),
		metrics:    binarytest.LoopbackAddress(binarytest.FreePort(t)),
		own:        binarytest.LoopbackAddress(port),
	}
	c.config = binarytest.WriteFile(t, "collector.yaml", render(t, collectorConfig, map[string]any{
		"Folder": folder, "Facts": c.facts, "Metrics": c.metrics, "Port": port, "Jaeger": jaeger, "Receiver": lines,
	}))
	c.start(t)
	return c
}

// start runs the collector, for the first time or again.
func (c *collector) start(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", c.kubeconfig)
	c.Process = binarytest.Start(t, binarytest.Collector(t), "--config="+c.config)
	c.awaitAnswer(t)
}

// awaitAnswer waits until the collector tells of itself.
func (c *collector) awaitAnswer(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return !c.Running() || scrape(c.own) != "" }, patience, tick, "the collector does not answer")
	require.True(t, c.Running(), "the collector ended by itself")
}

// fact is what a log record says, as far as a test asks.
type fact struct{ uid, name, pod string }

// told are the facts that the collector wrote so far.
func (c *collector) told(t *testing.T) []fact {
	t.Helper()
	file, err := os.Open(c.facts)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	defer file.Close()
	var facts []fact
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF { // what is left is a line that is not written to its end
			return facts
		}
		require.NoError(t, err)
		facts = append(facts, readFacts(t, line)...)
	}
}

// attributes are those of OTLP's JSON form.
type attributes []struct {
	Key   string
	Value struct{ StringValue string }
}

func (a attributes) get(key string) string {
	for _, attribute := range a {
		if attribute.Key == key {
			return attribute.Value.StringValue
		}
	}
	return ""
}

func readFacts(t *testing.T, line []byte) (facts []fact) {
	t.Helper()
	var batch struct {
		ResourceLogs []struct {
			Resource  struct{ Attributes attributes }
			ScopeLogs []struct {
				LogRecords []struct {
					EventName  string
					Attributes attributes
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(line, &batch))
	for _, resource := range batch.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				facts = append(facts, fact{
					uid: record.Attributes.get("log.record.uid"), name: record.EventName,
					pod: resource.Resource.Attributes.get("k8s.pod.uid"),
				})
			}
		}
	}
	return facts
}

// scrape reads a page of metrics; empty where nobody answers yet.
func scrape(address string) string {
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return string(page)
}

// render fills in a configuration.
func render(t *testing.T, text string, values any) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, template.Must(template.New("").Parse(text)).Execute(&b, values))
	return b.String()
}

const (
	// patience is how long a busy machine may take.
	patience = time.Minute
	tick     = 200 * time.Millisecond
)
