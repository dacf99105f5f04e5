// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// original is the revision that replicas serve before any rollout.
var original = &Fault{Kind: NewRevision, Factor: 1, PrefillFactor: 1, OutputFactor: 1, PromptFactor: 1}

// rollOut puts the fault's revision in place of what the engine serves.
func (f *Fault) rollOut(e *engine) { e.replace(f, append(e.rollouts, f)) }

// rollBack puts the former one back, unless a newer one has taken its place.
func (f *Fault) rollBack(e *engine) {
	served := e.serves()
	e.rollouts = without(e.rollouts, f)
	if served == f {
		e.replace(f, e.rollouts)
	}
}

// replace ends the process and begins the next, within no time, in the pod that
// the rollouts in force have made.
func (e *engine) replace(by *Fault, rollouts []*Fault) {
	e.shutDown()
	e.rollouts = rollouts
	pod := podName(e.fleet, e.replica)
	for _, f := range rollouts {
		if f.Mode == Replace {
			pod = f.newPod(e.fleet, e.replica)
		}
	}
	e.moveIn(pod)
	if by.WarmUp > 0 {
		e.cold, e.warm = e.now, e.now+by.WarmUp.Seconds()
	}
	e.boot()
}

// moveIn makes the engine that of a pod, which has a permanent offset of its own.
func (e *engine) moveIn(pod string) {
	e.name = pod
	e.offset = math.Exp(e.fleet.Latency.PodNoise * stream(e.seed, pod, "offset").NormFloat64())
}

// newPod is the name of the pod that a rollout by replacement puts in place of a
// replica's.
func (f *Fault) newPod(fleet *Fleet, replica int) string {
	return fmt.Sprintf("%s-%s-%d", fleet.Name, f.Revision, replica)
}

// serves is the rollout that the engine serves.
func (e *engine) serves() *Fault {
	if len(e.rollouts) == 0 {
		return original
	}
	return e.rollouts[len(e.rollouts)-1]
}

// revision of the model that the engine serves; empty if the scenario does not
// say.
func (e *engine) revision() string {
	return cmp.Or(e.serves().Revision, repeated(e.fleet.Revisions, e.replica))
}

// asServed is a request as it is with the revision that the engine serves.
func (f *Fault) asServed(a arrival) arrival {
	a.prompt, a.output = scaled(a.prompt, f.PromptFactor), scaled(a.output, f.OutputFactor)
	return a
}

// scaled is so many times as many tokens, at least one.
func scaled(tokens int, factor float64) int {
	return max(int(math.Round(float64(tokens)*factor)), 1)
}

// falls draws whether one of several shares of the requests has this one in it.
func falls(random *rand.Rand, shares ...float64) bool {
	return slices.ContainsFunc(shares, func(share float64) bool { return share > 0 && random.Float64() < share })
}
