// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build captures

package facts

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// TestRecordedRollout reads objects and events in the order in which a watch was
// told them while a Deployment replaced its two pods.
func TestRecordedRollout(t *testing.T) {
	folder := os.Getenv("CAPTURES")
	require.NotEmpty(t, folder, "CAPTURES names no folder of captures")
	file, err := os.Open(filepath.Join(folder, "k8s-events-deployment-2-pods-kspan.yaml")) //nolint:gosec // whoever runs the test names the folder
	require.NoError(t, err)
	defer file.Close()
	const first, second = "px-5d567cc74c-ss4lb", "px-5d567cc74c-pmvzr"
	told, cluster, memory := map[string][]string{}, New(options), NewTold(10)
	tell := func(pod string, f *lifecycle.Fact) {
		memory.Follow(f.Pod)
		if memory.News(f) {
			told[pod] = append(told[pod], line(f))
		}
	}
	for documents := yaml.NewDecoder(file); ; {
		var document map[string]any
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if document == nil {
			continue
		}
		switch o := trimmed(t, document).(type) {
		case *corev1.Pod:
			cluster.Set(o)
			of := cluster.Pod(o)
			for i := range of {
				tell(o.Name, &of[i])
			}
		case *corev1.Event:
			if f, ok := Event(o, ""); ok && o.InvolvedObject.Kind == "Pod" {
				tell(o.InvolvedObject.Name, &f)
			}
		default:
			cluster.Set(o)
		}
	}
	assert.Equal(t, strings.Split(`09:42:58 llmfleet.pod.created
09:42:58 llmfleet.replica.desired deployment
09:42:58 llmfleet.pod.scheduled
09:42:58 llmfleet.pod.scheduled Scheduled
09:42:59 llmfleet.image.pull_started podinfo#-1 @kind-control-plane Pulling
09:43:05 llmfleet.image.pulled podinfo#-1 @kind-control-plane Pulled
09:43:05 llmfleet.container.created podinfo#-1 @kind-control-plane Created
09:43:05 llmfleet.container.started podinfo#-1 @kind-control-plane Started`, "\n"), told[first])
	assert.Equal(t, strings.Split(`09:43:06 llmfleet.pod.created
09:42:58 llmfleet.replica.desired deployment
09:43:06 llmfleet.pod.initialized @kind-control-plane
09:43:06 llmfleet.pod.scheduled
09:43:06 llmfleet.pod.scheduled Scheduled
09:43:06 llmfleet.image.pulled podinfo#-1 @kind-control-plane Pulled
09:43:06 llmfleet.container.created podinfo#-1 @kind-control-plane Created
09:43:06 llmfleet.container.started podinfo#-1 @kind-control-plane Started`, "\n"), told[second])
}
