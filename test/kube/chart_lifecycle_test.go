// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// A release is installed, upgraded, rolled back and uninstalled: never two pods for one place, and nothing is left but
// the volume.
func testLifecycle(t *testing.T, cp *controlplanetest.ControlPlane) {
	t.Helper()
	ownNamespace(t, cp)
	n := newNewcomer(t, cp)
	t.Cleanup(func() { n.does(t, "helm uninstall llmfleet --namespace llmfleet --ignore-not-found --wait") })
	before := everything(t, cp)
	const helm, values = " llmfleet deploy/helm/llmfleet --namespace llmfleet --wait --timeout 1m", " --set outputs.prometheus.podMonitor.enabled=true"

	n.does(t, "helm install"+helm+values)
	first := configuration(t, cp)
	assert.NotContains(t, first, "canary_delta")
	set, pod := statefulSet(t, cp), gatewayPod(t, cp)
	assert.Equal(t, int32(1), set.Status.ReadyReplicas)
	watched := watchPods(t, cp)

	n.does(t, "helm upgrade"+helm+values+" --set presets.canary.enabled=true")
	upgraded := gatewayPod(t, cp)
	assert.NotEqual(t, pod.UID, upgraded.UID, "the pod still has the old configuration")
	assert.Contains(t, configuration(t, cp), "canary_delta")

	n.does(t, "helm upgrade"+helm+values+" --set presets.canary.enabled=true")
	assert.Equal(t, upgraded.UID, gatewayPod(t, cp).UID, "a pod is replaced for nothing")

	n.does(t, "helm rollback llmfleet 1 --namespace llmfleet --wait --timeout 1m")
	assert.NotEqual(t, upgraded.UID, gatewayPod(t, cp).UID)
	assert.Equal(t, first, configuration(t, cp))

	// What cannot be changed is said with what to do instead, which works.
	const larger = values + " --set storage.size=2Gi"
	said := n.isRefused(t, "helm upgrade"+helm+larger)
	remedy := regexp.MustCompile("`(kubectl .*?)`").FindStringSubmatch(said)
	require.NotNil(t, remedy, said)
	rolledBack := gatewayPod(t, cp).UID
	n.does(t, remedy[1])
	n.does(t, "helm upgrade"+helm+larger)
	assert.NotEqual(t, rolledBack, gatewayPod(t, cp).UID)

	n.does(t, "helm uninstall llmfleet --namespace llmfleet --wait --timeout 1m")
	assert.Equal(t, 1, watched.most(t, 3), "pods at once")
	const claim = "persistentvolumeclaims llmfleet/storage-llmfleet-0"
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, []string{claim}, added(before, everything(t, cp)))
	}, patience, tick)
}

// statefulSet is that of the release.
func statefulSet(t *testing.T, cp *controlplanetest.ControlPlane) *appsv1.StatefulSet {
	t.Helper()
	set, err := cp.Client.AppsV1().StatefulSets(namespace).Get(t.Context(), release, metav1.GetOptions{})
	require.NoError(t, err)
	return set
}

// gatewayPod is the first pod of the StatefulSet.
func gatewayPod(t *testing.T, cp *controlplanetest.ControlPlane) *corev1.Pod {
	t.Helper()
	pod, err := cp.Client.CoreV1().Pods(namespace).Get(t.Context(), release+"-0", metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

// configuration is the collector's.
func configuration(t *testing.T, cp *controlplanetest.ControlPlane) string {
	t.Helper()
	object, err := cp.Client.CoreV1().ConfigMaps(namespace).Get(t.Context(), release, metav1.GetOptions{})
	require.NoError(t, err)
	return object.Data["config.yaml"]
}

// podWatch sees pods of a release come and go.
type podWatch struct{ watch.Interface }

// watchPods begins with the pods that are there.
func watchPods(t *testing.T, cp *controlplanetest.ControlPlane) podWatch {
	t.Helper()
	w, err := cp.Client.CoreV1().Pods(namespace).Watch(context.Background(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/instance=" + release,
	})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return podWatch{w}
}

// most tells how many pods were there at once, at most, by the time that n have gone.
func (w podWatch) most(t *testing.T, n int) (most int) {
	t.Helper()
	late := time.After(patience)
	there, gone := map[types.UID]bool{}, 0
	for gone < n {
		select {
		case event := <-w.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			require.True(t, ok, "%+v", event.Object)
			if event.Type == watch.Deleted {
				delete(there, pod.UID)
				gone++
				continue
			}
			there[pod.UID] = true
			most = max(most, len(there))
		case <-late:
			t.Fatalf("%d of %d pods have gone", gone, n)
		}
	}
	return most
}

// everything is what the API server has stored and what does not come and go by itself: "resource namespace/name".
func everything(t *testing.T, cp *controlplanetest.ControlPlane) (all []string) {
	t.Helper()
	_, lists, err := cp.Client.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	for _, list := range lists {
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") || kind.Name == "events" || strings.Contains(kind.Name, "/") {
				continue
			}
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			require.NoError(t, err)
			at := version.WithResource(kind.Name)
			objects, err := cp.Dynamic.Resource(at).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err, at)
			for _, object := range objects.Items {
				all = append(all, kind.Name+" "+object.GetNamespace()+"/"+object.GetName())
			}
		}
	}
	return all
}

// added is what is in the second list only.
func added(before, after []string) (more []string) {
	for _, object := range after {
		if !slices.Contains(before, object) && !slices.Contains(more, object) {
			more = append(more, object)
		}
	}
	return more
}
