// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
	"github.com/llmfleet/llmfleet/test/imagetest"
)

// config uses what a container gives: an environment, the folder of the state, and /proc, where the memory limit is read.
const config = `
extensions:
  health_check: {endpoint: "${env:HEALTH}"}
  file_storage: {directory: "${env:STORAGE}"}
receivers:
  otlp: {protocols: {http: {endpoint: "${env:OTLP}"}}}
processors:
  memory_limiter: {check_interval: 1s, limit_percentage: 80, spike_limit_percentage: 20}
  fleet_outlier: {storage: file_storage}
exporters:
  prometheus: {endpoint: "${env:METRICS}"}
service:
  extensions: [health_check, file_storage]
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [otlp], processors: [memory_limiter, fleet_outlier], exporters: [prometheus]}
`

// point is one point of a gauge in OTLP's JSON form.
const point = `{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "degrees", "gauge": {"dataPoints":
	[{"asDouble": 36.5, "timeUnixNano": "1700000000000000000"}]}}]}]}]}`

// container is the image set up to run: the addresses at which it will serve, as its environment names them.
type container map[string]string

// setUp writes the configuration into a root file system and chooses addresses, and a folder for the storage.
func setUp(t *testing.T, root, storage string) container {
	t.Helper()
	imagetest.Mount(t, root, "/etc/llmfleet", map[string]string{"config.yaml": config})
	c := container{"STORAGE": storage}
	for _, name := range []string{"HEALTH", "OTLP", "METRICS"} {
		c[name] = binarytest.LoopbackAddress(binarytest.FreePort(t))
	}
	return c
}

// env is the environment of the image.
func (c container) env() []string {
	var env []string
	for name, value := range c {
		env = append(env, name+"="+value)
	}
	return env
}

// TestServes: the image, given nothing but its configuration and addresses, is healthy, takes a point and shows it, and
// keeps its state where a volume would be.
func TestServes(t *testing.T) {
	root, state := imagetest.RootFS(t), imagetest.Read(t).State
	c := setUp(t, root, state)
	p := imagetest.Start(t, root, c.env())
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + c["HEALTH"])
		return !p.Running() || err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "it is not healthy")
	require.True(t, p.Running(), "it ended by itself")

	response, err := http.Post("http://"+c["OTLP"]+"/v1/metrics", "application/json", strings.NewReader(point))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + c["METRICS"] + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(page), "\ndegrees{") && strings.Contains(string(page), "} 36.5")
	}, time.Minute, 50*time.Millisecond, "the point does not come out")

	kept, err := os.ReadDir(filepath.Join(root, state))
	require.NoError(t, err)
	assert.NotEmpty(t, kept, "no state is kept")
}

// TestWritesStateOnly: a storage outside of the folder of the state is refused.
func TestWritesStateOnly(t *testing.T) {
	root := imagetest.RootFS(t)
	for _, folder := range []string{"/", "/etc/llmfleet", "/var/lib"} {
		output, err := imagetest.Command(t, root, setUp(t, root, folder).env()).CombinedOutput()
		assert.ErrorContains(t, err, "exit status 1", folder)
		assert.Contains(t, string(output), "read-only file system", folder)
	}
}
