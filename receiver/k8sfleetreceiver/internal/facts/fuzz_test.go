// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/objects"
)

// FuzzObjects reads any list of objects, as the API server could send them, and
// tells of each pod and event among them. Facts are of that pod and at a time
// that it names, and of what is deleted nothing is left.
func FuzzObjects(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		var s story
		require.NoError(f, yaml.Unmarshal(text, &s))
		list, err := json.Marshal(append(s.Objects, s.Pod))
		require.NoError(f, err)
		f.Add(list)
	}
	f.Add([]byte(`[{"apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Pod", "uid": "u", "fieldPath": "spec.containers{engine}"},
		"reason": "Pulled", "message": "Successfully pulled image \"x\" in 796ms (1s including waiting). Image size: 1 bytes.",
		"firstTimestamp": "2026-08-05T08:42:28Z", "series": {"count": 5, "lastObservedTime": "2026-08-05T08:47:28.000001Z"}}]`))
	f.Fuzz(func(t *testing.T, list []byte) {
		var listed []unstructured.Unstructured
		if json.Unmarshal(list, &listed) != nil {
			return
		}
		c := New(options)
		var kept []any
		for i := range listed {
			listed[i].SetCreationTimestamp(clock("10:00:00")) // the API server sees to it
			object, err := objects.Trim(&listed[i])
			if err != nil {
				continue
			}
			c.Set(object)
			kept = append(kept, object)
		}
		for _, object := range kept {
			switch o := object.(type) {
			case *corev1.Pod:
				for _, fact := range append(c.Pod(o), c.Gone(o)) {
					assert.Equal(t, string(o.UID), fact.Pod)
					assert.NotEqual(t, lifecycle.Unknown, fact.Name)
					assert.NotZero(t, fact.At)
				}
			case *corev1.Event:
				if fact, ok := Event(o, "gpu-1"); ok {
					assert.NotEqual(t, lifecycle.Unknown, fact.Name)
					assert.GreaterOrEqual(t, fact.Took, time.Duration(0))
				}
			}
		}
		for _, object := range kept {
			c.Delete(object)
		}
		assert.Equal(t, New(options), c, "nothing is left")
	})
}
