// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

// apiServer plays an API server: objects are kept, and told to who watches.
type apiServer struct {
	t       *testing.T
	objects *dynamicfake.FakeDynamicClient
	typed   *kubernetesfake.Clientset
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	kinds := make(map[schema.GroupVersionResource]string, len(resources))
	for _, r := range resources {
		for _, version := range r.versions {
			kinds[version.WithResource(r.name)] = "List"
		}
	}
	s := &apiServer{t: t, objects: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds), typed: kubernetesfake.NewClientset()}
	s.typed.Resources = nil
	return s
}

func (s *apiServer) dial(*Config) (clients, error) {
	return clients{objects: s.objects, offered: s.typed.Discovery(), leases: s.typed.CoordinationV1()}, nil
}

// offer has the server serve an optional resource.
func (s *apiServer) offer(groupVersion string, names ...string) {
	list := &metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	s.typed.Resources = append(s.typed.Resources, list)
}

// put creates an object, or replaces it.
func (s *apiServer) put(text string) {
	s.t.Helper()
	o := object(s.t, text)
	client := s.objects.Resource(resourceOf(o)).Namespace(o.GetNamespace())
	if _, err := client.Get(s.t.Context(), o.GetName(), metav1.GetOptions{}); err == nil {
		_, err = client.Update(s.t.Context(), o, metav1.UpdateOptions{})
		require.NoError(s.t, err)
		return
	}
	_, err := client.Create(s.t.Context(), o, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

func (s *apiServer) remove(text string) {
	s.t.Helper()
	o := object(s.t, text)
	require.NoError(s.t, s.objects.Resource(resourceOf(o)).Namespace(o.GetNamespace()).Delete(s.t.Context(), o.GetName(), metav1.DeleteOptions{}))
}

func resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	return o.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(o.GetKind()) + "s")
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &fields))
	data, err := json.Marshal(fields)
	require.NoError(t, err)
	u := new(unstructured.Unstructured)
	require.NoError(t, u.UnmarshalJSON(data))
	return u
}

// testConfig is the default without leader election, and what is changed.
func testConfig(change ...func(*Config)) *Config {
	config := createDefaultConfig().(*Config)
	config.LeaderElection.Enabled = false
	for _, f := range change {
		f(config)
	}
	return config
}

// startLogs starts a receiver of logs, and stops it at the test's end.
func startLogs(t *testing.T, set receiver.Settings, s *apiServer, config *Config, next consumer.Logs) receiver.Logs {
	t.Helper()
	require.NoError(t, config.Validate())
	r, err := newFactory(s.dial).CreateLogs(t.Context(), set, config, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.WithoutCancel(t.Context()))) })
	return r
}

func nopSettings() receiver.Settings { return receivertest.NewNopSettings(metadata.Type) }

// told are the facts that a sink has, as lines: time, name, container and whether
// it was replayed. They are sorted, as watches of two resources have no order.
func told(sink *consumertest.LogsSink) (lines []string) {
	for _, logs := range sink.AllLogs() {
		for _, rl := range logs.ResourceLogs().All() {
			pod := "?"
			if name, ok := rl.Resource().Attributes().Get("k8s.pod.name"); ok {
				pod = name.Str()
			}
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					line := record.Timestamp().AsTime().Format(time.TimeOnly) + " " + record.EventName()
					for _, key := range []string{lifecycle.KeyContainer, lifecycle.KeyReplayed} {
						if v, ok := record.Attributes().Get(key); ok {
							line += " " + strings.ReplaceAll(v.AsString(), "true", "replayed")
						}
					}
					if pod != "a" {
						line += " of " + pod
					}
					lines = append(lines, line)
				}
			}
		}
	}
	slices.SortStableFunc(lines, cmp.Compare)
	return lines
}

// patienceOfTests is how long what must come is waited for.
const patienceOfTests = 30 * time.Second

// eventually waits for facts.
func eventually(t *testing.T, sink *consumertest.LogsSink, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !waitFor(t, func() bool { return slices.Equal(want, told(sink)) }) {
		require.Equal(t, want, told(sink))
	}
}

// waitFor tells whether something came to be.
func waitFor(t *testing.T, is func() bool) bool {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patienceOfTests)
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
	return true
}
