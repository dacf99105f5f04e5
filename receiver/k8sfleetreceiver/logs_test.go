// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	kubetesting "k8s.io/client-go/testing"
)

// podOf is a pod that asks for a GPU, with a status.
func podOf(name, status string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: llm, uid: uid-%s, creationTimestamp: "2026-03-01T10:00:00Z"}
spec: {nodeName: gpu-1, containers: [{name: engine, resources: {limits: {nvidia.com/gpu: "1"}}}]}
status: {%s}
`, name, name, status)
}

const (
	scheduled = `conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-03-01T10:00:01Z"}]`
	running   = `conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-03-01T10:00:01Z"}],
containerStatuses: [{name: engine, state: {running: {startedAt: "2026-03-01T10:00:30Z"}}}]`
	ready = `conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-03-01T10:00:01Z"},
{type: Ready, status: "True", lastTransitionTime: "2026-03-01T10:05:00Z"}],
containerStatuses: [{name: engine, state: {running: {startedAt: "2026-03-01T10:00:30Z"}}}]`
	readyAgain = `conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-03-01T10:00:01Z"},
{type: Ready, status: "True", lastTransitionTime: "2026-03-11T10:05:00Z"}],
containerStatuses: [{name: engine, state: {running: {startedAt: "2026-03-01T10:00:30Z"}}}]`
)

func eventOf(pod, name, reason, message, time string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %s, namespace: llm, creationTimestamp: %q}
involvedObject: {kind: Pod, namespace: llm, name: %s, uid: uid-%s, fieldPath: "spec.containers{engine}"}
reason: %s
message: %q
source: {component: kubelet, host: gpu-1}
firstTimestamp: %q
lastTimestamp: %q
count: 1
`, name, time, pod, pod, reason, message, time, time)
}

func TestStartIsToldOnce(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	startLogs(t, nopSettings(), s, testConfig(), sink)
	require.True(t, waitFor(t, func() bool { return s.watched(podsResource) && s.watched(eventsResource) }))

	s.put(podOf("a", ""))
	s.put(podOf("a", scheduled))
	s.put(eventOf("a", "a.1", "Pulling", `Pulling image "vllm"`, "2026-03-01T10:00:02Z"))
	s.put(podOf("a", running))
	want := []string{
		"10:00:00 llmfleet.pod.created", "10:00:01 llmfleet.pod.scheduled", "10:00:02 llmfleet.image.pull_started engine",
		"10:00:30 llmfleet.container.started engine",
	}
	eventually(t, sink, want...)
	s.put(podOf("a", ready))
	want = append(want, "10:05:00 llmfleet.pod.ready")
	eventually(t, sink, want...)

	s.put(podOf("a", running)) // Ready flips
	s.put(podOf("a", readyAgain))
	s.put(podOf("b", ""))
	want = append(want, "10:00:00 llmfleet.pod.created of b")
	eventually(t, sink, want...)

	s.remove(podOf("b", ""))
	eventually(t, sink, append(want, "10:00:00 llmfleet.pod.deleted of b")...)
}

// watched tells whether a watch of a resource stands.
func (s *apiServer) watched(resource string) bool {
	for _, action := range s.objects.Actions() {
		if action.Matches("watch", resource) {
			return true
		}
	}
	return false
}

func TestWhatWasThereBeforeIsReplayed(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	s.put(podOf("a", running))
	s.put(eventOf("a", "a.1", "Pulling", `Pulling image "vllm"`, "2026-03-01T10:00:02Z"))
	s.put(eventOf("other", "o.1", "Pulling", `Pulling image "vllm"`, "2026-03-01T10:00:02Z"))
	startLogs(t, nopSettings(), s, testConfig(), sink)
	eventually(t, sink,
		"10:00:00 llmfleet.pod.created replayed", "10:00:01 llmfleet.pod.scheduled replayed",
		"10:00:02 llmfleet.image.pull_started engine replayed", "10:00:30 llmfleet.container.started engine replayed")
}

func TestWhoIsFollowed(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	s.put(podOf("a", ""))
	s.put(`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: llm, uid: w, labels: {app: web}, creationTimestamp: "2026-03-01T10:00:00Z"}, spec: {containers: [{name: web}]}}`)

	startLogs(t, nopSettings(), s, testConfig(), sink)
	eventually(t, sink, "10:00:00 llmfleet.pod.created replayed")

	sink = new(consumertest.LogsSink)
	startLogs(t, nopSettings(), s, testConfig(func(c *Config) { c.LabelSelector = "app=web" }), sink)
	eventually(t, sink, "10:00:00 llmfleet.pod.created replayed of web")
}

// TestExpiredWatch breaks the watch of pods with what the API server says when it
// has forgotten the version to go on from, and changes pods in the meantime.
func TestExpiredWatch(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	s.put(podOf("a", scheduled))
	s.put(podOf("b", ""))
	broken := watch.NewFake()
	var watches atomic.Int64
	s.objects.PrependWatchReactor(podsResource, func(kubetesting.Action) (bool, watch.Interface, error) {
		return watches.Add(1) == 1, broken, nil
	})
	startLogs(t, nopSettings(), s, testConfig(), sink)
	want := []string{"10:00:00 llmfleet.pod.created replayed", "10:00:01 llmfleet.pod.scheduled replayed", "10:00:00 llmfleet.pod.created replayed of b"}
	eventually(t, sink, want...)

	s.put(podOf("a", running))
	s.remove(podOf("b", ""))
	s.put(podOf("c", ""))
	expired := apierrors.NewResourceExpired("too old resource version").Status()
	broken.Error(&expired)
	want = append(want, "10:00:30 llmfleet.container.started engine", "10:00:00 llmfleet.pod.deleted of b", "10:00:00 llmfleet.pod.created of c")
	eventually(t, sink, want...)

	s.put(podOf("a", ready))
	eventually(t, sink, append(want, "10:05:00 llmfleet.pod.ready")...)
}

func TestRefusedFactsAreToldLater(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	var calls atomic.Int64
	next, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
		if calls.Add(1) == 1 {
			return errors.New("not now")
		}
		return sink.ConsumeLogs(ctx, logs)
	})
	require.NoError(t, err)
	s.put(podOf("a", ""))
	startLogs(t, nopSettings(), s, testConfig(), next)
	eventually(t, sink, "10:00:00 llmfleet.pod.created replayed")
}

func TestFactsThatAreRefusedForGoodAreLost(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	var calls atomic.Int64
	next, err := consumer.NewLogs(func(ctx context.Context, logs plog.Logs) error {
		if calls.Add(1) == 1 {
			return consumererror.NewPermanent(errors.New("never"))
		}
		return sink.ConsumeLogs(ctx, logs)
	})
	require.NoError(t, err)
	s.put(podOf("a", ""))
	c := startLogs(t, nopSettings(), s, testConfig(), next).(*logsReceiver)
	require.True(t, waitFor(t, func() bool { return c.tally.lost.Load() == 1 }))
	s.put(podOf("a", scheduled)) // and the pod says all again
	eventually(t, sink, "10:00:00 llmfleet.pod.created", "10:00:01 llmfleet.pod.scheduled")
}

func TestLimitOfPods(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	c := startLogs(t, nopSettings(), s, testConfig(func(c *Config) { c.MaxPods = 2 }), sink).(*logsReceiver)
	require.True(t, waitFor(t, func() bool { return s.watched(podsResource) }))
	want := []string{"10:00:00 llmfleet.pod.created", "10:00:00 llmfleet.pod.created of b"}
	s.put(podOf("a", ""))
	s.put(podOf("b", ""))
	eventually(t, sink, want...)
	s.put(podOf("c", ""))
	require.True(t, waitFor(t, func() bool { return c.tally.refused.Load() == 1 }))
	s.remove(podOf("b", ""))
	eventually(t, sink, append(want, "10:00:00 llmfleet.pod.deleted of b")...)
	s.put(podOf("c", scheduled))
	eventually(t, sink, append(want, "10:00:00 llmfleet.pod.deleted of b", "10:00:00 llmfleet.pod.created of c", "10:00:01 llmfleet.pod.scheduled of c")...)
}

func TestOptionalResources(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	s.offer("resource.k8s.io/v1", "resourceclaims", "resourceslices")
	s.put(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: llm, creationTimestamp: "2026-03-01T09:59:00Z"}
status: {allocation: {allocationTimestamp: "2026-03-01T10:00:02Z"}}`)
	s.put(`
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: llm, uid: u, creationTimestamp: "2026-03-01T10:00:00Z"}
spec: {containers: [{name: engine}], resourceClaims: [{name: gpu, resourceClaimName: gpu}]}`)
	startLogs(t, nopSettings(), s, testConfig(func(c *Config) { c.IgnoreResources = []string{"resourceslices"} }), sink)
	eventually(t, sink, "10:00:00 llmfleet.pod.created replayed", "09:59:00 llmfleet.claim.created gpu replayed", "10:00:02 llmfleet.claim.allocated gpu replayed")
	assert.True(t, s.watched("resourceclaims"))
	assert.False(t, s.watched("resourceslices"), "ignored")
	assert.False(t, s.watched("leaderworkersets"), "not offered")
}

func TestReceiversOfOneConfigurationShareTheWatches(t *testing.T) {
	s, sink := newAPIServer(t), new(consumertest.LogsSink)
	config := testConfig()
	factory := newFactory(s.dial)
	m, err := factory.CreateMetrics(t.Context(), nopSettings(), config, consumertest.NewNop())
	require.NoError(t, err)
	l, err := factory.CreateLogs(t.Context(), nopSettings(), config, sink)
	require.NoError(t, err)
	s.put(podOf("a", ""))
	require.NoError(t, m.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	eventually(t, sink, "10:00:00 llmfleet.pod.created replayed")

	require.NoError(t, m.Shutdown(t.Context()))
	s.put(podOf("a", scheduled))
	eventually(t, sink, "10:00:00 llmfleet.pod.created replayed", "10:00:01 llmfleet.pod.scheduled")
	watches := 0
	for _, action := range s.objects.Actions() {
		if action.Matches("watch", podsResource) {
			watches++
		}
	}
	assert.Equal(t, 1, watches)
	require.NoError(t, l.Shutdown(t.Context()))
	require.NoError(t, l.Shutdown(t.Context()), "once more")
	assert.Zero(t, cores.Len())
}

func TestOneOfTwoWatches(t *testing.T) {
	s := newAPIServer(t)
	s.put(podOf("a", ""))
	elected := func(c *Config) {
		c.LeaderElection.Enabled, c.LeaderElection.LeaseNamespace = true, "llmfleet"
	}
	first, second := new(consumertest.LogsSink), new(consumertest.LogsSink)
	one := startLogs(t, nopSettings(), s, testConfig(elected), first)
	eventually(t, first, "10:00:00 llmfleet.pod.created replayed")
	other := startLogs(t, nopSettings(), s, testConfig(elected), second).(*logsReceiver)
	require.True(t, waitFor(t, func() bool { // it has looked at the Lease
		n := 0
		for _, action := range s.typed.Actions() {
			if action.Matches("get", "leases") {
				n++
			}
		}
		return n >= 2
	}))
	assert.Empty(t, told(second))
	assert.Nil(t, other.inventory(), "who does not watch knows nothing")

	require.NoError(t, one.Shutdown(t.Context()))
	s.put(podOf("a", scheduled))
	eventually(t, second, "10:00:00 llmfleet.pod.created replayed", "10:00:01 llmfleet.pod.scheduled replayed")
	lease, err := s.typed.CoordinationV1().Leases("llmfleet").Get(t.Context(), "llmfleet-k8s-fleet", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, other.identity, *lease.Spec.HolderIdentity)
	uid := func(sink *consumertest.LogsSink) string {
		record := sink.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		id, _ := record.Attributes().Get("log.record.uid")
		return id.Str()
	}
	assert.Equal(t, uid(first), uid(second), "the same fact, whoever tells it")
}
