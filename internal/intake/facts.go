// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// facts are what attributes, a resource's or a point's, say by themselves, by
// who tells it; nil where nothing is told.
type facts [fleet.OriginCount]*fleet.Facts

// tell notes what one origin tells.
func (fs *facts) tell(from fleet.Origin, told fleet.Facts) {
	if !told.Empty() {
		fs[from] = &told
	}
}

// orElse is what these facts say, and of what they do not, what others say.
func (fs facts) orElse(others facts) facts {
	for from, more := range others {
		switch {
		case fs[from] == nil:
			fs[from] = more
		case more != nil:
			all := *fs[from]
			for f, value := range more {
				all[f] = cmp.Or(all[f], value)
			}
			fs[from] = &all
		}
	}
	return fs
}

// serving tells whether Kubernetes' labels say that it is an engine's.
func (fs facts) serving() bool {
	told := fs[fleet.FromKubernetes]
	return told != nil && (told[fleet.ModelName] != "" || told[fleet.EngineName] != "" || told[fleet.Role] != "")
}

// ofResource are the facts of a resource. Of a replica group's pods only what
// they have in common counts: not the node, nor each pod's own template.
func (o *ClerkOptions) ofResource(resource pcommon.Map, grouped bool) (fs facts) {
	get := func(label string) string { return labelOf(resource, label) }
	kubernetes := o.kubernetes(get)
	if !grouped {
		kubernetes[fleet.Node] = cmp.Or(kubernetes[fleet.Node], textOf(resource, resourceNode))
		fs.tell(fleet.FromTemplate, fleet.Facts{fleet.ConfigHash: template(resource)})
	}
	fs.tell(fleet.FromAttributes, o.attributes(resource))
	fs.tell(fleet.FromKubernetes, kubernetes)
	fs.tell(fleet.FromImage, image(resource))
	return fs
}

// ofPod are those that hold for all containers of a pod.
func (fs facts) ofPod() facts {
	fs[fleet.FromTemplate], fs[fleet.FromImage] = nil, nil
	return fs
}

// ofPoint are the facts of a point. Which model it is of is not among them: it
// may be one of several.
func (o *ClerkOptions) ofPoint(attributes pcommon.Map) (fs facts) {
	told := o.attributes(attributes)
	told[fleet.ModelName] = ""
	fs.tell(fleet.FromAttributes, told)
	fs.tell(fleet.FromKubernetes, o.kubernetes(func(label string) string { return flatLabelOf(attributes, label) }))
	return fs
}

// attributes are the facts that are there already.
func (o *ClerkOptions) attributes(m pcommon.Map) (told fleet.Facts) {
	for f := range told {
		told[f] = textOf(m, fleet.Fact(f).String())
	}
	told[fleet.ModelName] = models{aliases: o.Aliases}.canonical(told[fleet.ModelName])
	return told
}

// kubernetes are the facts that the labels of the pod and its node tell.
func (o *ClerkOptions) kubernetes(get func(label string) string) (told fleet.Facts) {
	for f, labels := range o.Labels {
		for _, label := range labels {
			if told[f] = get(label); told[f] != "" {
				break
			}
		}
	}
	told[fleet.GPUModel] = gpuModel(told[fleet.GPUModel])
	if engine, ok := engineTypes[told[fleet.EngineName]]; ok {
		told[fleet.EngineName] = engine
	}
	return told
}

// engineTypes are what llm-d calls engines in its label of pods, where that is
// not the name of the dialect.
var engineTypes = map[string]string{"trtllm-serve": "tensorrt_llm", "trtllm": "tensorrt_llm", "triton-tensorrt-llm": "triton"}

// group names the replica group that a pod belongs to, "" if none.
func (o *ClerkOptions) group(namespace string, get func(label string) string) string {
	for _, labels := range o.Groups {
		var values []string
		for _, label := range labels {
			if v := get(label); v != "" {
				values = append(values, v)
			}
		}
		if len(values) == len(labels) {
			return namespace + "/" + strings.Join(values, "-")
		}
	}
	return ""
}

// labelPrefixes are what the k8s_attributes processor puts before the key of a
// label or annotation of a pod or its node. By its own name it may stand, too.
var labelPrefixes = []string{
	"k8s.pod.label.", "k8s.pod.labels.", "k8s.pod.annotation.", "k8s.pod.annotations.", "k8s.node.label.", "k8s.node.labels.", "",
}

// labelOf is the value of a label of a pod or its node as a resource has it.
func labelOf(resource pcommon.Map, label string) string {
	for _, prefix := range labelPrefixes {
		if v := textOf(resource, prefix+label); v != "" {
			return v
		}
	}
	return ""
}

// flatLabelOf is the value of such a label as a point has it, from Prometheus'
// service discovery.
func flatLabelOf(attributes pcommon.Map, label string) string {
	return cmp.Or(textOf(attributes, label), textOf(attributes, flatLabel(label)))
}

// flatLabel is a Kubernetes label as Prometheus' service discovery spells it,
// which knows neither dots nor slashes.
func flatLabel(label string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, label)
}

// template hashes what a pod's template says of the container: its image,
// command, arguments and environment, where Kubernetes' attributes tell the
// command or the arguments; "" where they do not.
func template(resource pcommon.Map) string {
	if textOf(resource, "container.command") == "" && textOf(resource, "container.command_args") == "" {
		return ""
	}
	var parts []string
	for _, key := range []string{
		"container.image.name", "container.image.tags", "container.image.tag", "container.command", "container.command_args", "container.env",
	} {
		parts = append(parts, key+"="+textOf(resource, key))
	}
	return digest(parts)
}

// digest is a short hash, the same everywhere and always.
func digest(parts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:5])
}

// image is what the tag of a container's image tells: the engine's version.
func image(resource pcommon.Map) fleet.Facts {
	tag := textOf(resource, "container.image.tag")
	if tags, ok := resource.Get("container.image.tags"); ok && tags.Type() == pcommon.ValueTypeSlice && tags.Slice().Len() > 0 {
		tag = strings.Clone(tags.Slice().At(0).AsString())
	}
	if tag == "latest" {
		tag = "" // whatever was newest at some time
	}
	return fleet.Facts{fleet.EngineVersion: tag}
}

// gpuModel is the name of an accelerator in one spelling: labels of nodes have
// no spaces, exporters have.
func gpuModel(name string) string {
	return strings.ReplaceAll(strings.TrimSpace(name), " ", "-")
}
