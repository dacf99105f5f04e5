// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

// points are all data points as lines: name, attributes and value.
func points(metrics pmetric.Metrics) (lines []string) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, dp := range m.Gauge().DataPoints().All() {
					lines = append(lines, strings.TrimPrefix(m.Name(), "llmfleet.")+" "+attributes(dp.Attributes())+" "+number(dp))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func attributes(of pcommon.Map) string {
	var all []string
	for key, value := range of.All() {
		all = append(all, key+"="+value.AsString())
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

func number(dp pmetric.NumberDataPoint) string {
	if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return fmt.Sprint(dp.IntValue())
	}
	return fmt.Sprint(dp.DoubleValue())
}

const gpuNode = `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {nvidia.com/gpu.product: H100, karpenter.sh/nodepool: big}}
status: {capacity: {nvidia.com/gpu: "8"}, allocatable: {nvidia.com/gpu: "8"}}`

func gpuPod(name, spec, status string) string {
	return `
apiVersion: v1
kind: Pod
metadata:
  {namespace: prod, name: ` + name + `, uid: ` + name + `, creationTimestamp: "2026-08-05T10:00:00Z", labels: {llm-d.ai/model: llama},
   ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: chat, uid: s, controller: true}]}
spec: {` + spec + `containers: [{name: engine, resources: {limits: {nvidia.com/gpu: "6"}}}]}
status: {` + status + `}`
}

// A cluster of one node of eight GPUs: one pod of six is ready, and the next does not
// fit beside it.
func TestCapacity(t *testing.T) {
	s := newAPIServer(t)
	s.put(gpuNode)
	s.put(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {namespace: prod, name: chat, uid: s}
spec: {replicas: 2, template: {metadata: {labels: {llm-d.ai/model: llama}}, spec: {containers: [{name: engine, resources: {limits: {nvidia.com/gpu: "6"}}}]}}}`)
	s.put(gpuPod("chat-0", "nodeName: n1, ", `phase: Running, conditions: [{type: Ready, status: "True"}]`))
	s.put(gpuPod("chat-1", "", `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]`))

	sink := new(consumertest.MetricsSink)
	// No tick falls into the test: it tells by itself, at a time of its own.
	config := testConfig(func(c *Config) { c.CollectionInterval = 24 * time.Hour })
	r, err := newFactory(s.dial).CreateMetrics(t.Context(), nopSettings(), config, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	m := r.(*metricsReceiver)
	require.True(t, waitFor(t, func() bool { return m.inventory() != nil }))

	m.tell(t.Context(), time.Date(2026, 8, 5, 10, 12, 0, 0, time.UTC))
	require.Len(t, sink.AllMetrics(), 1)
	const who, where = "kind=StatefulSet,model_name=llama,namespace=prod", "gpu_model=H100"
	assert.Equal(t, []string{
		"gpu.allocatable " + where + ",node_pool=big 8",
		"gpu.allocation_ratio " + where + ",node_pool=big 0.75",
		"gpu.installed " + where + ",node_pool=big 8",
		"gpu.pending.age " + who + ",reason=insufficient,workload=chat 720",
		"gpu.pending.gpus " + who + ",reason=insufficient,workload=chat 6",
		"gpu.pending.pods " + who + ",reason=insufficient,workload=chat 1",
		"gpu.requested " + where + ",node_pool=big 6",
		"gpu.state " + where + "," + who + ",node_pool=big,state=allocated_ready,workload=chat 6",
		"gpu.state " + where + ",node_pool=big,state=draining 0",
		"gpu.state " + where + ",node_pool=big,state=fragmented 2",
		"gpu.state " + where + ",node_pool=big,state=free 0",
		"gpu.state " + where + ",node_pool=big,state=tainted 0",
		"workload.bound " + who + ",workload=chat 1",
		"workload.created " + who + ",workload=chat 2",
		"workload.desired " + who + ",source=statefulset,workload=chat 2",
		"workload.gap.age kind=StatefulSet,missing=bound,model_name=llama,namespace=prod,reason=insufficient,workload=chat 720",
		"workload.gap.replicas kind=StatefulSet,missing=bound,model_name=llama,namespace=prod,reason=insufficient,workload=chat 1",
		"workload.ready " + who + ",workload=chat 1",
	}, points(sink.AllMetrics()[0]))
	resource := sink.AllMetrics()[0].ResourceMetrics().At(0).Resource().Attributes()
	service, _ := resource.Get("service.name")
	assert.Equal(t, "llmfleet", service.Str())

	require.NoError(t, r.Shutdown(t.Context()))
	m.tell(t.Context(), time.Now())
	assert.Len(t, sink.AllMetrics(), 1, "who does not watch tells nothing")
}

// Counts of what is there no more are told as zero for a while, and then end.
func TestCountsEndAtZero(t *testing.T) {
	w := newCapacityWriter(metadata.NewMetricsBuilder(metadata.NewDefaultMetricsBuilderConfig(), nopSettings()))
	at := time.Date(2026, 8, 5, 10, 0, 0, 0, time.UTC)
	who := capacity.Identity{Namespace: "prod", Kind: "Pod", Workload: "a"}
	told := func(r *capacity.Report, now time.Time) []string {
		w.write(r, now)
		return points(w.builder.Emit())
	}
	assert.Len(t, told(&capacity.Report{
		States:    []capacity.StateCount{{Identity: who, State: capacity.AllocatedReady, GPUs: 2}},
		Pending:   []capacity.Pending{{Identity: capacity.Identity{Overflow: true}, Reason: "claim", Pods: 1, GPUs: 4, Oldest: time.Minute}},
		Claims:    []capacity.Claims{{Class: "c", State: "allocated", Count: 3, Oldest: -1}},
		Devices:   []capacity.Devices{{Driver: "d", Pool: "p", Classes: map[string]float64{"c": 1.5}}},
		Workloads: []capacity.Workload{{Identity: who, Desired: -1, Created: 1, Gaps: []capacity.Gap{{Missing: "ready", Reason: "starting", Replicas: 1}}}},
	}, at), 11)
	ended := []string{
		"dra.claim.age class=c,state=allocated 0",
		"dra.claim.count class=c,state=allocated 0",
		"dra.device.allocated class=c,driver=d,pool=p 0",
		"gpu.pending.age otel.metric.overflow=true,reason=claim 0",
		"gpu.pending.gpus otel.metric.overflow=true,reason=claim 0",
		"gpu.pending.pods otel.metric.overflow=true,reason=claim 0",
		"gpu.state gpu_model=,kind=Pod,namespace=prod,node_pool=,state=allocated_ready,workload=a 0",
		"workload.gap.age kind=Pod,missing=ready,namespace=prod,reason=starting,workload=a 0",
		"workload.gap.replicas kind=Pod,missing=ready,namespace=prod,reason=starting,workload=a 0",
	}
	assert.Equal(t, ended, told(&capacity.Report{}, at.Add(time.Minute)))
	assert.Equal(t, ended, told(&capacity.Report{}, at.Add(fadeFor)))
	assert.Empty(t, told(&capacity.Report{}, at.Add(fadeFor+time.Second)))
}
