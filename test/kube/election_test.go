// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// Of two collectors one tells facts, and the other when that one is killed.
func TestAnotherCollectorTakesOver(t *testing.T) {
	cp := controlplanetest.Start(t)
	cp.AddNodes(t, pool, 0, 1)
	kubeconfig := account(t, cp)
	one := startCollector(t, kubeconfig, "")
	require.Eventually(t, one.leads, patience, tick)
	other := startCollector(t, kubeconfig, "")

	before := place(t, cp, "before", "", engine("vllm", 1))
	require.Eventually(t, func() bool { return one.toldReady(t, before.UID) }, patience, tick)
	assert.Empty(t, other.told(t))
	assert.False(t, other.leads())

	one.Kill(t)
	require.Eventually(t, other.leads, patience, tick)
	after := place(t, cp, "after", "", engine("vllm", 1))
	require.Eventually(t, func() bool { return other.toldReady(t, after.UID) }, patience, tick)
	checkFacts(t, one)
	checkFacts(t, other)
}

// leads tells whether the collector is the one that watches.
func (c *collector) leads() bool {
	return sum(scrape(c.own), "otelcol_receiver_k8s_fleet_leader", "") == 1
}

// toldReady tells whether the collector told that a pod is ready.
func (c *collector) toldReady(t *testing.T, pod types.UID) bool {
	t.Helper()
	for _, fact := range c.told(t) {
		if fact.pod == string(pod) && fact.name == "llmfleet.pod.ready" {
			return true
		}
	}
	return false
}
