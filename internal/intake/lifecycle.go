// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// LifecycleOptions are how lifecycle facts are read.
type LifecycleOptions struct {
	// Dialects are the engines whose words are known.
	Dialects *dialect.Set
	// MaxPods is about how many pods are remembered: which engine runs there,
	// whether it has made a token, how its clock goes.
	MaxPods int
}

// Lifecycle reads what tells of pods' starts: log records, spans and metrics. What
// it reads as a fact without a pod or without a time it passes on as such, to be
// counted. It is safe for concurrent use.
type Lifecycle struct {
	dialects *dialect.Set
	startup  *dialect.Startup

	mu       sync.Mutex
	moments  recent[lifecycle.Clock, moment]
	engines  recent[spot, string]
	zones    recent[spot, time.Duration]
	tokens   recent[string, tokens]
	nodes    recent[string, string] // of pods
	measured recent[measure, time.Duration]
}

// spot is a container of a pod.
type spot struct{ pod, container string }

// NewLifecycle makes a reader.
func NewLifecycle(o LifecycleOptions) *Lifecycle {
	return &Lifecycle{
		dialects: o.Dialects, startup: dialect.NewStartup(o.Dialects),
		moments: recently[lifecycle.Clock, moment](o.MaxPods), engines: recently[spot, string](o.MaxPods),
		zones:  recently[spot, time.Duration](o.MaxPods),
		tokens: recently[string, tokens](o.MaxPods), nodes: recently[string, string](o.MaxPods),
		measured: recently[measure, time.Duration](o.MaxPods),
	}
}

// narrator is whose telemetry a resource is.
type narrator struct {
	resource pcommon.Map
	spot
	node    string
	attempt int
	about   *lifecycle.Pod
}

func narratorOf(resource pcommon.Map) *narrator {
	s := &narrator{resource: resource, node: textOf(resource, lifecycle.KeyNode), attempt: attempt(resource), about: podOf(resource)}
	s.pod, s.container = textOf(resource, lifecycle.KeyPod), textOf(resource, lifecycle.KeyContainer)
	return s
}

// own is a fact that the narrator tells of itself, by its own clock.
func (s *narrator) own(name lifecycle.Name, at window.Instant) lifecycle.Fact {
	return lifecycle.Fact{
		Pod: s.pod, Name: name, At: at, Clock: lifecycle.Clock{Kind: lifecycle.Engine, Of: s.pod},
		Container: s.container, Attempt: s.attempt, About: s.about,
	}
}

// attempt is a container's restart count, -1 if it is not told. Log readers know
// it from a file's path, as text.
func attempt(m pcommon.Map) int {
	n, err := strconv.Atoi(textOf(m, lifecycle.KeyAttempt))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// podOf is what a resource says of its pod, nil if it says nothing.
func podOf(m pcommon.Map) *lifecycle.Pod {
	p := lifecycle.Pod{
		Name: textOf(m, lifecycle.KeyPodName), Namespace: textOf(m, lifecycle.KeyNamespace), Node: textOf(m, lifecycle.KeyNode),
		WorkloadKind: textOf(m, lifecycle.KeyWorkloadKind), Workload: textOf(m, lifecycle.KeyWorkload),
		Model: textOf(m, lifecycle.KeyModel), Engine: textOf(m, lifecycle.KeyEngine), GPUModel: textOf(m, lifecycle.KeyGPUModel),
		GPUs:  integer(m, lifecycle.KeyGPUs),
		Group: textOf(m, lifecycle.KeyGroup), Leader: textOf(m, lifecycle.KeyLeader), GroupSize: integer(m, lifecycle.KeyGroupSize),
	}
	if p.Workload == "" {
		p.WorkloadKind, p.Workload = workload(m)
	}
	containers, roles := texts(m, lifecycle.KeyContainers), texts(m, lifecycle.KeyContainerRoles)
	for i, name := range containers {
		c := lifecycle.Container{Name: name}
		if i < len(roles) {
			c.Role = lifecycle.ContainerRoleOf(roles[i])
		}
		p.Containers = append(p.Containers, c)
	}
	if p.Name == "" && p.Namespace == "" && p.Node == "" && p.WorkloadKind == "" && p.Workload == "" && p.Model == "" && p.Engine == "" &&
		p.GPUModel == "" && p.GPUs == 0 && p.Group == "" && p.Leader == "" && p.GroupSize == 0 && p.Containers == nil {
		return nil
	}
	return &p
}

// workload is who made a pod, by the attributes of semantic conventions.
func workload(m pcommon.Map) (kind, name string) {
	for _, kind := range [...]string{"Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "ReplicaSet"} {
		if name := textOf(m, "k8s."+strings.ToLower(kind)+".name"); name != "" {
			return kind, name
		}
	}
	return "", ""
}

func integer(m pcommon.Map, key string) int {
	if v, ok := m.Get(key); ok && v.Type() == pcommon.ValueTypeInt {
		return int(v.Int())
	}
	return 0
}

func texts(m pcommon.Map, key string) []string {
	v, ok := m.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	all := make([]string, 0, v.Slice().Len())
	for _, element := range v.Slice().All() {
		all = append(all, strings.Clone(element.AsString()))
	}
	return all
}

// knowing is what is known of a pod, with more that its engine told of itself.
func knowing(p *lifecycle.Pod, model, engine string) *lifecycle.Pod {
	if model == "" && engine == "" {
		return p
	}
	var known lifecycle.Pod
	if p != nil {
		known = *p
	}
	known.Model, known.Engine = cmp.Or(known.Model, model), cmp.Or(known.Engine, engine)
	return &known
}
