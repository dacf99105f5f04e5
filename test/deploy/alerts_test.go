// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// parallelPlatforms is how many run at once: each waits for most of the time.
const parallelPlatforms = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallelPlatforms); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const (
	// warm is when replicas may be flagged: what goes wrong begins then.
	warm = 40 * time.Second
	// steady is for how long a platform is watched on which no alert may fire, or no other one.
	steady = 20 * time.Second
	// patience is how long an alert may take.
	patience = 3 * time.Minute
)

// faulty are platforms on which one thing goes wrong, and the alert that tells it; with it, what it goes without saying.
var faulty = []struct {
	name   string
	alert  string
	with   string
	faults []fleetsim.Fault
	warmup time.Duration // where it is not warm
	strike func(*platform)
}{
	{
		name: "a slow replica", alert: "ReplicaOutlier",
		faults: []fleetsim.Fault{{Kind: fleetsim.Slow, Fleet: "code", Replicas: []int{1}, Factor: 2, From: warm}},
	},
	{
		name: "a slow node", alert: "NodeOutlier", with: "ReplicaOutlier",
		faults: []fleetsim.Fault{{Kind: fleetsim.Slow, Node: "gpu-1", Factor: 2, From: warm}},
	},
	{
		name: "a stuck replica", alert: "ReplicaStuck",
		faults: []fleetsim.Fault{{Kind: fleetsim.Hung, Fleet: "code", Replicas: []int{2}, From: warm}},
	},
	{
		name: "a tenant that bursts", alert: "NoisyNeighbour",
		faults: []fleetsim.Fault{surge(75 * time.Second)},
	},
	{
		// A new pod is not judged for warmup, an hour by default: the verdict on the canary comes long before.
		name: "a bad canary", alert: "CanaryFails", warmup: patience,
		faults: []fleetsim.Fault{rollout(20 * time.Second)},
	},
	{
		name: "a replica that is not scraped", alert: "FleetCoverageLow",
		faults: []fleetsim.Fault{{Kind: fleetsim.Gap, Fleet: "code", Replicas: []int{3}, From: warm}},
	},
	{
		name: "more requests than all replicas can take", alert: "TTFTBudgetBurns",
		faults: []fleetsim.Fault{{Kind: fleetsim.TrafficSurge, Fleet: "tools", Factor: 5, From: warm}},
	},
	{
		name: "all replicas make tokens slowly", alert: "ITLBudgetBurns",
		faults: []fleetsim.Fault{{Kind: fleetsim.Slow, Fleet: "code", Factor: 6, From: warm}},
	},
	{
		name: "long cold starts", alert: "ColdStartTooLong",
		strike: func(p *platform) { p.tellStart(p.t, 2, 2) },
	},
	{
		name: "pods wait for GPUs", alert: "GPUPodsPending",
		strike: func(p *platform) { p.cluster.show(p.t, "pending") },
	},
	{
		name: "a trace store that refuses", alert: "LlmfleetDropping",
		strike: func(p *platform) {
			p.store.refuses.Store(true)
			for n := range 60 {
				p.tellStart(p.t, 2+n, 0.5)
				time.Sleep(time.Second)
			}
		},
	},
	{
		name: "engines that are found no more", alert: "LlmfleetHearsNobody",
		strike: func(p *platform) { p.discovery.lost.Store(true) },
	},
	{
		name: "a node that gives llmfleet little time", alert: "LlmfleetNotEvaluating",
		strike: func(p *platform) {
			for range 6 {
				p.collector.Freeze(p.t, 8*time.Second)
				time.Sleep(4 * time.Second)
			}
		},
	},
	{
		name: "llmfleet is killed", alert: "LlmfleetDown",
		strike: func(p *platform) { p.collector.Kill(p.t) },
	},
}

// surge is a tenant that sends four times as many requests, six times as long.
func surge(from time.Duration) fleetsim.Fault {
	return fleetsim.Fault{Kind: fleetsim.TrafficSurge, Fleet: "chat", Tenant: "initech", Factor: 4, PromptFactor: 6, From: from}
}

// rollout restarts two of eight replicas with a revision that prefills more slowly.
func rollout(from time.Duration) fleetsim.Fault {
	return fleetsim.Fault{
		Kind: fleetsim.NewRevision, Fleet: "tools", Replicas: []int{6, 7}, Revision: "7a31e04",
		PrefillFactor: 2.5, From: from,
	}
}

// TestAlertsOnFaults: each alert fires on the platform that has its fault, and no other does.
func TestAlertsOnFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faulty {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.warmup == 0 {
				f.warmup = warm
			}
			p := startPlatform(t, setting{faults: f.faults, warmup: f.warmup})
			p.tellStart(t, 1, 0.5)
			if f.strike != nil {
				time.Sleep(time.Until(p.start.Add(warm)))
				require.Empty(t, p.fired(), "nothing is wrong yet")
				f.strike(p)
			}
			p.await(patience, "alert "+f.alert, func() bool { return slices.Contains(p.fired(), f.alert) })
			t.Logf("%s fired after %s", f.alert, time.Since(p.start).Round(time.Second))
			time.Sleep(steady)
			fired := slices.DeleteFunc(p.fired(), func(name string) bool { return name == f.with })
			assert.Equal(t, []string{f.alert}, fired, p.now(firing))
		})
	}
}

// TestEveryAlertHasAFault: no alert is shipped that no platform has made fire.
func TestEveryAlertHasAFault(t *testing.T) {
	t.Parallel()
	shipped, fired := map[string]bool{}, map[string]bool{}
	for _, path := range ruleFiles {
		for _, group := range readRules(t, path).Groups {
			for _, rule := range group.Rules {
				if rule.Alert != "" {
					shipped[rule.Alert] = true
				}
			}
		}
	}
	for _, f := range faulty {
		fired[f.alert] = true
	}
	assert.Equal(t, shipped, fired)
}

// TestAlertsOnAHealthyFleet: no alert fires while a version that is as good as the old one is rolled out, a replica restarts,
// and replicas start in the usual time.
func TestAlertsOnAHealthyFleet(t *testing.T) {
	t.Parallel()
	good := rollout(warm)
	good.PrefillFactor = 1
	p := startPlatform(t, setting{warmup: warm, faults: []fleetsim.Fault{
		good, {Kind: fleetsim.Restart, Fleet: "chat", Replicas: []int{0}, From: 2 * warm},
	}})
	p.tellStart(t, 1, 0.5)
	p.awaitData(patience, `llmfleet_replica_outlier == 0`, `llmfleet_canary_verdict{measure="overall"} == 1`, `llmfleet_tenant_token_share_ratio`)
	p.tellStart(t, 2, 0.5)
	time.Sleep(time.Until(p.start.Add(4 * warm)))
	assert.Empty(t, p.fired(), p.now(firing))
}

// firing asks which alerts have fired so far.
const firing = `max_over_time(ALERTS{alertstate="firing"}[15m])`

// fired are the names of those.
func (p *platform) fired() (names []string) {
	p.t.Helper()
	for _, sample := range p.now("group by (alertname) (" + firing + ")") {
		names = append(names, string(sample.Metric["alertname"]))
	}
	slices.Sort(names)
	return names
}
