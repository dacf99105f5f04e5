// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/objects"
)

var options = Options{
	GPUResources: []string{"nvidia.com/gpu", "nvidia.com/mig-*"}, ModelLabels: []string{"llm-d.ai/model"},
	GPUModelLabels: []string{"nvidia.com/gpu.product"}, GroupLabel: "example.com/group",
}

// story is a file of testdata: objects as the API server sends them, and the facts
// of the pod.
type story struct {
	Want, About string
	Objects     []map[string]any
	Pod         map[string]any
}

// trimmed is an object as the informers keep it.
func trimmed(t *testing.T, from map[string]any) any {
	t.Helper()
	text, err := json.Marshal(from)
	require.NoError(t, err)
	u := new(unstructured.Unstructured)
	require.NoError(t, u.UnmarshalJSON(text))
	o, err := objects.Trim(u)
	require.NoError(t, err)
	return o
}

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var s story
			require.NoError(t, yaml.Unmarshal(text, &s))
			c := New(options)
			for _, o := range s.Objects {
				c.Set(trimmed(t, o))
			}
			pod := trimmed(t, s.Pod).(*corev1.Pod)
			c.Set(pod)
			told := c.Pod(pod)
			require.NotEmpty(t, told)
			var lines []string
			for i := range told {
				assert.Equal(t, string(pod.UID), told[i].Pod)
				assert.Zero(t, told[i].Learned, "when it is learned is for others to say")
				lines = append(lines, line(&told[i]))
			}
			assert.Equal(t, strings.Split(strings.TrimSpace(s.Want), "\n"), lines)
			assert.Equal(t, s.About, about(told[0].About))

			for _, o := range s.Objects {
				c.Delete(trimmed(t, o))
			}
			c.Delete(pod)
			assert.Equal(t, New(options), c, "nothing is left")
		})
	}
}

func line(f *lifecycle.Fact) string {
	parts := []string{time.Unix(0, int64(f.At)).UTC().Format(time.TimeOnly), f.Name.String()}
	if f.Container != "" {
		container := f.Container
		if f.Clock.Kind == lifecycle.Node {
			container += fmt.Sprintf("#%d", f.Attempt)
		}
		parts = append(parts, container)
	}
	if f.Clock.Kind == lifecycle.Node {
		parts = append(parts, "@"+f.Clock.Of)
	}
	if f.Reason != "" {
		parts = append(parts, f.Reason)
	}
	if f.ExitCode != 0 {
		parts = append(parts, fmt.Sprintf("exit %d", f.ExitCode))
	}
	return strings.Join(parts, " ")
}

func about(p *lifecycle.Pod) string {
	text := fmt.Sprintf("%s/%s %s/%s on %s serves %s by %s on %d of %s,",
		p.WorkloadKind, p.Workload, p.Namespace, p.Name, p.Node, p.Model, p.Engine, p.GPUs, p.GPUModel)
	if p.Group != "" {
		text += fmt.Sprintf(" group %s of %d led by %s,", p.Group, p.GroupSize, p.Leader)
	}
	text += " containers"
	for _, c := range p.Containers {
		text += " " + map[lifecycle.ContainerRole]string{lifecycle.Init: "init:", lifecycle.Sidecar: "sidecar:"}[c.Role] + c.Name
	}
	return text
}

func clock(text string) metav1.Time {
	at, _ := time.Parse(time.TimeOnly, text)
	return metav1.NewTime(at.AddDate(2026, 2, 0))
}

func TestGone(t *testing.T) {
	grace := int64(30)
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"when deletion was asked for, not when it has to be over": {func(p *corev1.Pod) {
			end := clock("10:05:30")
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &end, &grace
		}, "10:05:00 llmfleet.pod.deleted"},
		"unseen: the last that it told": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: clock("10:00:07")}}
		}, "10:00:07 llmfleet.pod.deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: clock("10:00:00")}}
			c.change(p)
			f := New(options).Gone(p)
			assert.Equal(t, c.want, line(&f))
		})
	}
}

func TestAccelerated(t *testing.T) {
	of := func(text string) *corev1.Pod {
		var spec map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &spec))
		return trimmed(t, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": spec}).(*corev1.Pod)
	}
	for text, want := range map[string]bool{
		`containers: [{name: a, resources: {limits: {nvidia.com/gpu: "1"}}}]`:                                true,
		`containers: [{name: a, resources: {limits: {nvidia.com/mig-1g.5gb: "1"}}}]`:                         true,
		`{containers: [{name: a}], initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: "1"}}}]}`: true,
		`{containers: [{name: a}], resourceClaims: [{name: g, resourceClaimName: c}]}`:                       true,
		`containers: [{name: a, resources: {limits: {cpu: "1", nvidia.com/gpu-memory: "1"}}}]`:               false,
		`containers: [{name: a, resources: {limits: {nvidia.com/gpu: "0"}}}]`:                                false,
		`{containers: [{name: a}], ephemeralContainers: [{name: debug, image: x}]}`:                          false,
	} {
		assert.Equal(t, want, options.Accelerated(of(text)), text)
	}
}

func TestEventHandsOnWhatTheObjectSays(t *testing.T) {
	at := clock("10:00:07")
	e := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: "u", FieldPath: "spec.containers{engine}"},
		Reason:         "Pulled", Message: `Container image "x" already present on machine`,
		Source:         corev1.EventSource{Component: "kubelet", Host: "gpu-1"},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	f, ok := Event(e, "gpu-1")
	require.True(t, ok)
	assert.Equal(t, lifecycle.PullFinished, f.Name)
	assert.Equal(t, "engine", f.Container)
	assert.True(t, f.Cached)
	assert.Equal(t, window.Instant(at.UnixNano()), f.At)

	_, ok = Event(&corev1.Event{InvolvedObject: e.InvolvedObject, Reason: "SomethingElse"}, "")
	assert.False(t, ok)
}

func TestEventTimes(t *testing.T) {
	of := func(change func(*corev1.Event)) window.Instant {
		e := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{CreationTimestamp: clock("10:00:09")},
			InvolvedObject: corev1.ObjectReference{UID: "u"},
			Reason:         "Scheduled", Message: "Successfully assigned llm/a to gpu-1",
			ReportingController: "default-scheduler",
		}
		change(e)
		f, ok := Event(e, "")
		require.True(t, ok)
		return f.At
	}
	exact := clock("10:00:06").Add(123456 * time.Microsecond)
	assert.Equal(t, instant(exact), of(func(e *corev1.Event) { e.EventTime = metav1.NewMicroTime(exact) }), "firstTimestamp is null")
	assert.Equal(t, instant(clock("10:00:07").Time), of(func(e *corev1.Event) { e.FirstTimestamp, e.LastTimestamp = clock("10:00:07"), clock("10:00:08") }))
	assert.Equal(t, instant(clock("10:00:09").Time), of(func(*corev1.Event) {}))
}

func TestToldOnce(t *testing.T) {
	told := NewTold(2)
	about := &lifecycle.Pod{Name: "p"}
	ready := lifecycle.Fact{Pod: "u1", Name: lifecycle.Ready, At: 100, About: about}
	assert.False(t, told.News(&ready), "nobody follows the pod")
	followed, fresh := told.Follow("u1")
	assert.True(t, followed && fresh)
	assert.True(t, told.News(&ready))
	assert.False(t, told.News(&ready))
	flipped := ready
	flipped.At = 1000
	assert.False(t, told.News(&flipped), "only the first False to True counts")

	first := lifecycle.Fact{Pod: "u1", Name: lifecycle.PullBackOff, Container: "engine", At: 5}
	again := lifecycle.Fact{Pod: "u1", Name: lifecycle.PullBackOff, Container: "engine", At: 50}
	assert.True(t, told.News(&first))
	assert.True(t, told.News(&again), "events of two times are two facts")
	again.Until, again.Count = 80, 3
	assert.True(t, told.News(&again), "it has happened again")
	assert.False(t, told.News(&again))
	told.Untell(&again)
	assert.True(t, told.News(&again))

	followed, fresh = told.Follow("u1")
	assert.True(t, followed)
	assert.False(t, fresh)
	followed, _ = told.Follow("u2")
	assert.True(t, followed, "at the limit")
	followed, _ = told.Follow("u3")
	assert.False(t, followed, "limit and one")

	loaded := NewTold(2)
	require.NoError(t, loaded.Load(told.Save()))
	assert.False(t, loaded.News(&ready), "a restart tells nothing again")
	assert.False(t, loaded.News(&again))
	require.Error(t, loaded.Load([]byte(`{"version":9}`)))
	require.Error(t, loaded.Load([]byte(`no`)))

	told.Forget("u1")
	told.Keep(func(string) bool { return false })
	assert.Zero(t, told.Pods())
}

func TestToldIsBoundedForEachPod(t *testing.T) {
	told := NewTold(1)
	told.Follow("u")
	times := 0
	for attempt := range maxTold + 1 {
		if told.News(&lifecycle.Fact{Pod: "u", Name: lifecycle.ContainerExited, Attempt: attempt}) {
			times++
		}
	}
	assert.Equal(t, maxTold, times)
}

func TestGroups(t *testing.T) {
	pod := func(name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "llm", UID: "uid-x", Labels: labels}}
	}
	for name, c := range map[string]struct {
		labels map[string]string
		group  string
		leads  bool
	}{
		"alone":      {nil, "", false},
		"ray head":   {map[string]string{rayName: "r", rayType: "head"}, "llm/r", true},
		"ray worker": {map[string]string{rayName: "r", rayType: "worker"}, "llm/r", false},
		"own label":  {map[string]string{"example.com/group": "g", "apps.kubernetes.io/pod-index": "0"}, "llm/g", true},
		"lws leader": {map[string]string{lwsName: "l", lwsGroup: "3", lwsWorker: "0"}, "llm/l-3", true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := New(options)
			p := pod(name, c.labels)
			cluster.Set(p)
			a := cluster.About(p)
			assert.Equal(t, c.group, a.Group)
			if c.leads {
				assert.Equal(t, string(p.UID), a.Leader)
			} else {
				assert.Empty(t, a.Leader)
			}
		})
	}
}
