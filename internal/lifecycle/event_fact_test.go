// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	inEngine = "spec.containers{engine}"
	second   = window.Instant(time.Second)
)

// TestEventFact: messages as Kubernetes' components of several versions write
// them.
func TestEventFact(t *testing.T) {
	node, plane := Clock{Kind: Node, Of: "gpu-1"}, Clock{}
	for _, tc := range []struct {
		reason, path, message string
		want                  Fact // what is not common to all
	}{
		{
			"Scheduled", "", "Successfully assigned serving/qwen-0 to gpu-1",
			Fact{Name: Scheduled, Clock: plane, About: &Pod{Name: "qwen-0", Namespace: "serving", Node: "gpu-1"}},
		},
		{
			"FailedScheduling", "", "0/3 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available.",
			Fact{Name: Unschedulable, Clock: plane},
		},
		{"FailedScheduling", "", "Failed to schedule pod, incompatible with nodepool \"default\"", Fact{Name: Unschedulable, Clock: plane}},
		{"NotTriggerScaleUp", "", "pod didn't trigger scale-up: 2 max node group size reached", Fact{Name: Unschedulable, Clock: plane}},
		{"TriggeredScaleUp", "", "pod triggered scale-up: [{gpu-pool 1->2 (max: 2)}]", Fact{Name: NodeRequested, Clock: plane, Reason: "cluster-autoscaler"}},
		{"Nominated", "", "Pod should schedule on: nodeclaim/gpu-x7", Fact{Name: NodeRequested, Clock: plane, Reason: "karpenter"}},
		{"SuccessfulAttachVolume", "", `AttachVolume.Attach succeeded for volume "pvc-1"`, Fact{Name: VolumeAttached, Clock: plane}},
		{"FailedAttachVolume", "", `Multi-Attach error for volume "pvc-1"`, Fact{Name: VolumeFailed, Clock: plane}},
		{"FailedMount", "", `MountVolume.SetUp failed for volume "models"`, Fact{Name: VolumeFailed, Clock: node}},
		{"FailedPrepareDynamicResources", "", "Failed to prepare dynamic resources: prepare failed", Fact{Name: ClaimFailed, Clock: node}},
		{"Pulling", inEngine, `Pulling image "vllm:v0.20"`, Fact{Name: PullStarted, Clock: node, Container: "engine"}},
		{"Pulled", inEngine, `Successfully pulled image "vllm:v0.20"`, Fact{Name: PullFinished, Clock: node, Container: "engine"}},
		{
			"Pulled", inEngine, `Successfully pulled image "vllm:v0.20" in 26.345675198s`,
			Fact{Name: PullFinished, Clock: node, Container: "engine", Took: 26345675198},
		},
		{
			"Pulled", inEngine, `Successfully pulled image "vllm:v0.20" in 796ms (1m21.284220239s including waiting)`,
			Fact{Name: PullFinished, Clock: node, Container: "engine", Took: 796 * time.Millisecond, Waited: 80488220239},
		},
		{
			"Pulled", inEngine, `Successfully pulled image "vllm:v0.20" in 2m7.876426944s (2m7.876426944s including waiting). Image size: 129338587 bytes.`,
			Fact{Name: PullFinished, Clock: node, Container: "engine", Took: 127876426944},
		},
		{"Pulled", inEngine, `Container image "vllm:v0.20" already present on machine`, Fact{Name: PullFinished, Clock: node, Container: "engine", Cached: true}},
		{
			"Pulled", inEngine, `Container image "vllm:v0.20" already present on machine and can be accessed by the pod`,
			Fact{Name: PullFinished, Clock: node, Container: "engine", Cached: true},
		},
		{"Created", "", "Created container engine", Fact{Name: ContainerCreated, Clock: node, Container: "engine"}},
		{"Created", "", "Created container: engine", Fact{Name: ContainerCreated, Clock: node, Container: "engine"}},
		{"Created", "spec.initContainers{fetch}", "Container created", Fact{Name: ContainerCreated, Clock: node, Container: "fetch"}},
		{"Started", "", "Started container engine", Fact{Name: ContainerStarted, Clock: node, Container: "engine"}},
		{"Started", inEngine, "Container started", Fact{Name: ContainerStarted, Clock: node, Container: "engine"}},
		{"Failed", inEngine, `Failed to pull image "vllm:v0.20": not found`, Fact{Name: PullFailed, Clock: node, Container: "engine"}},
		{"Failed", inEngine, `Failed to pull image "vllm:v0.20": pull QPS exceeded`, Fact{Name: PullFailed, Clock: node, Container: "engine", Reason: "QPSExceeded"}},
		{"Failed", inEngine, "Error: ErrImagePull", Fact{Name: PullFailed, Clock: node, Container: "engine", Reason: "ErrImagePull"}},
		{"Failed", inEngine, "Error: ImagePullBackOff", Fact{Name: PullBackOff, Clock: node, Container: "engine", Reason: "ImagePullBackOff"}},
		{"BackOff", inEngine, `Back-off pulling image "vllm:v0.20"`, Fact{Name: PullBackOff, Clock: node, Container: "engine"}},
		{"BackOff", inEngine, "Back-off restarting failed container", Fact{Name: RestartBackOff, Clock: node, Container: "engine"}},
		{"BackOff", "", "Back-off restarting failed container engine in pod qwen-0_serving(5c1)", Fact{Name: RestartBackOff, Clock: node, Container: "engine"}},
		{
			"Unhealthy", inEngine, `Startup probe failed: Get "http://10.1.2.3:8000/health": dial tcp: connection refused`,
			Fact{Name: ProbeFailed, Clock: node, Container: "engine", Reason: "startup"},
		},
		{"Unhealthy", inEngine, "Readiness probe errored: rpc error", Fact{Name: ProbeFailed, Clock: node, Container: "engine", Reason: "readiness"}},
		{"Evicted", "", "The node was low on resource: ephemeral-storage.", Fact{Name: Failed, Clock: node}},
		{"OutOfnvidia.com/gpu", "", "Node didn't have enough resource: nvidia.com/gpu", Fact{Name: Failed, Clock: node}},
	} {
		t.Run(tc.message, func(t *testing.T) {
			e := Event{Pod: "uid", Reason: tc.reason, FieldPath: tc.path, Message: tc.message, Host: "gpu-1", First: 100 * second, Last: 100 * second, Count: 1, Learned: 101 * second}
			want := tc.want
			want.Pod, want.At, want.Grain, want.Learned, want.Attempt, want.Message = "uid", 100*second, time.Second, 101*second, -1, tc.message
			if want.Reason == "" {
				want.Reason = tc.reason
			}
			got, ok := e.Fact()
			require.True(t, ok)
			assert.Equal(t, want, got)
		})
	}
}

// TestEventTellsNothing: of a start.
func TestEventTellsNothing(t *testing.T) {
	for _, e := range []Event{
		{Reason: "Killing", FieldPath: inEngine, Message: "Stopping container engine"},
		{Reason: "Created", Message: "Created container with docker id 4711"},
		{Reason: "Failed", FieldPath: inEngine, Message: "Error: secret \"token\" not found"},
		{Reason: "Nominated", Message: "Pod should schedule on: node/gpu-1"},
		{Reason: "Pulled", FieldPath: inEngine, Message: "something else"},
		{Reason: "Scheduled", Message: "Waiting for a place"},
		{Reason: "Started", FieldPath: "spec.ephemeralContainers{debug}", Message: "Started container debug"},
		{Reason: "OutOf"},
		{Reason: "Unhealthy", FieldPath: inEngine, Message: "All is well"},
		{},
	} {
		_, ok := e.Fact()
		assert.False(t, ok, "%s: %s", e.Reason, e.Message)
	}
}

// TestEventTime: eventTime before the first time, that before the last, and the
// event's creation if there is no other; a series is one fact until it ends.
func TestEventTime(t *testing.T) {
	base := Event{Pod: "uid", Reason: "FailedScheduling", Message: "0/1 nodes are available"}
	for name, tc := range map[string]struct {
		set   func(*Event)
		at    window.Instant
		grain time.Duration
		count int
		until window.Instant
	}{
		"eventTime beside nulls":  {func(e *Event) { e.Time = 7*second + 1; e.Created = 9 * second }, 7*second + 1, 0, 0, 0},
		"first and last":          {func(e *Event) { e.First, e.Last, e.Count = 5*second, 50*second, 4 }, 5 * second, time.Second, 4, 50 * second},
		"last alone":              {func(e *Event) { e.Last = 6 * second }, 6 * second, time.Second, 0, 0},
		"creation alone":          {func(e *Event) { e.Created = 8 * second }, 8 * second, time.Second, 0, 0},
		"a series":                {func(e *Event) { e.Time, e.SeriesCount, e.SeriesLast = 3*second, 5, 33*second }, 3 * second, 0, 5, 33 * second},
		"counted without a last":  {func(e *Event) { e.First, e.Count = 5*second, 2 }, 5 * second, time.Second, 2, 5 * second},
		"happened once":           {func(e *Event) { e.First, e.Last, e.Count = 5*second, 5*second, 1 }, 5 * second, time.Second, 0, 0},
		"no time that it tells":   {func(*Event) {}, 0, time.Second, 0, 0},
		"eventTime, old and last": {func(e *Event) { e.Time, e.Last, e.Count = 4*second, 40*second, 3 }, 4 * second, 0, 3, 40 * second},
	} {
		t.Run(name, func(t *testing.T) {
			e := base
			tc.set(&e)
			f, ok := e.Fact()
			require.True(t, ok)
			assert.Equal(t, tc.at, f.At)
			assert.Equal(t, tc.grain, f.Grain)
			assert.Equal(t, tc.count, f.Count)
			assert.Equal(t, tc.until, f.Until)
		})
	}
}

// TestEventOfAnother: who reports in a kubelet's stead has not its clock's name.
func TestEventOfAnother(t *testing.T) {
	e := Event{Pod: "uid", Reason: "Pulling", FieldPath: inEngine, Message: "Pulling image", Component: "kwok_controller", Host: "kwok-0", Node: "gpu-2"}
	f, ok := e.Fact()
	require.True(t, ok)
	assert.Equal(t, Clock{Kind: Node, Of: "gpu-2"}, f.Clock)
	e.Component = "kubelet"
	f, _ = e.Fact()
	assert.Equal(t, Clock{Kind: Node, Of: "kwok-0"}, f.Clock)
}

// FuzzEventFact: whatever an event says, durations are none that run backwards,
// and the fact is one that Kubernetes can tell.
func FuzzEventFact(f *testing.F) {
	f.Add("Pulled", inEngine, `Successfully pulled image "x" in 796ms (1s including waiting). Image size: 1 bytes.`)
	f.Add("Scheduled", "", "Successfully assigned a/b to c")
	f.Add("BackOff", "", "Back-off restarting failed container x in pod y")
	f.Add("Pulled", "{", `Successfully pulled image "x" in 9223372036s (-1s including waiting)`)
	f.Fuzz(func(t *testing.T, reason, path, message string) {
		e := Event{Pod: "uid", Reason: reason, FieldPath: path, Message: message, First: second}
		fact, ok := e.Fact()
		if !ok {
			return
		}
		assert.NotEqual(t, Unknown, fact.Name)
		assert.False(t, fact.Name.OfEngine())
		assert.GreaterOrEqual(t, fact.Took, time.Duration(0))
		assert.GreaterOrEqual(t, fact.Waited, time.Duration(0))
		assert.LessOrEqual(t, fact.Took+fact.Waited, longestPull)
		assert.Equal(t, "uid", fact.Pod)
		assert.Equal(t, second, fact.At)
	})
}
