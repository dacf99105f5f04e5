// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/test/binarytest"
)

// evaluator draws scores of answers, and sends them as log events.
type evaluator struct {
	address string
	random  *rand.Rand
	means   map[string]float64 // of scores, by revision
}

// send sends scores of some answers, of which one in eight is the new revision's. Among them are events of other names, of
// other criteria, without a score, and of nobody knows whom.
func (e *evaluator) send(t *testing.T, answers int) {
	t.Helper()
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "judge")
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	add := func(revision string, score float64) plog.LogRecord {
		r := records.AppendEmpty()
		r.SetEventName("gen_ai.evaluation.result")
		r.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		for key, value := range map[string]string{
			"gen_ai.evaluation.name": "Relevance", "gen_ai.request.model": "test/chat-8b", "model_revision": revision,
		} {
			r.Attributes().PutStr(key, value)
		}
		r.Attributes().PutDouble("gen_ai.evaluation.score.value", score)
		return r
	}
	for i := range answers {
		revision := oldRevision
		if i%8 == 0 {
			revision = newRevision
		}
		add(revision, e.means[revision]+0.3*(e.random.Float64()-0.5))
	}
	add(newRevision, 1).SetEventName("gen_ai.client.inference.operation.details")
	add(newRevision, 1).Attributes().PutStr("gen_ai.evaluation.name", "Fluency")
	add(newRevision, 1).Attributes().Remove("gen_ai.evaluation.score.value")
	add(newRevision, 1).Attributes().Remove("model_revision")
	add(newRevision, 1).Attributes().Remove("gen_ai.request.model")
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	require.NoError(t, err)
	response, err := http.Post("http://"+e.address+"/v1/logs", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// TestCanaryAnswersWorse: the shipped evaluation.yaml, with addresses of the test's own, makes measures of scores of answers.
// A canary that is as fast as its baseline and answers worse fails, and the gate says so.
func TestCanaryAnswersWorse(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile("../../examples/canary/evaluation.yaml")
	require.NoError(t, err)
	told := filepath.Join(t.TempDir(), "events.json")
	judge := &evaluator{
		address: binarytest.LoopbackAddress(binarytest.FreePort(t)), random: rand.New(rand.NewPCG(1, 1)),
		means: map[string]float64{oldRevision: 0.8, newRevision: 0.65},
	}
	exporter := binarytest.LoopbackAddress(binarytest.FreePort(t))
	prometheus := startPrometheus(t, render(t, tenantsPrometheusConfig, map[string]any{"Exporter": exporter}))
	own := string(config)
	for shipped, here := range map[string]string{
		"127.0.0.1:18318":           judge.address,
		"127.0.0.1:18100":           startFleet(t, rollout(fleetsim.Fault{Factor: 1, PrefillFactor: 1, OutputFactor: 1, PromptFactor: 1}))[0].Address,
		"127.0.0.1:9464":            exporter,
		"port: 18888":               fmt.Sprint("port: ", binarytest.FreePort(t)),
		".tools/canary-events.json": told,
	} {
		require.Contains(t, own, shipped)
		own = strings.ReplaceAll(own, shipped, here)
	}
	collector := binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "evaluation.yaml", own))
	require.Eventually(t, func() bool { return len(prometheus.at(time.Now(), "up == 1")) > 0 }, time.Minute, time.Second)

	metric := shippedTemplate(t).metric(t, map[string]string{"prometheus": "http://" + prometheus.address, "model": "test/chat-8b", "canary": newRevision})
	require.Eventually(t, func() bool {
		judge.send(t, 40)
		measured, _ := metric.measure()
		return measured == failed
	}, 2*time.Minute, time.Second, "the canary does not fail")

	assert.Equal(t, "relevance", prometheus.only(t, "llmfleet_canary_driver == 1", "measure"))
	assert.Empty(t, prometheus.at(time.Now(), `llmfleet_canary_verdict{verdict="fail", measure!~"overall|relevance"} == 1`))
	mean := func(metric string) float64 {
		return prometheus.one(time.Now(), metric+`{measure="relevance", statistic="mean"}`)
	}
	assert.InDelta(t, judge.means[newRevision], mean("llmfleet_canary_quality_value"), 0.04, "no other event counts")
	assert.InDelta(t, judge.means[oldRevision], mean("llmfleet_canary_quality_baseline_value"), 0.04)

	collector.Stop(t)
	events := file{told}.events(t)
	require.NotEmpty(t, events)
	assert.Equal(t, "llmfleet.canary.verdict.fail", events[0].name)
	assert.Equal(t, "overall", events[0].attributes["measure"])
	assert.Contains(t, events[0].sentence, "relevance")
	t.Log(events[0].sentence)
}

// only is a label of the one answer to a query.
func (s *server) only(t *testing.T, query string, label model.LabelName) string {
	t.Helper()
	vector := s.at(time.Now(), query)
	require.Len(t, vector, 1, query)
	return string(vector[0].Metric[label])
}
