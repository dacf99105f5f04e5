// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	rolloutReplicas = 20
	// rolloutAfter is the pane, from 0, in which the canary's pods are there: the
	// baseline is known by then, and little more.
	rolloutAfter = 3
	// burnInPanes are those that do not count then: the first requests of new pods.
	burnInPanes = 1
	// relapseMinutes is for how long a canary does worse in the end.
	relapseMinutes = 20
	// rolloutMemory is how much of a pod's noise is there in the next pane.
	rolloutMemory = 0.8
	// beginning is when worlds begin, and podAge how old the baseline is by then.
	beginning = window.Instant(1000 * time.Hour)
	podAge    = 24 * time.Hour
)

// behaviour is what a version makes of its requests.
type behaviour struct {
	// ttft, prompt and output are how many times as long as usual they are.
	ttft, prompt, output float64
	// failed, cut and aborted are the shares of requests that end with an error, at
	// max_tokens, and because nobody waits any more.
	failed, cut, aborted float64
}

// usual is what the baseline does.
var usual = behaviour{ttft: 1, prompt: 1, output: 1, failed: 0.005, cut: 0.19, aborted: 0.01}

// canaryPlan is a rollout to some of a fleet's pods.
type canaryPlan struct {
	name string
	pods int // of the canary
	// podNoise is between pods, driftNoise of each over time, on the log scale.
	podNoise, driftNoise float64
	canary               behaviour
	// minutes are played at most: with toEnd all of them, otherwise until all rules
	// have failed the canary. Then, if there is a relapse, come relapseMinutes more in
	// which the canary does that.
	minutes int
	toEnd   bool
	relapse *behaviour
}

// canaryWorld is such a rollout in motion.
type canaryWorld struct {
	plan  *canaryPlan
	frame fleet.Frame
	panes int     // that have begun
	phase float64 // of the day, 0 to 1
	pods  []drawnPod
}

// drawnPod is one pod. What it draws changes nothing of what others draw.
type drawnPod struct {
	requests, drifts *rand.Rand
	offset, drift    float64 // log
	of               behaviour
	tells            podTells
}

// startRollout puts run number n of a plan into motion.
func startRollout(p *canaryPlan, n int, seed uint64) *canaryWorld {
	w := &canaryWorld{plan: p}
	stream := func(pod int, purpose string) *rand.Rand {
		name := fnv.New64a()
		fmt.Fprintf(name, "%s/%d/%d/%s", p.name, n, pod, purpose)
		return rand.New(rand.NewPCG(seed, name.Sum64()))
	}
	w.phase = stream(0, "phase").Float64()
	w.frame.Fleet = &fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: "m"}}}
	w.frame.Signals = canary.Signals()
	for i := range rolloutReplicas {
		pod := drawnPod{requests: stream(i, "requests"), drifts: stream(i, "drift"), of: usual}
		pod.offset = p.podNoise * stream(i, "offset").NormFloat64()
		pod.drift = p.driftNoise * pod.drifts.NormFloat64()
		m := w.newMember(i)
		pod.tells = newPodTells(&w.frame, &m)
		w.pods, w.frame.Members = append(w.pods, pod), append(w.frame.Members, m)
	}
	return w
}

// newMember is a pod of the baseline.
func (w *canaryWorld) newMember(i int) fleet.MemberFrame {
	m := fleet.MemberFrame{
		Started: seconds(beginning.Add(-podAge)), Realtime: true,
		Identity: podIdentity(fmt.Sprintf("m-%02d", i), "a", w.frame.Fleet.Keys),
		Told:     make([]fleet.Distribution, len(w.frame.Signals)),
		Reasons:  []fleet.ReasonCount{{Reason: "abort"}, {Reason: "error"}, {Reason: "length"}, {Reason: "stop"}},
	}
	for i, s := range w.frame.Signals {
		if layout := drawnLayout(s); layout != nil {
			m.Told[i] = fleet.Distribution{Layout: layout, Counts: make([]uint64, layout.Width()), SumKnown: true, Ever: true}
		}
	}
	return m
}

func podIdentity(name, revision string, keys []fleet.Label) *fleet.Identity {
	return &fleet.Identity{Replica: name, Engine: "vllm", Keys: keys, Variant: []fleet.Label{{Name: "model_revision", Value: revision}}}
}

func seconds(t window.Instant) float64 { return float64(t) / float64(time.Second) }

// next draws the next pane of all pods.
func (w *canaryWorld) next() *fleet.Frame {
	if w.panes == rolloutAfter {
		w.rollOut()
	}
	w.panes++
	if w.relapsing() {
		for i := range w.plan.pods {
			w.pods[i].of = *w.plan.relapse
		}
	}
	day := math.Sin(2 * math.Pi * (w.phase + float64(w.panes)/panesADay))
	for i := range w.pods {
		pod, m := &w.pods[i], &w.frame.Members[i]
		if w.panes > 1 {
			pod.drift = rolloutMemory*pod.drift + w.plan.driftNoise*math.Sqrt(1-rolloutMemory*rolloutMemory)*pod.drifts.NormFloat64()
		}
		m.Warming = i < w.plan.pods && w.panes == rolloutAfter+1
		pod.serve(m, busy*(1+rateSwing*day), pod.offset+pod.drift+latencySwing*day)
	}
	w.frame.End = beginning.Add(time.Duration(w.panes) * pane)
	return &w.frame
}

// rollOut puts the canary's pods in the place of as many others.
func (w *canaryWorld) rollOut() {
	for i := range w.plan.pods {
		w.pods[i].of = w.plan.canary
		m := &w.frame.Members[i]
		m.Identity = podIdentity(m.Identity.Replica+"-new", "b", w.frame.Fleet.Keys)
		m.Started = seconds(w.frame.End)
	}
}

// end is the pane, from 1, after which the canary may have a relapse.
func (w *canaryWorld) end() int { return rolloutAfter + burnInPanes + w.plan.minutes }

// over tells whether the plan has come to its end.
func (w *canaryWorld) over() bool {
	if w.plan.relapse != nil {
		return w.panes >= w.end()+relapseMinutes
	}
	return w.panes >= w.end()
}

// relapsing tells whether the newest pane is one of the canary's relapse.
func (w *canaryWorld) relapsing() bool { return w.plan.relapse != nil && w.panes > w.end() }
