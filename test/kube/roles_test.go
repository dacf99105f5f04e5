// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// The receiver asks for all that rbac.yaml grants, and for nothing else; without one of the verbs it says so.
func TestRolesOfTheReceiver(t *testing.T) {
	name, value, _ := strings.Cut(listFirst, "=")
	t.Setenv(name, value)
	cp := controlplanetest.Start(t)
	cp.DefineCustomResources(t)
	kubeconfig := account(t, cp)
	run := func(t *testing.T) *collector {
		t.Helper()
		return startCollector(t, kubeconfig, "")
	}
	t.Run("each permission is used", func(t *testing.T) {
		run(t)
		awaitLeast(t, cp, 0)
	})
	t.Run("each permission is used where pools are of the older group", func(t *testing.T) {
		dropPools(t, cp)
		run(t)
		awaitLeast(t, cp, 0)
	})
	checkEachVerb(t, cp, run)
}

// dropPools makes the API server forget the InferencePools of version 1; those of the group before are left.
func dropPools(t *testing.T, cp *controlplanetest.ControlPlane) {
	t.Helper()
	api := cp.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	const pools = "inferencepools.inference.networking.k8s.io"
	require.NoError(t, api.Delete(t.Context(), pools, metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return !servedResources(t, cp)[pools] }, patience, tick)
}
