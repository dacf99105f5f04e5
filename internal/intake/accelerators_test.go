// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

const exporterPod = "dcgm-exporter-x7k2p"

// newInspected makes a reader of accelerators, and their store.
func newInspected(groupBy ...string) (*Reader, *fleet.Accelerators) {
	const lateness = 5 * time.Second
	grid := window.NewGrid(interval, 5*time.Minute, lateness)
	accelerators := fleet.NewAccelerators(fleet.AcceleratorOptions{Grid: grid, Lateness: lateness, MaxReplicas: 10})
	accelerators.Open(noon + 1)
	registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{grid}, Lateness: lateness, MaxReplicas: 10})
	registry.Open(noon + 1)
	return NewReader(Options{
		Dialects: dialect.Builtin(), Signals: []fleet.Signal{fleet.Waiting}, GroupBy: append(groupBy, "model_name"),
		Accelerators: accelerators,
	}, registry), accelerators
}

// exported is a page of dcgm-exporter, with what Kubernetes says of its target.
func exported(t *testing.T, page string, after time.Duration) pmetric.Metrics {
	t.Helper()
	md := scraped(t, page, after)
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr(resourcePod, exporterPod)
	return md
}

// replicaOf is the identity of the replica in a pod of the namespace llm.
func replicaOf(pod string) *fleet.Identity {
	return &fleet.Identity{Replica: "uid of " + pod, Where: []fleet.Label{{Name: keyNamespace, Value: "llm"}, {Name: keyPod, Value: pod}}}
}

// pageOfGPUs has a line for each of some samples: a metric without its prefix,
// labels, and a value.
func pageOfGPUs(samples ...string) string {
	var b strings.Builder
	typed := map[string]bool{}
	for _, s := range samples {
		metric, _, _ := strings.Cut(s, "{")
		if !typed[metric] {
			typed[metric] = true
			kind := "counter"
			if metric == "DEV_SM_CLOCK" || metric == "DEV_XID_ERRORS" {
				kind = "gauge"
			}
			fmt.Fprintf(&b, "# TYPE DCGM_FI_%s %s\n", metric, kind)
		}
		fmt.Fprintf(&b, "DCGM_FI_%s\n", s)
	}
	return b.String()
}

// TestStrainOfAPage reads the hand-written page of two GPUs, each of another
// pod, and what it might be half a minute later: honest labels, and labels that
// the scrape renamed since its own are called so, too.
func TestStrainOfAPage(t *testing.T) {
	text, err := os.ReadFile(pageFolder + "dcgm.prom")
	require.NoError(t, err)
	honored := string(text)
	renamed := strings.NewReplacer(
		`namespace="llm"`, `namespace="gpu-operator",exported_namespace="llm"`,
		`pod="qwen3-`, `pod="`+exporterPod+`",exported_pod="qwen3-`,
	).Replace(honored)
	later := strings.NewReplacer(
		"} 1980\n", "} 1200\n", // the clock of the first GPU, in MHz
		"} 2500000000\n", "} 8500000000\n", // power, 6 s more
		"} 300000000\n", "} 3300000000\n", // heat, 3 s more
		`err_code="0",err_msg="No Error"} 0`, `err_code="74",err_msg="NVLink Error"} 74`,
		"555500\",pci_bus_id=\"00000000:18:00.0\",device=\"nvidia0\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"gpu-node-1\","+
			"DCGM_FI_DRIVER_VERSION=\"570.124.06\",container=\"vllm\",namespace=\"llm\",pod=\"qwen3-0\"} 3\n",
		"555500\",container=\"vllm\",namespace=\"llm\",pod=\"qwen3-0\"} 8\n", // replays of PCIe and of NVLink, 5 more each; other labels may go
	)
	for name, page := range map[string]string{"honored": honored, "renamed": renamed} {
		t.Run(name, func(t *testing.T) {
			r, accelerators := newInspected()
			second := later.Replace(honored)
			if name == "renamed" {
				second = strings.NewReplacer(
					`namespace="llm"`, `namespace="gpu-operator",exported_namespace="llm"`,
					`pod="qwen3-`, `pod="another-exporter",exported_pod="qwen3-`, // the exporter was rolled out in between
				).Replace(second)
			}
			r.Read(exported(t, page, 1*time.Second))
			r.Read(exported(t, second, 31*time.Second))

			s := accelerators.Read(noon.Add(60*time.Second), replicaOf("qwen3-0"))
			assert.InDelta(t, 9.0/59, s.Throttled, 1e-9)
			assert.InDelta(t, (1980e6*30+1200e6*29)/59, s.Clock, 1)
			assert.Equal(t, 74, s.XID)
			assert.True(t, s.XIDHardware)
			assert.Equal(t, [3]uint64{5, 5, 0}, [3]uint64{s.NVLinkErrors, s.PCIeReplays, s.RemappedRows})

			s = accelerators.Read(noon.Add(60*time.Second), replicaOf("qwen3-1"))
			assert.True(t, s.ThrottleKnown)
			assert.Zero(t, s.Throttled, "it was told, and nothing held it back")
			assert.InDelta(t, 345e6, s.Clock, 1)
			assert.False(t, s.XIDChanged, "it had its XID before")
		})
	}
}

// TestGPUsOfNobody: those that no pod holds, or of which nobody says which.
func TestGPUsOfNobody(t *testing.T) {
	r, _ := newInspected()
	r.Read(exported(t, pageOfGPUs(
		`DEV_SM_CLOCK{gpu="0",UUID="GPU-a"} 139`,
		`DEV_SM_CLOCK{gpu="1",UUID="GPU-b",container="",namespace="",pod=""} 139`,
		`DEV_SM_CLOCK{gpu="2",UUID="GPU-c",namespace="gpu-operator",pod="`+exporterPod+`"} 139`,
		`DEV_SM_CLOCK{gpu="3",UUID="GPU-d",dra_claim_name="gpu-of-a",dra_claim_namespace="llm"} 1980`,
	), time.Second))
	assert.EqualValues(t, 3, r.Tally().Ignored(NoPod))
	assert.EqualValues(t, 1, r.Tally().Ignored(ClaimOnly))
	assert.True(t, ClaimOnly.Notable())
	assert.False(t, NoPod.Notable())
}

// TestGPUsOfClaims: where the exporter maps claims to pods, they are as any.
func TestGPUsOfClaims(t *testing.T) {
	r, accelerators := newInspected()
	r.Read(exported(t, pageOfGPUs(
		`DEV_SM_CLOCK{gpu="3",UUID="GPU-d",dra_claim_name="gpu-of-a",dra_claim_namespace="llm",namespace="llm",pod="a"} 1980`,
	), time.Second))
	assert.InDelta(t, 1980e6, accelerators.Read(noon.Add(interval), replicaOf("a")).Clock, 1)
	assert.Zero(t, r.Tally().Ignored(ClaimOnly))
}

// TestInstancesOfAGPU: a GPU that is cut up, or lent out in turns, is of several
// pods, and of each by itself.
func TestInstancesOfAGPU(t *testing.T) {
	r, accelerators := newInspected()
	for i, at := range []time.Duration{time.Second, 16 * time.Second} {
		replays := func(labels string, more int) string {
			return fmt.Sprintf(`DEV_PCIE_REPLAY_COUNTER{gpu="0",UUID="GPU-a",namespace="llm",%s} %d`, labels, 100+i*more)
		}
		r.Read(exported(t, pageOfGPUs(
			replays(`pod="a",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1"`, 3),
			replays(`pod="b",GPU_I_PROFILE="3g.40gb",GPU_I_ID="2"`, 5),
			replays(`pod="both",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"`, 7),
			replays(`pod="both",GPU_I_PROFILE="1g.10gb",GPU_I_ID="8"`, 7),
			replays(`pod="c",vgpu="0"`, 2),
			replays(`pod="c",vgpu="1"`, 2),
			replays(`pod="d",vgpu="2"`, 2),
		), at))
	}
	for pod, want := range map[string]uint64{"a": 3, "b": 5, "both": 14, "c": 2, "d": 2} {
		assert.Equal(t, want, accelerators.Read(noon.Add(interval), replicaOf(pod)).PCIeReplays, pod)
	}
	assert.EqualValues(t, 2, r.Tally().Ignored(Unspoken), "the second virtual GPU of c, twice")
	assert.Zero(t, r.Tally().Ignored(Reason(window.Duplicate)))
}

// TestHolderByUIDAndCluster: a pod's uid finds it without its name, and two
// clusters may have pods of one name.
func TestHolderByUIDAndCluster(t *testing.T) {
	r, accelerators := newInspected(keyCluster)
	for cluster, clock := range map[string]float64{"east": 1200, "west": 1980} {
		md := exported(t, pageOfGPUs(fmt.Sprintf(
			`DEV_SM_CLOCK{gpu="0",UUID="GPU-of-%s",pod_uid="u-%s",namespace="llm",pod="a"} %v`, cluster, cluster, clock)), time.Second)
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr(resourceCluster, cluster)
		r.Read(md)
	}
	end := noon.Add(interval)
	assert.InDelta(t, 1200e6, accelerators.Read(end, &fleet.Identity{Replica: "u-east"}).Clock, 1)
	west := replicaOf("a")
	west.Keys = []fleet.Label{{Name: keyCluster, Value: "west"}}
	assert.InDelta(t, 1980e6, accelerators.Read(end, west).Clock, 1)
}

// TestSuccessorOfAPod: a pod of a StatefulSet comes back under its name and gets
// its predecessor's GPU, which broke before.
func TestSuccessorOfAPod(t *testing.T) {
	r, accelerators := newInspected()
	for i, told := range []struct {
		uid string
		xid int
	}{{"u-1", 0}, {"u-1", 79}, {"u-2", 79}, {"u-2", 79}} {
		r.Read(exported(t, pageOfGPUs(fmt.Sprintf(`DEV_XID_ERRORS{UUID="GPU-a",pod_uid="%s",namespace="llm",pod="a-0"} %d`, told.uid, told.xid)),
			time.Duration(1+i)*time.Second))
	}
	end := noon.Add(interval)
	assert.True(t, accelerators.Read(end, &fleet.Identity{Replica: "u-1"}).XIDHardware)
	assert.Equal(t, fleet.Strain{Known: true}, accelerators.Read(end, &fleet.Identity{Replica: "u-2"}))
}

// TestBlanks: what the driver does not know is out of every range, in
// nanoseconds as well.
func TestBlanks(t *testing.T) {
	r, accelerators := newInspected()
	const labels = `{gpu="0",UUID="GPU-a",namespace="llm",pod="a"} `
	for _, value := range []string{"9223372036854775794", "9223372036854775792", "-1", "NaN", "+Inf"} {
		r.Read(exported(t, pageOfGPUs(
			"DEV_SM_CLOCK"+labels+value, "DEV_XID_ERRORS"+labels+value,
			"DEV_POWER_VIOLATION"+labels+value, "DEV_PCIE_REPLAY_COUNTER"+labels+value,
		), time.Second))
	}
	assert.EqualValues(t, 20, r.Tally().Ignored(Range))
	assert.Equal(t, fleet.Strain{}, accelerators.Read(noon.Add(interval), replicaOf("a")))
}

// TestMissedScrapeOfGPUs: a marker suspends the clock and takes no error back.
func TestMissedScrapeOfGPUs(t *testing.T) {
	r, accelerators := newInspected()
	page := func(at time.Duration, clock, xid int) pmetric.Metrics {
		return exported(t, pageOfGPUs(
			fmt.Sprintf(`DEV_SM_CLOCK{UUID="GPU-a",namespace="llm",pod="a"} %d`, clock),
			fmt.Sprintf(`DEV_XID_ERRORS{UUID="GPU-a",namespace="llm",pod="a",err_code="%d"} %d`, xid, xid),
		), at)
	}
	r.Read(page(1*time.Second, 1980, 0))
	r.Read(page(11*time.Second, 1980, 79))
	missed := page(21*time.Second, 0, 0)
	metrics := missed.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range metrics.Len() {
		for _, p := range metrics.At(i).Gauge().DataPoints().All() {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			p.SetDoubleValue(0)
		}
	}
	r.Read(missed)
	r.Read(page(26*time.Second, 1000, 79))
	s := accelerators.Read(noon.Add(interval), replicaOf("a"))
	assert.InDelta(t, (1980e6*20+1000e6*4)/24, s.Clock, 1)
	assert.Equal(t, 79, s.XID)
	assert.EqualValues(t, 2, r.Tally().Ignored(Unrecorded))
}

// TestNotAnAcceleratorsType: a name of the dialect's with another meaning.
func TestNotAnAcceleratorsType(t *testing.T) {
	r, _ := newInspected()
	md, m := pageOf("i", "DCGM_FI_DEV_SM_CLOCK")
	stamp(m.SetEmptyHistogram().DataPoints().AppendEmpty(), time.Second)
	r.Read(md)
	assert.EqualValues(t, 1, r.Tally().Ignored(Type))
}

// TestPreferredNameOfAGPU: another dialect may know several names for one thing.
func TestPreferredNameOfAGPU(t *testing.T) {
	dialects, err := dialect.Parse("other.yaml", []byte(`
engine: other
component: gpu
labels: {pod: [pod], namespace: [namespace], replica: [id]}
signals:
  pcie_replays: {type: counter, names: [replays, retries]}
`))
	require.NoError(t, err)
	r, accelerators := newInspected()
	r = NewReader(Options{Dialects: dialects, GroupBy: []string{"model_name"}, Accelerators: accelerators}, r.registry)
	for i, at := range []time.Duration{time.Second, 2 * time.Second} {
		r.Read(scraped(t, fmt.Sprintf("# TYPE replays counter\nreplays{id=\"0\",namespace=\"llm\",pod=\"a\"} %d\n"+
			"# TYPE retries counter\nretries{id=\"0\",namespace=\"llm\",pod=\"a\"} %d\n", 4*i, 4*i), at))
	}
	assert.EqualValues(t, 4, accelerators.Read(noon.Add(interval), replicaOf("a")).PCIeReplays)
	assert.EqualValues(t, 2, r.Tally().Ignored(Unspoken))
}

// TestAcceleratorsAreBoundedByReplicas: the point that finds no room is counted.
func TestAcceleratorsAreBoundedByReplicas(t *testing.T) {
	r, _ := newInspected()
	const limit = 10 * 8
	clocks := make([]string, limit+1)
	for i := range clocks {
		clocks[i] = fmt.Sprintf(`DEV_SM_CLOCK{UUID="GPU-%d",namespace="llm",pod="p-%d"} 1980`, i, i)
	}
	r.Read(exported(t, pageOfGPUs(clocks[:limit]...), time.Second))
	assert.Zero(t, r.Tally().Ignored(Limit))
	r.Read(exported(t, pageOfGPUs(clocks...), 2*time.Second))
	assert.EqualValues(t, 1, r.Tally().Ignored(Limit))
}

// TestAcceleratorsAreNotAskedFor: without a store they are as any metrics of a
// target that is no engine.
func TestAcceleratorsAreNotAskedFor(t *testing.T) {
	r := newReader()
	r.Read(exported(t, "# TYPE up gauge\nup 1\n"+pageOfGPUs(`DEV_SM_CLOCK{UUID="GPU-a",namespace="llm",pod="a"} 1980`), time.Second))
	r.Tally().Observed(func(engine string, signal fleet.Signal, _ uint64) { assert.NotEqual(t, "dcgm", engine, signal) })
	assert.Zero(t, r.Tally().Ignored(NoSignals))

	r, _ = newInspected()
	r.Read(exported(t, "# TYPE up gauge\nup 1\n"+pageOfGPUs(`DEV_SM_CLOCK{UUID="GPU-a",namespace="llm",pod="a"} 1980`), time.Second))
	var points uint64
	r.Tally().Observed(func(engine string, signal fleet.Signal, n uint64) {
		if engine == "dcgm" && signal == fleet.SMClock {
			points = n
		}
	})
	assert.EqualValues(t, 1, points)
	assert.Zero(t, r.Tally().Ignored(NoSignals), "an exporter is a target without engine metrics by right")
}

// TestGPUsAreReadWhileReplicasAreJudged: nothing is lost and nothing counted
// twice. The race detector watches.
func TestGPUsAreReadWhileReplicasAreJudged(t *testing.T) {
	const nodes, pages = 6, 50
	r, accelerators := newInspected()
	var reading sync.WaitGroup
	for node := range nodes {
		var all []pmetric.Metrics
		for page := range pages {
			all = append(all, exported(t, pageOfGPUs(
				fmt.Sprintf(`DEV_PCIE_REPLAY_COUNTER{UUID="GPU-%d",namespace="llm",pod="shared"} %d`, node, 3*page),
				fmt.Sprintf(`DEV_SM_CLOCK{UUID="GPU-%d",namespace="llm",pod="shared"} %d`, node, 1500+node),
			), time.Second+time.Duration(page)*time.Millisecond))
		}
		reading.Go(func() {
			for _, md := range all {
				r.Read(md)
			}
		})
	}
	done := make(chan struct{})
	go func() { reading.Wait(); close(done) }()
	for judged := false; !judged; {
		select {
		case <-done:
			judged = true
		default:
		}
		accelerators.Read(noon.Add(interval), replicaOf("shared"))
		accelerators.Sweep(noon)
	}
	s := accelerators.Read(noon.Add(interval), replicaOf("shared"))
	assert.EqualValues(t, nodes*3*(pages-1), s.PCIeReplays)
	assert.InDelta(t, 1500e6, s.Clock, 1)
}
