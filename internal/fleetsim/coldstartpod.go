// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// The containers of pods that start.
const (
	engineContainer  = "engine"
	initContainer    = "prepare"
	sidecarContainer = "fetch"
	besideContainer  = "metrics"
)

// Shares of pods, or of what they do.
const (
	decided    = 0.6 // were asked for by an autoscaler
	newNode    = 0.2
	withClaim  = 0.15 // of those that need no node
	waits      = 0.4  // of the others: wait for a place
	withVolume = 0.3
	withInit   = 0.25
	imageThere = 0.3
	inLine     = 0.3 // of the images that are pulled
	pullFails  = 0.04
)

// longestWait is the longest for a place, so that all starts are over in two
// hours.
const longestWait = 3600

// nodeAge is how old nodes are that were there.
const nodeAge = 10 * 24 * time.Hour

// How long things take.
var (
	placeWait    = lognormal(10.3, 2.59) // p90 59 s and p99 1650 s, with those that do not wait
	claimWait    = lognormal(5, 0.8)
	machineTakes = lognormal(40, 0.5)
	volumeTakes  = lognormal(8, 0.6)
	sandboxTakes = lognormal(1.5, 0.5)
	pullTakes    = lognormal(40, 0.9)
	initTakes    = lognormal(8, 0.8)
	fetchTakes   = lognormal(60, 0.8)
	shortly      = seconds(0.02, 0.2)
)

// place makes the pod, if somebody wished for it after that wish, and returns when
// it has a node.
func (p *startingPod) place(wish, created *moment) (scheduled *moment) {
	if wish != nil {
		p.tellEvent(lifecycle.Fact{Name: lifecycle.Desired, Reason: "hpa"}, wish)
		p.stage("decision", "", 0, wish, created)
	}
	p.tellObject(lifecycle.Fact{Name: lifecycle.Created}, created)
	p.tellMetric(lifecycle.Fact{Name: lifecycle.Created}, created)
	fresh := p.odds(newNode)
	switch {
	case fresh:
		scheduled = p.onNewNode(created)
	case p.odds(withClaim):
		scheduled = p.withClaim(created)
	case p.odds(waits):
		tried := p.then(created, shortly)
		p.tell(lifecycle.Fact{Name: lifecycle.Unschedulable, Attempt: -1, Reason: "Unschedulable"}, tried)
		wait := time.Duration(min(placeWait(p.draw), longestWait) * float64(time.Second))
		scheduled = p.moment(tried.at.Add(wait))
		p.stage("scheduling", "", 0, created, scheduled)
	default:
		scheduled = p.then(created, shortly)
		p.stage("scheduling", "", 0, created, scheduled)
	}
	if !fresh {
		p.tellNode(created, scheduled)
	}
	p.tellObject(lifecycle.Fact{Name: lifecycle.Scheduled}, scheduled)
	p.tellMetric(lifecycle.Fact{Name: lifecycle.Scheduled}, scheduled)
	p.tell(lifecycle.Fact{Name: lifecycle.Scheduled, Attempt: -1}, scheduled)
	return scheduled
}

// tellNode tells of a node that was there long before, once the pod is on it.
func (p *startingPod) tellNode(created, scheduled *moment) {
	f := lifecycle.Fact{Name: lifecycle.NodeCreated, Grain: time.Second, About: p.about}
	made := p.moment(created.at.Add(-nodeAge))
	p.send(f, scheduled.at, false, toldAs{made, p.shown(&f, made.at)})
}

// onNewNode waits until a node was made for the pod.
func (p *startingPod) onNewNode(created *moment) (scheduled *moment) {
	asked := p.then(created, seconds(1, 5))
	made := p.then(asked, machineTakes)
	ready := p.then(made, machineTakes)
	scheduled = p.then(ready, seconds(0.2, 5))
	p.tellEvent(lifecycle.Fact{Name: lifecycle.NodeRequested, Reason: "cluster-autoscaler"}, asked)
	p.tellObject(lifecycle.Fact{Name: lifecycle.NodeCreated}, made)
	p.tellObject(lifecycle.Fact{Name: lifecycle.NodeReady, Clock: p.nodeClock()}, ready)
	p.stage("scheduling", "", 0, created, asked)
	p.stage("node.provision", "", 0, asked, ready)
	p.stage("scheduling", "", 0, ready, scheduled)
	p.parts(3, whole{"scheduling", created, scheduled})
	return scheduled
}

// withClaim waits until the pod's claim has devices.
func (p *startingPod) withClaim(created *moment) (scheduled *moment) {
	claimed := p.then(created, shortly)
	allocated := p.then(claimed, claimWait)
	scheduled = p.then(allocated, shortly)
	claim := lifecycle.Fact{Name: lifecycle.ClaimCreated, Container: "gpu"}
	p.tellObject(claim, claimed)
	claim.Name = lifecycle.ClaimAllocated
	p.tellObject(claim, allocated)
	p.stage("scheduling", "", 0, created, claimed)
	p.stage("dra.allocate", "", 0, claimed, allocated)
	p.stage("scheduling", "", 0, allocated, scheduled)
	p.parts(3, whole{"scheduling", created, scheduled})
	return scheduled
}

// prepare brings up all that the engine's container needs, and returns when it
// runs.
func (p *startingPod) prepare(scheduled *moment) (runs *moment) {
	begin := scheduled
	if p.odds(withVolume) {
		begin = p.then(scheduled, volumeTakes)
		p.tellEvent(lifecycle.Fact{Name: lifecycle.VolumeAttached}, begin)
		p.stage("volume.attach", "", 0, scheduled, begin)
	}
	sandbox := p.then(begin, sandboxTakes)
	p.tellObject(lifecycle.Fact{Name: lifecycle.SandboxReady, Clock: p.nodeClock()}, sandbox)
	p.stage("sandbox", "", 0, begin, sandbox)

	initialized := sandbox
	if p.odds(withInit) {
		p.adds(initContainer, lifecycle.Init)
		started := p.run(initContainer, p.image(initContainer, sandbox))
		initialized = p.exit(initContainer, 0, started, initTakes, lifecycle.Fact{Reason: "Completed"})
		p.stage("container.init", initContainer, 0, started, initialized)
	}
	beside := p.odds(p.world.plan.Overlaps)
	if beside && p.odds(0.5) {
		p.adds(sidecarContainer, lifecycle.Sidecar)
		initialized = p.run(sidecarContainer, p.image(sidecarContainer, initialized))
		p.fetch(initialized)
	} else if beside {
		p.adds(besideContainer, lifecycle.Main)
		p.beside = p.run(besideContainer, p.image(besideContainer, initialized))
	}
	p.tellObject(lifecycle.Fact{Name: lifecycle.Initialized, Clock: p.nodeClock()}, p.moment(initialized.at))
	return p.run(engineContainer, p.image(engineContainer, initialized))
}

// all is when all that the pod waits for is there, once its engine is.
func (p *startingPod) all(engine *moment) *moment {
	at := engine.at
	for _, other := range []*moment{p.beside, p.fetched} {
		if other != nil {
			at = max(at, other.at)
		}
	}
	return p.moment(at)
}

func (p *startingPod) adds(container string, role lifecycle.ContainerRole) {
	p.about.Containers = append(p.about.Containers, lifecycle.Container{Name: container, Role: role})
}

// fetch has the sidecar fetch the model.
func (p *startingPod) fetch(runs *moment) {
	began := p.then(runs, shortly)
	p.fetched = p.then(began, fetchTakes)
	p.tellLine(lifecycle.Fact{Name: lifecycle.DownloadStarted, Container: sidecarContainer}, began, nil)
	p.tellLine(lifecycle.Fact{Name: lifecycle.DownloadFinished, Container: sidecarContainer}, p.fetched, nil)
	p.stage("model.download", sidecarContainer, 0, began, p.fetched)
}

// image returns when the node has a container's image.
func (p *startingPod) image(container string, after *moment) (there *moment) {
	asked := p.then(after, shortly)
	if p.odds(imageThere) {
		p.tellEvent(lifecycle.Fact{Name: lifecycle.PullFinished, Container: container, Clock: p.nodeClock(), Cached: true}, asked)
		return asked
	}
	pulling := lifecycle.Fact{Name: lifecycle.PullStarted, Container: container, Clock: p.nodeClock()}
	p.tellEvent(pulling, asked)
	if p.odds(pullFails) {
		asked = p.failedPull(pulling, asked)
	}
	began := asked
	if p.odds(inLine) {
		began = p.then(asked, seconds(1, 30))
		p.stage("image.pull_wait", container, 0, asked, began)
	}
	there = p.then(began, pullTakes)
	p.stage("image.pull", container, 0, began, there)
	pulled := lifecycle.Fact{
		Name: lifecycle.PullFinished, Container: container, Clock: p.nodeClock(), Grain: time.Second, Attempt: -1,
		Took: there.at.Sub(began.at).Round(time.Millisecond), Waited: began.at.Sub(asked.at).Round(time.Millisecond),
	}
	end := p.shown(&pulled, there.at)
	p.post(pulled, there.at, toldAs{there, end}, toldAs{began, end.Add(-pulled.Took)}, toldAs{asked, end.Add(-pulled.Took - pulled.Waited)})
	return there
}

// failedPull is a pull that fails, and is begun again after a while. The event of
// the second is that of the first, which counts.
func (p *startingPod) failedPull(pulling lifecycle.Fact, asked *moment) (again *moment) {
	failed := p.then(asked, seconds(1, 20))
	waiting := p.then(failed, seconds(0.5, 2))
	again = p.then(failed, seconds(10, 20))
	p.tellEvent(lifecycle.Fact{Name: lifecycle.PullFailed, Container: pulling.Container, Clock: pulling.Clock, Reason: "ErrImagePull"}, failed)
	p.tellEvent(lifecycle.Fact{Name: lifecycle.PullBackOff, Container: pulling.Container, Clock: pulling.Clock}, waiting)
	p.tellAgain(pulling, asked, again, 2)
	p.stage("image.pull", pulling.Container, 0, asked, failed)
	p.stage("image.pull_back_off", pulling.Container, 0, failed, again)
	return again
}

// run makes a container and returns when it runs: an event and the pod's status
// tell it.
func (p *startingPod) run(container string, image *moment) (started *moment) {
	made := p.then(image, seconds(0.1, 1))
	started = p.then(made, seconds(0.05, 0.5))
	event := lifecycle.Fact{Name: lifecycle.ContainerCreated, Container: container, Clock: p.nodeClock()}
	p.tellEvent(event, made)
	event.Name = lifecycle.ContainerStarted
	p.tellEvent(event, started)
	p.tellObject(event, started)
	p.stage("container.create", container, 0, image, started)
	return started
}

// exit ends a container.
func (p *startingPod) exit(container string, attempt int, started *moment, after length, how lifecycle.Fact) (exited *moment) {
	exited = p.then(started, after)
	how.Name, how.Container, how.Attempt, how.Clock = lifecycle.ContainerExited, container, attempt, p.nodeClock()
	p.tellObject(how, exited)
	return exited
}
