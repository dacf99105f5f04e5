// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build captures

package captures

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// folder returns where the captured pages are.
func folder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CAPTURES")
	if dir == "" {
		t.Fatal("CAPTURES names no folder of captured pages: run `make test-captures CAPTURES=DIR`")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() { //nolint:gosec // whoever runs the test names the folder
		t.Fatalf("CAPTURES=%s is no folder", dir)
	}
	return dir
}

// pages returns the captured pages that match a pattern, at least one.
func pages(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder(t), pattern))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no page is called %s", pattern)
	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return text
}

// replica serves a captured page over HTTP, and another one once it is told to.
type replica struct {
	Pod     string
	Address string
	page    atomic.Pointer[[]byte]
	visits  atomic.Int64
}

func serve(t *testing.T, pod string, page []byte) *replica {
	t.Helper()
	r := &replica{Pod: pod}
	r.page.Store(&page)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(*r.page.Load()))
		r.visits.Add(1)
	}))
	t.Cleanup(server.Close)
	r.Address = strings.TrimPrefix(server.URL, "http://")
	return r
}

// collectorConfig scrapes replicas every second and writes all that it read and derived into a file.
const collectorConfig = `
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: captured
          scrape_interval: 1s
          scrape_timeout: 1s
          static_configs:
{{- range .Replicas }}
            - targets: ["{{ .Address }}"]
              labels: {namespace: default, pod: "{{ .Pod }}"}
{{- end }}
processors:
  fleet_outlier:
    interval: 2s
    window: 10s
    lateness: 1s
    signals: [ttft, itl, tpot, e2e, queue_time]
    min_observations: 1
    min_replicas: 1
exporters:
  file: {path: "{{ .File }}", flush_interval: 200ms}
service:
  telemetry:
    metrics:
      level: normal
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: {{ .TelemetryPort }} }}}}]
  pipelines:
    metrics: {receivers: [prometheus], processors: [fleet_outlier], exporters: [file]}
`

// collector is the built binary under way.
type collector struct {
	*binarytest.Process
	file             string
	telemetryAddress string
}

func startCollector(t *testing.T, replicas ...*replica) *collector {
	t.Helper()
	port := binarytest.FreePort(t)
	c := &collector{
		file:             filepath.Join(t.TempDir(), "metrics.jsonl"),
		telemetryAddress: binarytest.LoopbackAddress(port),
	}
	var config strings.Builder
	require.NoError(t, template.Must(template.New("").Parse(collectorConfig)).Execute(&config, map[string]any{
		"Replicas": replicas, "File": c.file, "TelemetryPort": port,
	}))
	c.Process = binarytest.Start(t, binarytest.Collector(t),
		"--config="+binarytest.WriteFile(t, "config.yaml", config.String()))
	return c
}

// points returns every number the collector has written so far, oldest first.
func (c *collector) points(t *testing.T) []point {
	t.Helper()
	text, err := os.ReadFile(c.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may still be under way
	var points []point
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		md, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(lines.Bytes())
		require.NoError(t, err)
		points = appendPoints(points, md)
	}
	return points
}

// point is one number of a gauge.
type point struct {
	metric string
	labels map[string]any
	at     int64 // Unix nanoseconds
	value  float64
}

func appendPoints(points []point, md pmetric.Metrics) []point {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, dp := range m.Gauge().DataPoints().All() {
					if !dp.Flags().NoRecordedValue() {
						points = append(points, point{m.Name(), dp.Attributes().AsRaw(), int64(dp.Timestamp()), number(dp)})
					}
				}
			}
		}
	}
	return points
}

func number(dp pmetric.NumberDataPoint) float64 {
	if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(dp.IntValue())
	}
	return dp.DoubleValue()
}
