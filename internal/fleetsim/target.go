// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"net/http"
)

// NoAnswer is the status of a page whose connection is closed.
const NoAnswer = 0

// Target is what one scrape reads: the page of a replica or, under Ray, that of
// a node, whose agent shows all replicas there.
type Target struct {
	name    string
	dialect *dialect
	engines []*Engine
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

// Name is that of the replica's pod, or FLEET-node-N.
func (t *Target) Name() string { return t.name }

// Engines lists the replicas whose series are on the page.
func (t *Target) Engines() []*Engine { return t.engines }

// Path of the page on its HTTP server.
func (t *Target) Path() string { return t.dialect.path }

// ContentType of the page.
func (t *Target) ContentType() string { return t.dialect.contentType() }

// AppendPage appends the page of this moment to dst and returns it with the
// HTTP status. A replica that does not answer is missing on the page of a node;
// that page itself always answers.
func (t *Target) AppendPage(dst []byte) ([]byte, int) {
	if !t.dialect.shared {
		return t.engines[0].AppendPage(dst)
	}
	var answering []*engine
	for _, e := range t.engines {
		if e.sim.status() == http.StatusOK {
			answering = append(answering, e.sim)
		}
	}
	return appendPage(dst, t.dialect, answering), http.StatusOK
}

// AppendPage appends a page of the replica alone to dst and returns it with the
// HTTP status: 200; NoAnswer or another one while the page is in a gap, with
// nothing appended.
func (e *Engine) AppendPage(dst []byte) ([]byte, int) {
	status := e.sim.status()
	if status != http.StatusOK {
		return dst, status
	}
	return appendPage(dst, e.sim.dialect, []*engine{e.sim}), status
}

// status that the engine's HTTP server answers with.
func (e *engine) status() int {
	if e.down {
		return NoAnswer
	}
	if n := len(e.gaps); n > 0 {
		return e.gaps[n-1]
	}
	return http.StatusOK
}
