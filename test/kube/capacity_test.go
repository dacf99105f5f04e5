// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// 64 GPUs, of which 13 are not in use and yet none can take the replica of 4 GPUs that waits.
func TestWhatEveryGPUIsUsedFor(t *testing.T) {
	cp := controlplanetest.Start(t)
	c := startCollector(t, account(t, cp), "", "label_selector: fleet=llm")
	for _, node := range nodesOf(t, cp, "full", 8, 5) {
		place(t, cp, node, node, llm("serving", 8))
	}
	starting := llm("starting", 8)
	starting.Annotations[controlplanetest.ReadinessAnnotation] = "1h"
	place(t, cp, "starting", nodesOf(t, cp, "new", 8, 1)[0], starting)
	for _, node := range nodesOf(t, cp, "shared", 4, 3) {
		place(t, cp, node, node, engine("training", 1))
	}
	awaitReady(t, cp, "serving", 5)
	awaitReady(t, cp, "training", 3)
	nodesOf(t, cp, "small", 2, 1)
	taint(t, cp, nodesOf(t, cp, "sick", 2, 1)[0])
	place(t, cp, "waiting", "", llm("waiting", 4))

	want := map[string]float64{
		"allocated_ready": 40, "allocated_not_ready": 8, "other": 3, "fragmented": 11, "tainted": 2, "free": 0, "draining": 0,
	}
	require.EventuallyWithT(t, func(col *assert.CollectT) {
		page := scrape(c.metrics)
		for state, n := range want {
			assert.InDelta(col, n, sum(page, "llmfleet_gpu_state", fmt.Sprintf("state=%q", state)), 0, state)
		}
		assert.InDelta(col, 64, sum(page, "llmfleet_gpu_state", ""), 0)
		assert.InDelta(col, 64, sum(page, "llmfleet_gpu_installed", ""), 0)
		assert.InDelta(col, 4, sum(page, "llmfleet_gpu_pending_gpus", `reason="fragmented"`), 0)
		assert.InDelta(col, 4, sum(page, "llmfleet_gpu_pending_gpus", ""), 0)
		assert.InDelta(col, 1, sum(page, "llmfleet_gpu_pending_pods", ""), 0)
		assert.Positive(col, sum(page, "llmfleet_gpu_pending_age", ""))
	}, patience, tick)
}

// llm describes a pod of the fleet.
func llm(app string, gpus int64) corev1.PodTemplateSpec {
	template := engine(app, gpus)
	template.Labels["fleet"] = "llm"
	return template
}

// nodesOf adds n nodes of so many GPUs each and returns their names.
func nodesOf(t *testing.T, cp *controlplanetest.ControlPlane, name string, gpus int64, n int) []string {
	t.Helper()
	return cp.AddNodes(t, controlplanetest.NodePool{Name: name, GPUs: gpus, Model: pool.Model}, 0, n)
}

// taint keeps pods away from a node.
func taint(t *testing.T, cp *controlplanetest.ControlPlane, node string) {
	t.Helper()
	patch := []byte(`[{"op":"add","path":"/spec/taints","value":[{"key":"gpu-health","value":"xid","effect":"NoSchedule"}]}]`)
	_, err := cp.Client.CoreV1().Nodes().Patch(t.Context(), node, types.JSONPatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// series is a line of a page of metrics: name, labels if any, and value.
var series = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? (\S+)$`)

// sum adds up the series of a metric that have a label; its name may have a unit at its end.
func sum(page, metric, label string) (total float64) {
	for _, line := range series.FindAllStringSubmatch(page, -1) {
		if (line[1] == metric || strings.HasPrefix(line[1], metric+"_")) && strings.Contains(line[2], label) {
			value, err := strconv.ParseFloat(line[3], 64)
			if err == nil {
				total += value
			}
		}
	}
	return total
}
