// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

// Signal is an engine-independent measure. What each engine, router, gateway
// or exporter calls it, and in which unit, is data of package dialect.
type Signal uint8

// The signals of serving: of an engine, or of a router or gateway in front.
const (
	TTFT               Signal = iota // time to first token
	ITL                              // inter-token latency; per decode step (vLLM) or token (SGLang)
	TPOT                             // time per output token; mean of one request
	E2E                              // end-to-end request latency
	QueueTime                        // time from arrival to first scheduling
	KVTransferTime                   // time to move one request's KV cache
	RouteTime                        // time a router takes to choose a replica
	Waiting                          // requests queued
	Running                          // requests in the batch
	KVUsage                          // share of the KV cache in use
	PrefixHits                       // prompt tokens found in the prefix cache
	PrefixQueries                    // prompt tokens looked up in the prefix cache
	PrefixBlockHits                  // blocks found in the prefix cache, of engines that count blocks
	PrefixBlockQueries               // blocks looked up in the prefix cache
	PromptTokens                     // prompt tokens, cached ones included
	GenerationTokens                 // output tokens
	PromptLength                     // prompt tokens of one request
	OutputLength                     // output tokens of one request
	Finished                         // requests that ended, failed ones included, by reason
	Errors                           // requests that failed, by reason
	Preemptions                      // requests pushed back to the queue
	KVTransferBytes                  // KV cache moved
	KVTransferFailures               // moves of KV cache that failed
	StartupTime                      // how long a stage of the start took
)

// The signals of accelerators and of the links between them.
const (
	GPUUsage          = StartupTime + 1 + iota // share of time in which any kernel ran
	GPUActive                                  // share of time in which the compute engine was busy
	TensorActive                               // share of time in which tensor cores were busy
	DRAMActive                                 // share of time in which memory was read or written
	GPUMemoryUsed                              // framebuffer in use
	GPUMemoryFree                              // framebuffer free
	GPUTemperature                             // of the chip
	MemoryTemperature                          // of its memory
	GPUPower                                   // power drawn
	GPUEnergy                                  // energy drawn
	SMClock                                    // clock of the multiprocessors
	MemoryClock                                // clock of the memory
	ThrottleTime                               // time slowed down for power, heat or another limit
	XIDCode                                    // code of the last XID error
	RemappedRows                               // memory rows remapped
	PCIeReplays                                // PCIe retransmissions
	NVLinkErrors                               // errors on NVLink
	LinkReceived                               // received over the fabric
	LinkTransmitted                            // sent over the fabric
	LinkErrors                                 // errors on the fabric
	LinkDowns                                  // times that a link of the fabric went down
)

// The signals of Kubernetes and of what scales.
const (
	ReplicasDesired   = LinkDowns + 1 + iota // replicas that a workload asks for
	ReplicasReady                            // replicas that are ready
	PodCreated                               // when a pod was created
	PodScheduled                             // when it was bound to a node
	PodInitialized                           // when its init containers were done
	PodStarted                               // when its kubelet took it on
	PodReady                                 // when it became ready
	ScalerDesired                            // replicas that a scaler wants
	ScalerCurrent                            // replicas that it counts
	ScalerMin                                // fewest replicas that it may ask for
	ScalerMax                                // most replicas that it may ask for
	ScalerValue                              // the value that a trigger reads
	ScalerErrors                             // failures of a scaler to read or to act
	PodsUnschedulable                        // pods that fit no node
	NodesReady                               // nodes that are ready
	NodesCreated                             // nodes asked for
	ScaleUpFailures                          // nodes that were asked for in vain
	PodStartupTime                           // time from a pod's creation to its running
)

// The signals of what a gateway grants its tenants.
const (
	Throttled       = PodStartupTime + 1 + iota // requests turned away because a tenant had used up its rate or budget
	BudgetRemaining                             // what is left of a budget, in its own currency
	BudgetLimit                                 // the whole of that budget
)

// Qualities is how many measures of quality may be named: how good answers are,
// in whatever unit somebody judges them.
const Qualities = 8

const (
	quality     = BudgetLimit + 1
	SignalCount = quality + Qualities // how many signals there are; not a signal
)

// Quality is the signal of the measure of quality with number i, from 0.
func Quality(i int) Signal { return quality + Signal(i) } //nolint:gosec // below Qualities

// Kind is how a signal is told: as a histogram of durations or sizes, as a
// level, or as a total that grows.
type Kind uint8

// The kinds. Histograms and counters are cumulative or differences.
const (
	Histogram Kind = iota
	Gauge
	Counter
	KindCount // how many kinds there are; not a kind
)

var kindNames = [KindCount]string{Histogram: "histogram", Gauge: "gauge", Counter: "counter"}

// String is the kind's name in a dialect file.
func (k Kind) String() string {
	if k >= KindCount {
		return "unknown"
	}
	return kindNames[k]
}

// trait is what is true of a signal whoever tells it.
type trait struct {
	name string
	kind Kind
	unit string  // UCUM
	most float64 // of a gauge; the least is 0, and 0 here means no bound
}

// mostRequests is more than any engine can hold; a clock read for a count lies
// above it.
const mostRequests = 1_000_000

var traits = [SignalCount]trait{
	TTFT:               {"ttft", Histogram, "s", 0},
	ITL:                {"itl", Histogram, "s", 0},
	TPOT:               {"tpot", Histogram, "s", 0},
	E2E:                {"e2e", Histogram, "s", 0},
	QueueTime:          {"queue_time", Histogram, "s", 0},
	KVTransferTime:     {"kv_transfer_time", Histogram, "s", 0},
	RouteTime:          {"route_time", Histogram, "s", 0},
	Waiting:            {"waiting", Gauge, "{request}", mostRequests},
	Running:            {"running", Gauge, "{request}", mostRequests},
	KVUsage:            {"kv_usage", Gauge, "1", 1},
	PrefixHits:         {"prefix_hits", Counter, "{token}", 0},
	PrefixQueries:      {"prefix_queries", Counter, "{token}", 0},
	PrefixBlockHits:    {"prefix_block_hits", Counter, "{block}", 0},
	PrefixBlockQueries: {"prefix_block_queries", Counter, "{block}", 0},
	PromptTokens:       {"prompt_tokens", Counter, "{token}", 0},
	GenerationTokens:   {"generation_tokens", Counter, "{token}", 0},
	PromptLength:       {"prompt_length", Histogram, "{token}", 0},
	OutputLength:       {"output_length", Histogram, "{token}", 0},
	Finished:           {"finished", Counter, "{request}", 0},
	Errors:             {"errors", Counter, "{request}", 0},
	Preemptions:        {"preemptions", Counter, "{request}", 0},
	KVTransferBytes:    {"kv_transfer_bytes", Counter, "By", 0},
	KVTransferFailures: {"kv_transfer_failures", Counter, "{transfer}", 0},
	StartupTime:        {"startup_time", Gauge, "s", 0},

	GPUUsage:          {"gpu_usage", Gauge, "1", 1},
	GPUActive:         {"gpu_active", Gauge, "1", 1},
	TensorActive:      {"tensor_active", Gauge, "1", 1},
	DRAMActive:        {"dram_active", Gauge, "1", 1},
	GPUMemoryUsed:     {"gpu_memory_used", Gauge, "By", 0},
	GPUMemoryFree:     {"gpu_memory_free", Gauge, "By", 0},
	GPUTemperature:    {"gpu_temperature", Gauge, "Cel", 200},
	MemoryTemperature: {"memory_temperature", Gauge, "Cel", 200},
	GPUPower:          {"gpu_power", Gauge, "W", 100_000},
	GPUEnergy:         {"gpu_energy", Counter, "J", 0},
	SMClock:           {"sm_clock", Gauge, "Hz", 1e11},
	MemoryClock:       {"memory_clock", Gauge, "Hz", 1e11},
	ThrottleTime:      {"throttle_time", Counter, "s", 0},
	XIDCode:           {"xid_code", Gauge, "{code}", 10_000},
	RemappedRows:      {"remapped_rows", Counter, "{row}", 0},
	PCIeReplays:       {"pcie_replays", Counter, "{replay}", 0},
	NVLinkErrors:      {"nvlink_errors", Counter, "{error}", 0},
	LinkReceived:      {"link_received", Counter, "By", 0},
	LinkTransmitted:   {"link_transmitted", Counter, "By", 0},
	LinkErrors:        {"link_errors", Counter, "{error}", 0},
	LinkDowns:         {"link_downs", Counter, "{event}", 0},

	ReplicasDesired:   {"replicas_desired", Gauge, "{replica}", mostRequests},
	ReplicasReady:     {"replicas_ready", Gauge, "{replica}", mostRequests},
	PodCreated:        {"pod_created", Gauge, "s", 0},
	PodScheduled:      {"pod_scheduled", Gauge, "s", 0},
	PodInitialized:    {"pod_initialized", Gauge, "s", 0},
	PodStarted:        {"pod_started", Gauge, "s", 0},
	PodReady:          {"pod_ready", Gauge, "s", 0},
	ScalerDesired:     {"scaler_desired", Gauge, "{replica}", mostRequests},
	ScalerCurrent:     {"scaler_current", Gauge, "{replica}", mostRequests},
	ScalerMin:         {"scaler_min", Gauge, "{replica}", mostRequests},
	ScalerMax:         {"scaler_max", Gauge, "{replica}", mostRequests},
	ScalerValue:       {"scaler_value", Gauge, "1", 0},
	ScalerErrors:      {"scaler_errors", Counter, "{error}", 0},
	PodsUnschedulable: {"pods_unschedulable", Gauge, "{pod}", mostRequests},
	NodesReady:        {"nodes_ready", Gauge, "{node}", mostRequests},
	NodesCreated:      {"nodes_created", Counter, "{node}", 0},
	ScaleUpFailures:   {"scale_up_failures", Counter, "{failure}", 0},
	PodStartupTime:    {"pod_startup_time", Histogram, "s", 0},

	Throttled:       {"throttled", Counter, "{request}", 0},
	BudgetRemaining: {"budget_remaining", Gauge, "{credit}", 0},
	BudgetLimit:     {"budget_limit", Gauge, "{credit}", 0},

	quality:     {"quality_1", Histogram, "{score}", 0},
	quality + 1: {"quality_2", Histogram, "{score}", 0},
	quality + 2: {"quality_3", Histogram, "{score}", 0},
	quality + 3: {"quality_4", Histogram, "{score}", 0},
	quality + 4: {"quality_5", Histogram, "{score}", 0},
	quality + 5: {"quality_6", Histogram, "{score}", 0},
	quality + 6: {"quality_7", Histogram, "{score}", 0},
	quality + 7: {"quality_8", Histogram, "{score}", 0},
}

// String is the signal's name as it stands in configuration and in the
// attribute `signal` of derived metrics.
func (s Signal) String() string {
	if s >= SignalCount {
		return "unknown"
	}
	return traits[s].name
}

// Kind is how the signal is told.
func (s Signal) Kind() Kind { return traits[s].kind }

// Unit is the signal's canonical unit (UCUM).
func (s Signal) Unit() string { return traits[s].unit }

// IsLatency tells whether the signal is a latency that a request met in an
// engine.
func (s Signal) IsLatency() bool { return s <= QueueTime }

// IsQuality tells whether the signal is a measure of quality, which no dialect
// knows.
func (s Signal) IsQuality() bool { return s >= quality && s < SignalCount }

// ParseSignal is the inverse of String, of signals that dialects know.
func ParseSignal(name string) (Signal, bool) {
	for s := range quality {
		if traits[s].name == name {
			return s, true
		}
	}
	return 0, false
}

// unbounded is where a value stops being one: exporters send 2^63 less a little
// for what they do not know.
const unbounded = 1 << 62

// InRange tells whether the signal can have the value, in its canonical unit.
func (s Signal) InRange(v float64) bool {
	most := traits[s].most
	if most == 0 {
		most = unbounded
	}
	if s == BudgetRemaining && v < 0 {
		return v >= -most // more was spent than there was
	}
	return v >= 0 && v <= most // NaN is in no range
}
