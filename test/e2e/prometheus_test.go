// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/api"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// server is a Prometheus server under way.
type server struct {
	t       *testing.T
	address string
	api     promapi.API
}

// startPrometheus runs a Prometheus server that takes remote writes and scrapes what its configuration says.
func startPrometheus(t *testing.T, config string) *server {
	t.Helper()
	address := binarytest.LoopbackAddress(binarytest.FreePort(t))
	binarytest.Start(
		t, binarytest.Prometheus(t),
		"--config.file="+binarytest.WriteFile(t, "prometheus.yaml", config),
		"--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+address,
		"--web.enable-remote-write-receiver",
		"--enable-feature=promql-extended-range-selectors",
	)
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	require.NoError(t, err)
	s := &server{t: t, address: address, api: promapi.NewAPI(client)}
	require.Eventually(t, func() bool {
		_, err := s.api.Runtimeinfo(context.Background())
		return err == nil
	}, time.Minute, 100*time.Millisecond, "Prometheus does not answer")
	return s
}

// at evaluates a query at an instant.
func (s *server) at(instant time.Time, query string) model.Vector {
	s.t.Helper()
	result, _, err := s.api.Query(context.Background(), query, instant)
	require.NoError(s.t, err, query)
	return result.(model.Vector)
}

// one evaluates a query that has one answer.
func (s *server) one(instant time.Time, query string) float64 {
	s.t.Helper()
	vector := s.at(instant, query)
	require.Len(s.t, vector, 1, "%s at %s", query, instant)
	return float64(vector[0].Value)
}

// samples returns the stored samples of a metric that has one series, none if there is no series yet.
func (s *server) samples(metric string) []model.SamplePair {
	s.t.Helper()
	result, _, err := s.api.Query(context.Background(), metric+"[10m]", time.Now())
	require.NoError(s.t, err, metric)
	matrix := result.(model.Matrix)
	if len(matrix) == 0 {
		return nil
	}
	require.Len(s.t, matrix, 1, "%s has more than one series", metric)
	return matrix[0].Values
}

// awaitSamples waits until a metric has n samples and returns them.
func (s *server) awaitSamples(metric string, n int) []model.SamplePair {
	s.t.Helper()
	var samples []model.SamplePair
	require.Eventually(s.t, func() bool {
		samples = s.samples(metric)
		return len(samples) >= n
	}, 2*time.Minute, 500*time.Millisecond, "%s did not reach Prometheus", metric)
	return samples
}

// render fills in a configuration template.
func render(t *testing.T, text string, values any) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, template.Must(template.New("").Option("missingkey=error").Parse(text)).Execute(&b, values))
	return b.String()
}
