// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"maps"
	"net/http"
)

// What a scrape gets instead of a page, where that is no HTTP status.
const (
	NoAnswer = 0  // the connection is closed
	TimedOut = -1 // no answer comes until the scraper gives up
)

// Namespace that all pods are in.
const Namespace = "fleetsim"

// Target is what one scrape reads: the page of a replica; under Ray that of a
// node, whose agent shows all replicas there; that of a dcgm-exporter, which
// shows the GPUs of a node; or that of the gateway.
type Target struct {
	name    string
	dialect *dialect
	engines []*Engine
	node    string    // of a dcgm-exporter
	gpus    []*Engine // that a dcgm-exporter shows the GPUs of
	gateway *gatewayPage
}

// newTargets groups the replicas of one fleet by the page that shows them.
func newTargets(f *Fleet, engines []*Engine) []*Target {
	var (
		targets []*Target
		node    *Target // the one that takes the next replica, if it has room
		nodes   int
	)
	for _, e := range engines {
		d := e.sim.dialect
		if !d.shared {
			targets = append(targets, &Target{name: e.Name(), dialect: d, engines: []*Engine{e}})
			continue
		}
		if node == nil || len(node.engines) == f.ReplicasPerNode {
			node = &Target{name: fmt.Sprintf("%s-node-%d", f.Name, nodes), dialect: d}
			nodes++
			targets = append(targets, node)
		}
		node.engines = append(node.engines, e)
	}
	return targets
}

// newPodTargets makes the pages of the pods that rollouts put in place of others,
// each once.
func newPodTargets(faults []Fault, engines []*Engine) []*Target {
	var targets []*Target
	made := map[string]bool{}
	for i := range faults {
		f := &faults[i]
		for _, e := range engines {
			if f.Mode != Replace || !f.strikes(e.sim.fleet, e.sim.replica) || e.sim.dialect.shared {
				continue
			}
			if pod := f.newPod(e.sim.fleet, e.sim.replica); !made[pod] {
				made[pod] = true
				targets = append(targets, &Target{name: pod, dialect: e.sim.dialect, engines: []*Engine{e}})
			}
		}
	}
	return targets
}

// newGPUTargets makes the dcgm-exporter of every node, in the order in which the
// scenario names them.
func newGPUTargets(engines []*Engine) []*Target {
	var targets []*Target
	nodes, on := nodesOf(engines)
	for _, node := range nodes {
		targets = append(targets, &Target{name: "dcgm-exporter-" + node, dialect: &dialect{path: "/metrics"}, node: node, gpus: on[node]})
	}
	return targets
}

// Name is that of the replica's pod, FLEET-node-N, dcgm-exporter-NODE or
// ai-gateway.
func (t *Target) Name() string { return t.name }

// Exists tells whether there is something to scrape at this moment: of a replica
// that rollouts replace, only the pod that serves has a page.
func (t *Target) Exists() bool {
	return len(t.engines) == 0 || t.dialect.shared || t.engines[0].Name() == t.name
}

// Engines lists the replicas whose series are on the page; none are on those of
// a dcgm-exporter and of the gateway.
func (t *Target) Engines() []*Engine { return t.engines }

// Path of the page on its HTTP server.
func (t *Target) Path() string { return t.dialect.path }

// ContentType of the page.
func (t *Target) ContentType() string { return t.dialect.contentType() }

// Labels are those that a scrape gives to all series of the page, as of this
// moment: namespace and pod; node, gpu_model, model_revision and engine_version
// where the scenario says them and all replicas of the page have them in common;
// model_name where the page does not tell it. The caller may change them.
func (t *Target) Labels() map[string]string {
	labels := map[string]string{}
	for i, e := range t.engines {
		own := e.labels()
		if i == 0 {
			labels = own
		}
		maps.DeleteFunc(labels, func(name, value string) bool { return own[name] != value })
	}
	if t.node != "" {
		labels["node"] = t.node
	}
	labels["namespace"], labels["pod"] = Namespace, t.name
	return labels
}

// labels that say where a replica runs and what it serves.
func (e *Engine) labels() map[string]string {
	f := e.sim.fleet
	labels := map[string]string{
		"node":           e.Node(),
		"gpu_model":      repeated(f.GPUModels, e.sim.replica),
		"model_revision": e.sim.revision(),
		"engine_version": repeated(f.EngineVersions, e.sim.replica),
	}
	if e.sim.dialect.unnamed {
		labels["model_name"] = f.ModelName
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// AppendPage appends the page of this moment to dst and returns it with the
// HTTP status, NoAnswer or TimedOut; each call is one scrape. A replica that
// does not answer is missing on the page of a node; that page itself always
// answers.
func (t *Target) AppendPage(dst []byte) ([]byte, int) {
	if !t.Exists() {
		return dst, NoAnswer
	}
	if t.gateway != nil {
		return t.gateway.appendTo(dst), http.StatusOK
	}
	if t.gpus != nil {
		return appendGPUs(dst, t.gpus), http.StatusOK
	}
	if !t.dialect.shared {
		return t.engines[0].AppendPage(dst)
	}
	var answering []*engine
	for _, e := range t.engines {
		if e.sim.answer() == http.StatusOK {
			answering = append(answering, e.sim)
		}
	}
	return appendPage(dst, t.dialect, answering), http.StatusOK
}

// AppendPage appends a page of the replica alone to dst and returns it with the
// HTTP status: 200; or NoAnswer, TimedOut or another one while the page is in a
// gap, with nothing appended. Each call is one scrape.
func (e *Engine) AppendPage(dst []byte) ([]byte, int) {
	status := e.sim.answer()
	if status != http.StatusOK {
		return dst, status
	}
	return appendPage(dst, e.sim.dialect, []*engine{e.sim}), status
}

// answer is the status that a scrape gets from the engine's HTTP server: of
// several gaps that strike it, the newest one's.
func (e *engine) answer() int {
	if e.down {
		return NoAnswer
	}
	status := http.StatusOK
	for _, g := range e.gaps {
		if g.strikes() {
			status = g.status
		}
	}
	return status
}
