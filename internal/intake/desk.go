// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Desk is where the telemetry of one resource is received. What its attributes
// say is read once.
type Desk struct {
	clerk    *Clerk
	last     atomic.Int64 // window.Instant
	id       fleet.ID     // of all attributes of the resource
	sender   fleet.ID     // who of several that may tell of one process
	resource pcommon.Map  // a copy of what identifies it
	group    string       // the replica group that the resource belongs to
	facts    facts

	mu     sync.Mutex
	own    *fleet.Resident
	sought uint64 // the directory's growth when own was last looked for
	faces  []Face // in the order of their keys

	informing  sync.Mutex
	informed   fleet.ID          // what the info series said when they were last read, …
	configured []*fleet.Resident // … and of whom
}

const resourcePodIP = "k8s.pod.ip"

var (
	// senderKeys tell the scrapes of one process, on one port or two, apart.
	senderKeys = []string{resourceInstance, "service.name", "k8s.container.name"}
	// identifying are the attributes of a resource that its points' identity is
	// read from.
	identifying = []string{
		keyCluster, keyNamespace, keyPod, keyModelName, keyReplica, keyEngineName, resourceCluster, resourceNamespace, resourcePod,
		resourcePodUID, resourcePodIP, resourceInstance,
	}
)

func (c *Clerk) newDesk(id fleet.ID, resource pcommon.Map) *Desk {
	d := &Desk{clerk: c, id: id, sender: c.names.chosen(resource, senderKeys), resource: pcommon.NewMap()}
	d.last.Store(c.now.Load())
	for _, key := range identifying {
		if text := textOf(resource, key); text != "" {
			d.resource.PutStr(key, text)
		}
	}
	p := d.itself()
	d.group = c.options.group(p.key(keyNamespace), func(label string) string { return labelOf(resource, label) })
	d.facts = c.options.ofResource(resource, d.group != "")
	return d
}

// itself is the resource as a point of no dialect, with no attributes of its own.
func (d *Desk) itself() *point {
	return &point{resource: d.resource, attributes: pcommon.NewMap(), entry: anyEntry, models: d.clerk.models}
}

var anyEntry = &dialect.Entry{Dialect: new(dialect.Dialect)}

// Sender tells a resource from others that may tell of the same process.
func (d *Desk) Sender() fleet.ID { return d.sender }

// Own is the replica that the resource is, by its own attributes; nil if it is
// none that is known.
func (d *Desk) Own() *fleet.Resident {
	d.mu.Lock()
	defer d.mu.Unlock()
	growth := d.clerk.directory.Growth()
	if d.sought != growth || d.own != nil && d.own.Gone() {
		d.own = d.seek()
		d.sought = d.clerk.directory.Growth()
	}
	if d.own != nil {
		d.own.Hear()
	}
	return d.own
}

// seek finds who the resource is. A pod of whom Kubernetes says that it serves
// is an engine even before its first metric.
func (d *Desk) seek() *fleet.Resident {
	directory, p := d.clerk.directory, d.itself()
	place := d.place(p)
	id := d.kept(cmp.Or(p.replica(), place.UID))
	if d.group != "" && p.stamped() == "" {
		id = d.group
	}
	r := directory.Resident(id)
	if r == nil {
		r = directory.Find(&place)
	}
	if r == nil && id != "" && d.facts.serving() {
		r, _ = directory.Enter(id, &place)
	}
	if r != nil {
		learn(r, d.facts.ofPod()) // it may be the resource of a container beside the engine's
	}
	return r
}

// learn tells a resident what is said of it.
func learn(r *fleet.Resident, said facts) {
	for from, told := range said {
		if told != nil {
			r.Learn(fleet.Origin(from), told)
		}
	}
}

// place is where a point's sender runs.
func (d *Desk) place(p *point) fleet.Place {
	place := fleet.Place{Where: fleet.Where{
		Cluster: d.kept(p.key(keyCluster)), Namespace: d.kept(p.key(keyNamespace)), Pod: d.kept(p.key(keyPod)),
	}}
	addresses := []string{d.kept(p.instance())}
	if d.about(p) {
		place.UID = d.kept(p.ofResource(resourcePodUID))
		addresses = append(addresses, d.kept(p.ofResource(resourcePodIP)))
	}
	place.Addresses = slices.DeleteFunc(addresses, func(a string) bool { return a == "" })
	return place
}

// kept is the desk's own copy of a text where it has one: thousands of residents
// would keep one more each.
func (d *Desk) kept(text string) string {
	for _, v := range d.resource.All() {
		if v.Str() == text {
			return v.Str()
		}
	}
	return text
}

// about tells whether a point speaks of the resource that it stands in, and not
// of another that was scraped before it came here.
func (d *Desk) about(p *point) bool {
	pod := p.attribute(keyPod)
	if pod == "" || p.ofResource(resourcePod) == "" {
		return p.instance() == p.ofResource(resourceInstance)
	}
	return pod == p.ofResource(resourcePod)
}
