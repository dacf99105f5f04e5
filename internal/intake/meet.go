// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"net/netip"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// meet finds out who a point is of, and learns what it tells of them.
func (d *Desk) meet(e *dialect.Entry, attributes pcommon.Map) Face {
	p := &point{attributes: attributes, resource: d.resource, entry: e, models: d.clerk.models}
	switch e.Dialect.Component {
	case dialect.Engine:
		return d.meetEngine(p)
	case dialect.GPU:
		return d.meetGPU(p)
	default:
		return Face{}
	}
}

func (d *Desk) meetEngine(p *point) Face {
	c := d.clerk
	if p.copied() {
		return Face{}
	}
	id := d.kept(d.identify(p))
	if id == "" {
		c.names.tally.ignore(NoIdentity, p.entry.Dialect.Name, instanceOf(d.resource))
		return Face{}
	}
	place := d.place(p)
	if _, ip := endpoint(p.instance()); ip != "" {
		place.Addresses = append(place.Addresses, ip)
	}
	place.Shared = p.told(p.entry.Dialect.Labels.Replica) != ""
	r, err := c.directory.Enter(id, &place)
	if err != nil {
		c.names.tally.ignore(Limit, p.entry.Dialect.Name, id)
		return Face{}
	}
	said := c.options.ofPoint(p.attributes)
	if d.about(p) {
		said = d.facts.orElse(said)
	}
	said.tell(fleet.FromEngine, fleet.Facts{
		fleet.EngineName: engineOf(p.entry.Dialect, r), fleet.Role: p.told(p.entry.Dialect.Labels.Role),
	})
	learn(r, said)
	at := p.where()
	return Face{Resident: r, Serves: d.serves(p, r), named: at.named(id)}
}

// engineOf is the engine that speaks a dialect. What is wrapped around an engine
// names it only as long as that is unknown.
func engineOf(d *dialect.Dialect, r *fleet.Resident) string {
	if !d.Serves() && r.Facts()[fleet.EngineName] != "" {
		return ""
	}
	return d.Name
}

// identify names the replica that a point is of: by the dialect's own labels,
// by its group, or as every reader does.
func (d *Desk) identify(p *point) string {
	if p.told(p.entry.Dialect.Labels.Replica) != "" || p.stamped() != "" {
		return p.replica()
	}
	group := d.clerk.options.group(p.key(keyNamespace), func(label string) string { return flatLabelOf(p.attributes, label) })
	if group == "" && d.about(p) {
		group = d.group
	}
	if group != "" {
		return group
	}
	id := p.replica()
	if where := p.where(); where.named(id) {
		if r := d.clerk.directory.Find(&fleet.Place{Where: fleet.Where(where)}); r != nil {
			return r.ID
		}
	}
	return id
}

// where is a pod by its names.
type where fleet.Where

func (p *point) where() where {
	return where{Cluster: p.key(keyCluster), Namespace: p.key(keyNamespace), Pod: p.key(keyPod)}
}

// named tells whether a replica is called by the pod's name, as long as its uid
// is not known.
func (w *where) named(replica string) bool {
	return w.Pod != "" && replica == podName(w.Namespace, w.Pod)
}

// serves notes which model a point is of, if that counts.
func (d *Desk) serves(p *point, r *fleet.Resident) *fleet.Service {
	model, c := p.model(), d.clerk
	from := fleet.FromAttributes
	if there := p.text(keyModelName); there == "" || there == undefined {
		from = fleet.FromEngine // by a label of another name
	}
	if model == "" || !c.directory.Trusts(from) {
		return nil
	}
	if c.models.unknown(model) {
		c.names.tally.ignore(UnknownModel, p.entry.Dialect.Name, r.ID)
	}
	return r.Serve(model, from)
}

// meetGPU finds whose accelerator a point speaks of, and what model it is.
func (d *Desk) meetGPU(p *point) (face Face) {
	labels, directory := &p.entry.Dialect.Labels, d.clerk.directory
	model := gpuModel(p.told(labels.GPUModel))
	if node := p.told(labels.Node); node != "" && model != "" {
		face.equipment = directory.Equip(node, model)
	}
	where := fleet.Where{Cluster: p.key(keyCluster), Namespace: p.told(labels.Namespace), Pod: p.told(labels.Pod)}
	if where.Pod == "" || where.Pod == p.ofResource(resourcePod) { // of the exporter's own pod
		return face
	}
	face.Resident = directory.Find(&fleet.Place{Where: where})
	if face.Resident != nil && model != "" {
		face.Resident.Learn(fleet.FromGPU, &fleet.Facts{fleet.GPUModel: model})
	}
	return face
}

// endpoint reads where a request went: host:port, a URL, or several of which the
// first counts. The IP address is "" if there is none, or it is the host's own.
func endpoint(text string) (host, ip string) {
	host, _, _ = strings.Cut(text, ",")
	host = strings.TrimSpace(host)
	if _, rest, ok := strings.Cut(host, "://"); ok {
		host = rest
	}
	host, _, _ = strings.Cut(host, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:] // a name and a password are nobody's business
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if withPort, ofPort := netip.ParseAddrPort(host); ofPort == nil {
		address, err = withPort.Addr(), nil
	}
	if err == nil && !address.IsLoopback() {
		ip = address.Unmap().String()
	}
	return host, ip
}
