// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
)

// Names of what identifies a replica, as attributes of points and resources.
const (
	keyCluster    = "cluster"
	keyNamespace  = "namespace"
	keyPod        = "pod"
	keyModelName  = "model_name"
	keyRole       = "role"
	keyEngineName = "engine_name"
	keyGPUModel   = "gpu_model"
	keyNode       = "node"
	keyReplica    = "replica"

	resourceCluster   = "k8s.cluster.name"
	resourceNamespace = "k8s.namespace.name"
	resourcePod       = "k8s.pod.name"
	resourcePodUID    = "k8s.pod.uid"
	resourceNode      = "k8s.node.name"
	resourceInstance  = "service.instance.id"
)

// point is where a point's identity is read: its own attributes first, then
// those of its resource.
type point struct {
	attributes, resource pcommon.Map
	entry                *dialect.Entry
	models               models
}

// refusal is why a point is not read at all; zero if it is.
func (p *point) refusal() Reason {
	for _, f := range p.entry.Keep {
		if v, ok := first(p.attributes, f.Spellings); ok && !slices.Contains(f.Values, v.AsString()) {
			return Label
		}
	}
	if !marked(p.entry, p.attributes) {
		return Label
	}
	if p.copied() {
		return RouterCopy
	}
	return 0
}

// copied tells whether the point is a router's copy of an engine's.
func (p *point) copied() bool {
	labels := &p.entry.Dialect.Labels
	for _, label := range labels.Reject {
		if _, ok := p.attributes.Get(label); !ok {
			continue
		}
		if _, excused := p.attributes.Get(labels.Unless); !excused {
			return true
		}
	}
	return false
}

// first is the first of some attributes that is there.
func first(m pcommon.Map, keys []string) (pcommon.Value, bool) {
	for _, key := range keys {
		if v, ok := m.Get(key); ok {
			return v, true
		}
	}
	return pcommon.Value{}, false
}

// replica names the serving unit: by the dialect's own labels, by its pod, by
// its instance.
func (p *point) replica() string {
	if v := p.told(p.entry.Dialect.Labels.Replica); v != "" {
		return v
	}
	if v := p.stamped(); v != "" {
		return v
	}
	pod, namespace := p.key(keyPod), p.key(keyNamespace)
	uid := p.ofResource(resourcePodUID)
	switch {
	case pod == "" && (uid == "" || p.told(instanceLabels) != ""):
		return p.instance()
	case uid != "" && pod == p.ofResource(resourcePod): // any other pod than the scraped one's is another
		return uid
	}
	return podName(namespace, pod)
}

// podName names a pod whose uid is not known.
func podName(namespace, pod string) string {
	if namespace == "" {
		return pod
	}
	return namespace + "/" + pod
}

// stamped is the replica as fleet_identity knows it. It stands on the resource,
// and with it the engine: a label or an attribute that is called replica and
// nothing more may be anyone's, of a pair of Prometheus servers for one.
func (p *point) stamped() string {
	if p.ofResource(keyEngineName) == "" {
		return ""
	}
	return p.ofResource(keyReplica)
}

// node is the node that the point's replica runs on: as Kubernetes says, or a
// label of the target.
func (p *point) node() string {
	return cmp.Or(p.ofResource(resourceNode), p.text(keyNode))
}

// instanceLabels are how a scrape in between keeps the scraped address.
var instanceLabels = []string{exportedInstance, "instance"}

// exportedInstance is how a scrape spells a label that its target has, too.
const exportedInstance = "exported_instance"

// instance is the scraped address: of the engine where a collector or Prometheus
// in between has kept it on the point, else of the target.
func (p *point) instance() string {
	return cmp.Or(p.told(instanceLabels), p.ofResource(resourceInstance))
}

// key is the value of one key of a fleet, empty if unknown.
func (p *point) key(key string) string {
	if key == keyModelName {
		return p.model()
	}
	if v := p.text(key); v != "" {
		return v
	}
	switch key {
	case keyCluster:
		return p.ofResource(resourceCluster)
	case keyNamespace:
		return p.ofResource(resourceNamespace)
	case keyPod:
		return p.ofResource(resourcePod)
	case keyRole:
		return p.told(p.entry.Dialect.Labels.Role)
	case keyEngineName:
		return p.entry.Dialect.Name
	case keyGPUModel:
		return p.told(p.entry.Dialect.Labels.GPUModel)
	}
	return ""
}

// model is the name of the model. An engine that does not know it may say so in
// a word, which is no name.
func (p *point) model() string {
	for _, v := range []string{p.told(p.entry.Dialect.Labels.Model), p.attribute(keyModelName), p.ofResource(keyModelName)} {
		if v != "" && v != undefined {
			return p.models.canonical(v)
		}
	}
	return ""
}

// undefined is what TensorRT-LLM's own server calls its model.
const undefined = "undefined"

// models are the names that models go by.
type models struct {
	aliases map[string]string
	names   map[string]bool // those that count
}

func newModels(aliases map[string]string) models {
	m := models{aliases: aliases, names: make(map[string]bool)}
	for _, name := range aliases {
		m.names[name] = true
	}
	return m
}

// canonical is the name that counts of a model.
func (m models) canonical(name string) string {
	if canonical, ok := m.aliases[name]; ok {
		return canonical
	}
	return name
}

// unknown tells whether there are aliases, and the name is none, nor what one
// stands for.
func (m models) unknown(name string) bool {
	return len(m.aliases) > 0 && !m.names[name]
}

// told is the first of some labels of the point that is there and says
// something.
func (p *point) told(labels []string) string {
	for _, label := range labels {
		if v := p.attribute(label); v != "" {
			return v
		}
	}
	return ""
}

// text is the value of an attribute, or else of a resource attribute.
func (p *point) text(key string) string {
	if v := p.attribute(key); v != "" {
		return v
	}
	return p.ofResource(key)
}

func (p *point) attribute(key string) string { return textOf(p.attributes, key) }

func (p *point) ofResource(key string) string { return textOf(p.resource, key) }

// textOf copies an attribute: nothing that is kept may point into metrics that
// others own.
func textOf(m pcommon.Map, key string) string {
	v, ok := m.Get(key)
	if !ok {
		return ""
	}
	return strings.Clone(v.AsString())
}

// instanceOf names a resource to an operator. It is borrowed, not copied.
func instanceOf(resource pcommon.Map) string {
	if v, ok := resource.Get(resourceInstance); ok {
		return v.AsString()
	}
	return ""
}
