// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// The collector is killed while traces of some starts are in the store and other starts have only begun.
func TestNoTraceIsLostOrTwiceWhenTheCollectorIsKilled(t *testing.T) {
	cp := controlplanetest.Start(t)
	store := startJaeger(t)
	c := startCollector(t, account(t, cp), store.OTLP)
	cp.AddNodes(t, pool, 0, 2)
	quick, slow := engine("quick", 1), engine("slow", 1)
	slow.Annotations[controlplanetest.ReadinessAnnotation] = "20s"
	deploy(t, cp, 20, quick)
	deploy(t, cp, 20, slow)
	first := awaitReady(t, cp, "quick", 20)
	awaitTraces(t, store, first[:1])
	for _, pod := range pods(t, cp, "slow") {
		require.False(t, ready(&pod), "%s has started already", pod.Name)
	}
	c.Kill(t)
	c.start(t)

	all := append(awaitReady(t, cp, "slow", 20), first...)
	require.Len(t, all, 40)
	for _, pod := range all {
		tr := awaitTraces(t, store, all)[pod.UID]
		if assert.Len(t, tr.roots(), 1, "roots of %s", pod.Name) {
			checkSpans(t, tr, pod.Name)
			assert.Equal(t, "served", tr.roots()[0].tag("llmfleet.coldstart.outcome"), pod.Name)
		}
	}
}
