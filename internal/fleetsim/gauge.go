// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import "math"

// rateMeter measures a rate over the newest whole second.
type rateMeter struct {
	second, now, past float64
}

func (m *rateMeter) add(at, n float64) {
	m.roll(at)
	m.now += n
}

// roll moves to the second of at and returns the rate of the one before it.
func (m *rateMeter) roll(at float64) float64 {
	switch second := math.Floor(at); second - m.second {
	case 0:
	case 1:
		m.second, m.past, m.now = second, m.now, 0
	default:
		m.second, m.past, m.now = second, 0, 0
	}
	return m.past
}

// refresh writes the gauges of this moment, and what follows from counters, into the engine's values.
func (e *engine) refresh() {
	v, limits := &e.values, &e.fleet.Limits
	held, capacity := float64(e.held), float64(limits.KVCacheTokens)
	v[one], v[unset] = 1, -1
	v[running] = float64(len(e.running))
	v[waiting] = float64(len(e.waiting))
	v[kvUsed] = held
	v[kvFree] = capacity - held
	v[kvUsage] = held / capacity
	v[kvCapacity] = capacity
	v[throughput] = e.rate.roll(e.now)
	v[newTokenRatio] = 0.7
	v[contextLength] = float64(limits.MaxModelLen)
	v[pageSize] = kvPageTokens
	v[pages] = math.Floor(capacity / kvPageTokens)
	v[pagesUsed] = min(math.Ceil(held/kvPageTokens), v[pages])
	v[pagesFree] = v[pages] - v[pagesUsed]
	v[pageUsage] = share(v[pagesUsed], v[pages])
	v[hitShare] = share(v[cacheFound], v[cacheQueried])
	v[pageHitShare] = share(v[pagesReused], v[pagesReused]+v[pagesMissed])
	v[processed] = v[promptTokens] + v[generated]
	e.refreshBatch()
	e.refreshProcess()
}

func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// refreshBatch writes what the batch is made of.
func (e *engine) refreshBatch() {
	v, limits := &e.values, &e.fleet.Limits
	v[decodeLengths], v[prefilling] = 0, 0
	for _, r := range e.running {
		if r.todo > 0 {
			v[prefilling]++
		} else {
			v[decodeLengths] += float64(r.prompt + r.made)
		}
	}
	v[decoding] = v[running] - v[prefilling]
	v[maxBatch] = float64(limits.MaxNumSeqs)
	v[maxBatchTokens] = float64(limits.MaxNumBatchedTokens)
	v[batchFill] = v[running] / v[maxBatch]
	v[prefillFill] = v[prefilling] / v[maxBatch]
}

// refreshProcess writes what the Python runtime would say of itself: made up,
// but rising and falling with the work.
func (e *engine) refreshProcess() {
	v := &e.values
	v[processStart] = e.epoch + e.started
	v[clock] = e.epoch + e.now
	v[createdAt] = e.epoch + e.ready
	v[firstFinishedAt] = e.epoch + e.firstFinished
	v[processCPU] = math.Round(100*(60+0.6*v[busySeconds])) / 100
	v[processMemory] = 1.6e9 + 4096*math.Min(v[finished], 50_000)
	v[virtualMemory] = 2.7378753536e10
	v[openFiles] = 41 + v[running] + v[waiting]
	v[maxFiles] = 65535
	v[gcYoung] = 2000 + math.Floor(v[steps]/40)
	v[gcMiddle] = math.Floor(v[gcYoung] / 11)
	v[gcOld] = math.Floor(v[gcMiddle] / 20)
	v[gcYoungObjects] = 5 * v[gcYoung]
	v[gcMiddleObjects] = 11 * v[gcMiddle]
	v[gcOldObjects] = 98 * v[gcOld]
	v[weightsSeconds], v[cacheSeconds], v[graphSeconds] = 31.5, 2.25, 11.75
	v[schedulerSeconds], v[tokenizerSeconds] = 52.5, loadingTime
	v[weightsGB], v[cacheGB], v[graphGB], v[spareGB] = 27.5, 41.25, 1.5, 7.75
	v[gpuMemory] = 1e9 * (v[weightsGB] + v[cacheGB] + v[graphGB])
}
