// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/objects"
)

// Accelerated tells whether a pod asks for an accelerator: as an extended
// resource, or by a claim.
func (o *Options) Accelerated(p *corev1.Pod) bool {
	return len(p.Spec.ResourceClaims) > 0 || o.extended(p) > 0
}

// About is who a pod is.
func (c *Cluster) About(p *corev1.Pod) *lifecycle.Pod {
	owner, _ := c.outermost(p)
	a := &lifecycle.Pod{
		Name: p.Name, Namespace: p.Namespace, Node: p.Spec.NodeName,
		WorkloadKind: owner.kind, Workload: owner.name,
		GPUs: c.options.extended(p) + c.claimed(p),
	}
	a.Model, a.Engine = c.options.served(p)
	if node := c.nodes[p.Spec.NodeName]; node != nil {
		a.GPUModel = firstLabel(node.Labels, c.options.GPUModelLabels)
	}
	a.Group, a.GroupSize = c.options.Group(p)
	a.GroupSize = cmp.Or(a.GroupSize, c.workloads[owner].size)
	a.Leader = c.leader(a.Group)
	for i := range p.Spec.InitContainers {
		init := &p.Spec.InitContainers[i]
		role := lifecycle.Init
		if init.RestartPolicy != nil && *init.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = lifecycle.Sidecar
		}
		a.Containers = append(a.Containers, lifecycle.Container{Name: init.Name, Role: role})
	}
	for i := range p.Spec.Containers {
		a.Containers = append(a.Containers, lifecycle.Container{Name: p.Spec.Containers[i].Name, Role: lifecycle.Main})
	}
	return a
}

func firstLabel(of map[string]string, labels []string) string {
	for _, label := range labels {
		if value := of[label]; value != "" {
			return value
		}
	}
	return ""
}

// extended is how many accelerators a pod asks for as extended resources: of its
// containers together, or of one init container if that asks for more.
func (o *Options) extended(p *corev1.Pod) int {
	sum, most := 0, 0
	for i := range p.Spec.Containers {
		sum += o.gpusOf(p.Spec.Containers[i].Resources)
	}
	for i := range p.Spec.InitContainers {
		most = max(most, o.gpusOf(p.Spec.InitContainers[i].Resources))
	}
	return max(sum, most)
}

// gpusOf counts accelerators; of extended resources, requests equal limits.
func (o *Options) gpusOf(r corev1.ResourceRequirements) (n int) {
	for name, limit := range r.Limits {
		if o.isGPU(string(name)) {
			n += int(limit.Value())
		}
	}
	return n
}

func (o *Options) isGPU(resource string) bool {
	for _, name := range o.GPUResources {
		if prefix, open := strings.CutSuffix(name, "*"); name == resource || open && strings.HasPrefix(resource, prefix) {
			return true
		}
	}
	return false
}

// claimed is how many devices a pod's claims ask for.
func (c *Cluster) claimed(p *corev1.Pod) (n int) {
	for _, name := range claimsOf(p) {
		claim := c.claims[types.NamespacedName{Namespace: p.Namespace, Name: name}]
		if claim == nil {
			continue
		}
		for i := range claim.Spec.Devices.Requests {
			n += devicesOf(&claim.Spec.Devices.Requests[i])
		}
	}
	return n
}

// devicesOf is how many devices a request asks for; of alternatives, the first.
func devicesOf(r *resourcev1.DeviceRequest) int {
	switch {
	case r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess:
		return 0
	case r.Exactly != nil:
		return int(max(r.Exactly.Count, 1))
	case len(r.FirstAvailable) > 0:
		return int(max(r.FirstAvailable[0].Count, 1))
	}
	return 0
}

// claimsOf are the names of a pod's claims: those that it names, and those that
// were made for it.
func claimsOf(p *corev1.Pod) (names []string) {
	for _, claim := range p.Spec.ResourceClaims {
		if claim.ResourceClaimName != nil {
			names = append(names, *claim.ResourceClaimName)
		}
	}
	for _, claim := range p.Status.ResourceClaimStatuses {
		if claim.ResourceClaimName != nil {
			names = append(names, *claim.ResourceClaimName)
		}
	}
	return names
}

// Model is the name that a pod's model is served under, "" if it is not told.
func (o *Options) Model(p *corev1.Pod) string {
	model, _ := o.served(p)
	return model
}

// served is the model that a pod serves and the engine that does it: as its labels
// say, else as its command does.
func (o *Options) served(p *corev1.Pod) (model, engine string) {
	model = firstLabel(p.Labels, o.ModelLabels)
	for i := range p.Spec.Containers {
		container := &p.Spec.Containers[i]
		said, by := command(container)
		engine = cmp.Or(engine, by)
		if by != "" || o.gpusOf(container.Resources) > 0 || len(p.Spec.Containers) == 1 {
			model = cmp.Or(model, said)
		}
	}
	return model, engine
}

// engines are the words by which the command, or the image, of a container tells
// which engine it runs.
var engines = []struct{ word, engine string }{
	{"vllm", "vllm"},
	{"sglang", "sglang"},
	{"trtllm", "tensorrt_llm"},
	{"tensorrt-llm", "tensorrt_llm"},
	{"tensorrtllm", "tensorrt_llm"},
	{"text-generation", "tgi"},
	{"lmdeploy", "lmdeploy"},
	{"llama-server", "llamacpp"},
	{"llama.cpp", "llamacpp"},
}

// modelFlags name the model that is served, best first: the name that it goes by,
// else where it comes from.
var modelFlags = []string{"--served-model-name", "--model-name", "--model", "--model-path", "--model-id"}

// command reads a container's command line.
func command(container *corev1.Container) (model, engine string) {
	var words []string
	for _, part := range append(append([]string{}, container.Command...), container.Args...) {
		words = append(words, strings.Fields(part)...) // a shell's script is one part
	}
	line := strings.ToLower(strings.Join(words, " "))
	for _, text := range []string{line, strings.ToLower(container.Image)} {
		for _, e := range engines {
			if engine == "" && strings.Contains(text, e.word) {
				engine = e.engine
			}
		}
	}
	for _, flag := range modelFlags {
		if model == "" {
			model = flagValue(words, flag)
		}
	}
	for i, word := range words {
		if model == "" && word == "serve" && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			model = plain(words[i+1])
		}
	}
	return model, engine
}

// flagValue is what follows a flag.
func flagValue(words []string, flag string) string {
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, flag+"="); ok {
			return plain(value)
		}
		if word == flag && i+1 < len(words) {
			return plain(words[i+1])
		}
	}
	return ""
}

// plain is a word without quotes; "" if it stands for what only a shell knows.
func plain(word string) string {
	if strings.Contains(word, "$") {
		return ""
	}
	return strings.Trim(word, `"'`)
}

// Labels by which pods tell which replica group they are of.
const (
	lwsName   = "leaderworkerset.sigs.k8s.io/name"
	lwsGroup  = "leaderworkerset.sigs.k8s.io/group-index"
	lwsWorker = "leaderworkerset.sigs.k8s.io/worker-index"
	rayName   = "ray.io/cluster"
	rayType   = "ray.io/node-type"
)

// group names the replica group of a pod, "" if it is a replica by itself.
func (o *Options) group(p *corev1.Pod) string {
	switch own := p.Labels[o.GroupLabel]; {
	case own != "":
		return p.Namespace + "/" + own
	case p.Labels[lwsName] != "" && p.Labels[lwsGroup] != "":
		return p.Namespace + "/" + p.Labels[lwsName] + "-" + p.Labels[lwsGroup]
	case p.Labels[rayName] != "":
		return p.Namespace + "/" + p.Labels[rayName]
	}
	return ""
}

// leads tells whether a pod leads its group: the first of a LeaderWorkerSet's, the
// head of Ray's, the first of a StatefulSet.
func (o *Options) leads(p *corev1.Pod) bool {
	switch {
	case p.Labels[o.GroupLabel] != "":
		return p.Labels["apps.kubernetes.io/pod-index"] == "0"
	case p.Labels[lwsName] != "":
		return p.Labels[lwsWorker] == "0"
	}
	return p.Labels[rayType] == "head"
}

// Group names the replica group of a pod, "" if it is a replica by itself, and how
// many pods the group has, 0 if the pod does not tell.
func (o *Options) Group(p *corev1.Pod) (name string, size int) {
	size, _ = strconv.Atoi(p.Annotations[objects.GroupSizeAnnotation]) // 0 where it does not tell
	return o.group(p), size
}

// lead notes who leads a group.
func (c *Cluster) lead(p *corev1.Pod) {
	group := c.options.group(p)
	if group == "" || !c.options.leads(p) {
		return
	}
	if c.leaders[group] == nil {
		c.leaders[group] = make(map[string]string, 1)
	}
	c.leaders[group][p.Name] = string(p.UID)
}

func (c *Cluster) unlead(p *corev1.Pod) {
	group := c.options.group(p)
	if of := c.leaders[group]; of[p.Name] == string(p.UID) {
		delete(of, p.Name)
		if len(of) == 0 {
			delete(c.leaders, group)
		}
	}
}

// leader is the uid of the pod that leads a group, "" unless exactly one does.
func (c *Cluster) leader(group string) string {
	if of := c.leaders[group]; len(of) == 1 {
		for _, uid := range of {
			return uid
		}
	}
	return ""
}
