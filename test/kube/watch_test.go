// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// Pods are traced whose device was claimed, and that were made after all watches broke.
func TestClaimsAndBrokenWatches(t *testing.T) {
	cp := controlplanetest.Start(t)
	store := startJaeger(t)
	c := startCollector(t, account(t, cp), store.OTLP)
	node := cp.AddNodes(t, pool, 0, 1)[0]
	publishDevice(t, cp, node)
	template := engine("claim", 0)
	template.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}}
	place(t, cp, "claim", "", template)
	claimed := awaitReady(t, cp, "claim", 1)[0]
	tr := awaitTraces(t, store, []corev1.Pod{claimed})[claimed.UID]
	from, to := tr.stage("dra.allocate")
	key := cp.AnswerKey(t)[claimed.UID]
	assert.WithinDuration(t, key.Created, from, precision)
	assert.WithinDuration(t, key.Bound, to, precision)

	cp.RestartAPIServer(t)
	deploy(t, cp, 10, engine("after", 1))
	all := awaitReady(t, cp, "after", 10)
	for uid, tr := range awaitTraces(t, store, all) {
		require.Len(t, tr.roots(), 1)
		checkSpans(t, tr, string(uid))
	}
	checkFacts(t, c)
}

// publishDevice makes a device of a node known, a class that has it, and a template of claims for one of the class.
func publishDevice(t *testing.T, cp *controlplanetest.ControlPlane, node string) {
	t.Helper()
	api, create := cp.Client.ResourceV1(), metav1.CreateOptions{}
	_, err := api.DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.llmfleet.test"`}},
		}},
	}, create)
	require.NoError(t, err)
	_, err = api.ResourceSlices().Create(t.Context(), &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.llmfleet.test", NodeName: &node,
			Pool:    resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0"}},
		},
	}, create)
	require.NoError(t, err)
	_, err = api.ResourceClaimTemplates("default").Create(t.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "one-gpu"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}},
		}}},
	}, create)
	require.NoError(t, err)
}
