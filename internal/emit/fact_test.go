// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// TestFactAsLogRecord: as a store gets it, with semantic conventions where they
// have a name.
func TestFactAsLogRecord(t *testing.T) {
	f := lifecycle.Fact{
		Pod: "5c1f", Name: lifecycle.PullFinished, At: 1_785_919_348_000_000_000, Grain: time.Second, Learned: 1_785_919_349_500_000_000,
		Clock: lifecycle.Clock{Kind: lifecycle.Node, Of: "gpu-1"}, Container: "engine", Attempt: 0,
		Took: 40 * time.Second, Waited: 1500 * time.Millisecond, Reason: "Pulled", Message: "Successfully pulled image",
		About: &lifecycle.Pod{
			Name: "qwen-0", Namespace: "serving", Node: "gpu-1", WorkloadKind: "StatefulSet", Workload: "qwen", Model: "qwen3", GPUs: 8,
			Containers: []lifecycle.Container{{Name: "fetch", Role: lifecycle.Init}, {Name: "engine"}},
		},
	}
	record, resource := plog.NewLogRecord(), pcommon.NewResource()
	WriteFact(&f, record)
	WriteFactResource(&f, resource)
	assert.Equal(t, "llmfleet.image.pulled", record.EventName())
	assert.EqualValues(t, 1_785_919_348_000_000_000, record.Timestamp())
	assert.EqualValues(t, 1_785_919_349_500_000_000, record.ObservedTimestamp())
	assert.Equal(t, plog.SeverityNumberInfo, record.SeverityNumber())
	assert.Equal(t, "Image pulled (engine) after 40s: Successfully pulled image", record.Body().Str())
	attributes := record.Attributes().AsRaw()
	assert.Len(t, attributes["log.record.uid"], 32)
	delete(attributes, "log.record.uid")
	assert.Equal(t, map[string]any{
		"k8s.container.name": "engine", "k8s.container.restart_count": int64(0),
		"llmfleet.fact.clock": "node", "llmfleet.fact.clock_of": "gpu-1", "llmfleet.fact.grain": 1.0,
		"llmfleet.fact.duration": 40.0, "llmfleet.fact.wait": 1.5,
		"llmfleet.fact.reason": "Pulled", "llmfleet.fact.message": "Successfully pulled image",
	}, attributes)
	assert.Equal(t, map[string]any{
		"k8s.pod.uid": "5c1f", "k8s.pod.name": "qwen-0", "k8s.namespace.name": "serving", "k8s.node.name": "gpu-1",
		"k8s.statefulset.name": "qwen", "llmfleet.workload.kind": "StatefulSet", "llmfleet.workload.name": "qwen",
		"model_name": "qwen3", "llmfleet.pod.gpus": int64(8),
		"llmfleet.pod.containers": []any{"fetch", "engine"}, "llmfleet.pod.container_roles": []any{"init", "main"},
	}, resource.Attributes().AsRaw())
}

// TestFactThatWarns: what went wrong is a warning, what happened often says so,
// and what was no news is marked.
func TestFactThatWarns(t *testing.T) {
	f := lifecycle.Fact{Pod: "5c1f", Name: lifecycle.PullBackOff, At: 1e18, Count: 5, Until: 1e18 + 1e9, Attempt: -1, Reason: "BackOff"}
	record := plog.NewLogRecord()
	WriteFact(&f, record)
	assert.Equal(t, plog.SeverityNumberWarn, record.SeverityNumber())
	assert.Equal(t, "Waiting before the next image pull, 5 times: BackOff", record.Body().Str())
	attributes := record.Attributes().AsRaw()
	assert.Equal(t, true, attributes["llmfleet.fact.replayed"])
	assert.Equal(t, "2001-09-09T01:46:41Z", attributes["llmfleet.fact.until"])
	assert.NotContains(t, attributes, "k8s.container.restart_count")
	assert.Zero(t, record.ObservedTimestamp())
}
