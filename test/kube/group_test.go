// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// A replica of two pods with 8 GPUs each; one of them pulls its image four times as long as the other.
func TestAReplicaGroupIsOneTrace(t *testing.T) {
	cp := controlplanetest.Start(t)
	store := startJaeger(t)
	startCollector(t, account(t, cp), store.OTLP, "group_label: llmfleet.test/group")
	nodesOf(t, cp, "h100", 8, 2)
	member := func(name, pull string) *corev1.Pod {
		template := engine("group", 8)
		template.Labels["llmfleet.test/group"] = "group-0"
		template.Annotations[controlplanetest.ImagePullAnnotation] = pull
		template.Annotations[controlplanetest.ReadinessAnnotation] = "5s"
		return place(t, cp, name, "", template)
	}
	leader, worker := member("group-0", "3s"), member("group-0-1", "12s")
	awaitReady(t, cp, "group", 2)

	tr := awaitTraces(t, store, []corev1.Pod{*leader})[leader.UID]
	require.Len(t, tr.roots(), 1)
	root := tr.roots()[0]
	key := cp.AnswerKey(t)
	assert.WithinDuration(t, key[worker.UID].Ready, root.end(), precision)
	assert.WithinDuration(t, key[leader.UID].Created, root.start(), precision)
	assert.Nil(t, store.trace(t, worker.UID), "the worker has a trace of its own")
	checkSpans(t, tr, leader.Name)

	pulls := map[string]span{}
	for _, s := range tr {
		if s.OperationName == "image.pull" {
			pulls[s.tag("k8s.pod.uid")] = s
		}
	}
	require.Len(t, pulls, 2)
	slow := pulls[string(worker.UID)]
	assert.InDelta(t, 12, time.Duration(slow.Duration*int64(time.Microsecond)).Seconds(), 2)
	assert.Equal(t, "true", slow.tag("llmfleet.coldstart.critical_path"))
}
