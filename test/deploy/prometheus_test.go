// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// prometheus is a Prometheus server under way.
type prometheus struct {
	t   *testing.T
	api promapi.API
}

// startPrometheus runs a Prometheus server until the test ends.
func startPrometheus(t *testing.T, config string) *prometheus {
	t.Helper()
	address := binarytest.LoopbackAddress(freePort(t))
	binarytest.Start(
		t, binarytest.Prometheus(t),
		"--config.file="+binarytest.WriteFile(t, "prometheus.yaml", config),
		"--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+address,
	)
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	require.NoError(t, err)
	p := &prometheus{t: t, api: promapi.NewAPI(client)}
	require.Eventually(t, func() bool {
		_, err := p.api.Runtimeinfo(context.Background())
		return err == nil
	}, time.Minute, 100*time.Millisecond, "Prometheus does not answer")
	return p
}

// now evaluates a query at this moment. A scalar is a vector of one.
func (p *prometheus) now(query string) model.Vector {
	p.t.Helper()
	result, _, err := p.api.Query(context.Background(), query, time.Now())
	require.NoError(p.t, err, query)
	switch r := result.(type) {
	case model.Vector:
		return r
	case *model.Scalar:
		return model.Vector{{Value: r.Value, Timestamp: r.Timestamp}}
	default:
		p.t.Fatalf("%s is a %s", query, result.Type())
		return nil
	}
}
