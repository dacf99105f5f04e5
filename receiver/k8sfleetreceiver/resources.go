// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is a kind of objects that is watched.
type resource struct {
	// name is that of the API, in the plural: as in roles.
	name string
	// versions are where it may be served, best first.
	versions []schema.GroupVersion
	// clusterWide objects are in no namespace.
	clusterWide bool
	// optional ones may not be there, or come later.
	optional bool
	// fields select objects.
	fields string
}

const (
	podsResource   = "pods"
	eventsResource = "events"
)

// resources are all that are watched. Pods come after what tells whose they are,
// and events after pods.
var resources = []resource{
	{name: "nodes", versions: in("", "v1"), clusterWide: true},
	{name: "deployments", versions: in("apps", "v1")},
	{name: "replicasets", versions: in("apps", "v1")},
	{name: "statefulsets", versions: in("apps", "v1")},
	{name: "horizontalpodautoscalers", versions: in("autoscaling", "v2")},
	{name: "resourceclaims", versions: in("resource.k8s.io", "v1"), optional: true},
	{name: "resourceslices", versions: in("resource.k8s.io", "v1"), clusterWide: true, optional: true},
	{name: "deviceclasses", versions: in("resource.k8s.io", "v1"), clusterWide: true, optional: true},
	{name: "devicetaintrules", versions: in("resource.k8s.io", "v1"), clusterWide: true, optional: true},
	{name: "leaderworkersets", versions: in("leaderworkerset.x-k8s.io", "v1"), optional: true},
	{name: "nodeclaims", versions: in("karpenter.sh", "v1"), clusterWide: true, optional: true},
	{
		name: "inferencepools", optional: true,
		versions: append(in("inference.networking.k8s.io", "v1"), in("inference.networking.x-k8s.io", "v1alpha2")...),
	},
	{name: podsResource, versions: in("", "v1")},
	{name: eventsResource, versions: in("", "v1"), fields: "involvedObject.kind=Pod"},
}

func in(group, version string) []schema.GroupVersion {
	return []schema.GroupVersion{{Group: group, Version: version}}
}

// ignorable are the resources that need not be watched.
func ignorable() (names []string) {
	for _, r := range resources {
		if r.name != podsResource {
			names = append(names, r.name)
		}
	}
	return names
}

// ignores tells whether a resource is not to be watched.
func (c *Config) ignores(r resource) bool { return slices.Contains(c.IgnoreResources, r.name) }
