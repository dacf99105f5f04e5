// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

const (
	replicas = 200
	// nodesLate is for how long two of four nodes are missing.
	nodesLate = 15 * time.Second
	// precision is that of Kubernetes' times, which are whole seconds, at two ends, and the way of a request to the audit log.
	precision = 1500 * time.Millisecond
)

// pool has nodes of which four take all replicas.
var pool = controlplanetest.NodePool{Name: "h100", GPUs: replicas / 4, Model: "NVIDIA-H100-80GB-HBM3"}

// A Deployment is scaled to 200 replicas while half of the nodes are missing; they come later.
func TestEveryStartOfAScaleUpIsATrace(t *testing.T) {
	cp := controlplanetest.Start(t)
	store := startJaeger(t)
	c := startCollector(t, account(t, cp), store.OTLP)
	cp.AddNodes(t, pool, 0, 2)
	template := engine("vllm", 1)
	template.Annotations[controlplanetest.ImagePullAnnotation] = "3s"
	template.Annotations[controlplanetest.ReadinessAnnotation] = "4s"
	deploy(t, cp, 0, template)
	scale(t, cp, "vllm", replicas)
	began := time.Now()
	awaitReady(t, cp, "vllm", replicas/2)
	require.Eventually(t, func() bool { return time.Since(began) > nodesLate }, patience, tick)
	cp.AddNodes(t, pool, 2, 2)
	all := awaitReady(t, cp, "vllm", replicas)
	require.Len(t, all, replicas)
	traces, key := awaitTraces(t, store, all), cp.AnswerKey(t)

	late := 0
	for _, pod := range all {
		checkTrace(t, traces[pod.UID], key[pod.UID])
		if key[pod.UID].Bound.Sub(key[pod.UID].Created) > nodesLate/2 {
			late++
		}
	}
	assert.Equal(t, replicas/2, late, "pods that waited for a node")

	checkFacts(t, c)
	assert.Greater(t, len(c.told(t)), 6*replicas)
}

// checkFacts makes sure that no fact was told twice.
func checkFacts(t *testing.T, c *collector) {
	t.Helper()
	seen := map[string]bool{}
	for _, fact := range c.told(t) {
		assert.False(t, seen[fact.uid], "%s of %s is told twice", fact.name, fact.pod)
		seen[fact.uid] = true
	}
}

// checkTrace compares the trace of a pod with what the API server's log says.
func checkTrace(t *testing.T, tr trace, times *controlplanetest.PodTimes) {
	t.Helper()
	roots := tr.roots()
	if !assert.Len(t, roots, 1, "roots of %s", times.Name) {
		return
	}
	assert.Equal(t, "replica.cold_start", roots[0].OperationName)
	assert.Equal(t, "served", roots[0].tag("llmfleet.coldstart.outcome"), times.Name)
	assert.WithinDuration(t, times.Ready, roots[0].end(), precision, "end of %s", times.Name)

	from, to := tr.stage("scheduling", "node.provision")
	assert.WithinDuration(t, times.Created, from, precision, "scheduling of %s begins", times.Name)
	assert.WithinDuration(t, times.Bound, to, precision, "scheduling of %s ends", times.Name)
	from, to = tr.stage("image.pull", "image.pull_wait")
	assert.WithinDuration(t, times.Pulling, from, precision, "pull of %s begins", times.Name)
	assert.WithinDuration(t, times.Pulled, to, precision, "pull of %s ends", times.Name)
	checkSpans(t, tr, times.Name)
}

// checkSpans makes sure that no span is there twice, or outside of its root.
func checkSpans(t *testing.T, tr trace, pod string) {
	t.Helper()
	seen := map[string]bool{}
	root := tr.roots()[0]
	for _, s := range tr {
		assert.False(t, seen[s.SpanID], "span %s of %s is there twice", s.OperationName, pod)
		seen[s.SpanID] = true
		assert.False(t, s.start().Before(root.start()), "%s of %s begins before its root", s.OperationName, pod)
		assert.False(t, s.end().After(root.end()), "%s of %s ends after its root", s.OperationName, pod)
	}
}
