// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// enginesNamespace is where the engines run.
const enginesNamespace = "chat"

// serveEngines makes pods of an engine, as llm-d labels them, and has simulated replicas answer for them until the test
// ends.
func serveEngines(t *testing.T, cp *controlplanetest.ControlPlane, replicas int) {
	t.Helper()
	start := time.Now()
	simulation, err := fleetsim.New(fleetsim.Scenario{
		Seed: 1, Fleets: []fleetsim.Fleet{{
			Name: "chat", Engine: fleetsim.VLLM, ModelName: "test/chat-8b", Replicas: replicas,
			Arrivals: fleetsim.Arrivals{Rate: 12},
		}},
	}, start)
	require.NoError(t, err)
	server, err := fleetsim.Listen(simulation, "127.0.0.1", 0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, func() time.Duration { return time.Since(start) }) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-done)
	})

	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: enginesNamespace}}
	_, err = cp.Client.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{})
	require.NoError(t, err)
	awaitNamespace(t, cp, enginesNamespace)
	for i, page := range server.URLs() {
		address, err := url.Parse(page)
		require.NoError(t, err)
		port, err := strconv.ParseInt(address.Port(), 10, 32)
		require.NoError(t, err)
		template := engine("chat", 1)
		template.Labels["llm-d.ai/model"] = "chat-8b"
		template.Annotations[controlplanetest.PodIPAnnotation] = address.Hostname()
		template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: int32(port)}}
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name = "chat-" + strconv.Itoa(i)
		_, err = cp.Client.CoreV1().Pods(enginesNamespace).Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}
