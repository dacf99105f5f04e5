// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
)

func TestConfigMatchesTheProgram(t *testing.T) {
	var config struct {
		Receivers struct {
			OTLP struct {
				Protocols struct{ HTTP struct{ Endpoint string } }
			}
		}
		Exporters map[string]struct{ Endpoint string }
	}
	text, err := os.ReadFile("config.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &config))
	assert.Equal(t, fmt.Sprintf("%s:%d", demo.Host, logsPort), config.Receivers.OTLP.Protocols.HTTP.Endpoint)
	assert.Equal(t, fmt.Sprintf("http://%s:%d", demo.Host, tracesPort), config.Exporters["otlp_http"].Endpoint)
}

func TestACollectorThatEndsSaysWhy(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "collector")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\necho cannot read $2 >&2; exit 3\n"), 0o700))
	var out bytes.Buffer
	err := run(t.Context(), &options{collector: broken, config: "my.yaml", recording: "cold.json"}, &out)
	require.ErrorContains(t, err, "cannot read my.yaml")
	assert.Empty(t, out.String())
}

func TestTheSinkWaitsForTheRoot(t *testing.T) {
	s, err := listen(demo.Host + ":0")
	require.NoError(t, err)
	post := func(body []byte) int {
		response, err := http.Post("http://"+s.address+"/v1/traces", protobuf, bytes.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	send := func(spans ...span) int {
		body, err := ptraceotlp.NewExportRequestFromTraces(traceOf(t, spans...)).MarshalProto()
		require.NoError(t, err)
		return post(body)
	}
	assert.Equal(t, http.StatusOK, send(span{2, 1, "first_token", 0, time.Second, nil, ""}))
	select {
	case <-s.rooted:
		require.Fail(t, "there is no root yet")
	default:
	}
	root := span{1, 0, "replica.cold_start", 0, time.Second, nil, ""}
	assert.Equal(t, http.StatusOK, send(root))
	<-s.rooted
	assert.Equal(t, http.StatusOK, send(root), "a repetition does no harm")
	assert.Equal(t, 3, s.all().SpanCount())

	assert.Equal(t, http.StatusBadRequest, post([]byte("no traces")))
	require.NoError(t, s.close())
}
