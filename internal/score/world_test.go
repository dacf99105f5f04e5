// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/window"
)

// tuningSeed is none that a card is made with.
const tuningSeed = 7

func TestFramesTellTheWindowAndTheNewestPane(t *testing.T) {
	layout := new(window.Layouts).Intern([]float64{1})
	f := newFrames(1, 1, []told{{fleet.TTFT, layout}})
	for i := range uint64(7) {
		f.begin()
		f.tell(0, 0, 0, i, 10*i)
		f.tellSum(0, 0, 0, float64(i))
	}
	m := &f.fleets[0].Members[0]
	assert.Equal(t, []uint64{2 + 3 + 4 + 5 + 6, 20 + 30 + 40 + 50 + 60}, m.Told[0].Counts)
	assert.Equal(t, 20.0, m.Told[0].Sum)
	assert.Equal(t, []uint64{6, 60}, m.Recent[0].Counts)
	assert.Equal(t, 6.0, m.Recent[0].Sum)
	assert.Equal(t, window.Instant(7*time.Minute), f.fleets[0].End)
}

func TestASmallDrawnWorldRunsThroughAlarmAndPeers(t *testing.T) {
	plan := smallFleets("test", 2, 6, warmup+60).endSlow(spellPanes, 1, 1, 3)
	o, err := drawnWorld(plan, tuningSeed).run()
	require.NoError(t, err)
	assert.Equal(t, 2, found(o.delays[ours]))
	assert.Equal(t, 2, found(o.delays[plainRatio]))
	assert.Equal(t, 120, o.panes)
	assert.Equal(t, 2*6*60+2*5*spellPanes, o.healthyPanes)

	again, err := drawnWorld(plan, tuningSeed).run()
	require.NoError(t, err)
	assert.Equal(t, o, again)
}

func TestReplicasDrawnSlowerThanToleratedAreNeverHealthy(t *testing.T) {
	plan := smallFleets("test", 1, 50, 1)
	plan.noise = 0.5 // exp(0.5·z) is above 1.25 for z above 0.446: a third of all
	player, err := drawnWorld(plan, tuningSeed).start()
	require.NoError(t, err)
	assert.InDelta(t, 50*0.328, len(player.truth().never), 12)
}

func TestSpellsOfALargeFleetAreFewAtATime(t *testing.T) {
	for _, s := range []scale{aDay, aWeek} {
		p := s.largeFleet("test", 1000, 60, 1.5, 2)
		at := make([]int, p.panes)
		of := map[float64]int{}
		last := map[int]int{}
		for _, spell := range p.spells {
			of[spell.factor]++
			assert.GreaterOrEqual(t, spell.replica, 1000)
			assert.GreaterOrEqual(t, spell.from-last[spell.replica], settled)
			last[spell.replica] = spell.to
			for pane := spell.from; pane < spell.to; pane++ {
				at[pane]++
			}
		}
		assert.Equal(t, map[float64]int{1.5: 60 * s.rounds, 2: 60 * s.rounds}, of)
		for _, slow := range at {
			assert.LessOrEqual(t, slow, 10)
		}
	}
}

// onePlayed is a world of four engines of which the last is slow from the pane.
func onePlayed(t *testing.T, from int) *world {
	t.Helper()
	s, err := fleetsim.Parse(fmt.Appendf(nil, `
fleets:
  - {name: f, engine: vllm, model_name: m, replicas: 4, nodes: [a, b], revisions: [r], arrivals: {rate: 8}}
faults:
  - {kind: restart, replicas: [3], from: %dm}
`, from))
	require.NoError(t, err)
	return playedWorld("test", s, 20, causeOf(fleetsim.Restart, 0))
}

func TestPlayedEnginesTellTheirFrames(t *testing.T) {
	player, err := onePlayed(t, 8).start()
	require.NoError(t, err)
	assert.Equal(t, []spell{{place: place{0, 3}, from: 8, to: 20}}, player.truth().spells)
	f := newFrames(1, 4, player.tells())
	var finished, before uint64
	started := 0.0
	for pane := range 10 {
		f.begin()
		player.play(f)
		frame := &f.fleets[0]
		m := &frame.Members[3]
		all := frame.Index(fleet.Finished)
		finished += m.Recent[all].Counts[0]
		if pane == 6 {
			before, started = finished, m.Started
		}
	}
	m := &f.fleets[0].Members[3]
	assert.InDelta(t, 7*2*60, before, 140, "two requests a second, seven minutes long")
	assert.InDelta(t, 10*2*60, finished, 170, "what came after a restart is added")
	assert.Greater(t, m.Started, started)
	assert.Equal(t, "b", m.Identity.Node)
	assert.Equal(t, []fleet.Label{{Name: "model_revision", Value: "r"}}, m.Identity.Variant)
	lengths := &m.Told[f.fleets[0].Index(fleet.PromptLength)]
	assert.InEpsilon(t, 512, lengths.Sum/float64(lengths.Observations()), 0.2, "tokens of a prompt")
	assert.InDelta(t, 2.0*128*0.011, m.Load[fleet.LoadOf(fleet.Running)].Mean, 1.5, "Little's law: 128 steps of some 11 ms each")
}

func TestTracesArePlayedFromTheirFolder(t *testing.T) {
	folder := t.TempDir()
	for _, trace := range traces {
		path := filepath.Join(folder, trace.file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		text := map[fleetsim.TraceFormat]string{
			fleetsim.Azure:    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,374,44\n",
			fleetsim.Mooncake: `{"timestamp": 0, "input_length": 10, "output_length": 5}`,
			fleetsim.ServeGen: "client,t_s,rate_rps,cv,pattern\n0,0,1,1,Gamma\n",
		}[trace.format]
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o600))
	}
	player, err := traceWorld(folder, tuningSeed).worlds[0].start()
	require.NoError(t, err)
	f := newFrames(len(traces), traceReplicas, player.tells())
	f.begin()
	player.play(f)
	for i := range f.fleets {
		var n uint64
		for m := range f.fleets[i].Members {
			n += f.fleets[i].Members[m].Recent[0].Observations()
		}
		assert.Positive(t, n, traces[i].name)
	}

	_, err = traceWorld(t.TempDir(), tuningSeed).worlds[0].start()
	assert.Error(t, err, "there is no such trace")
}

func TestEveryCauseHasItsScenario(t *testing.T) {
	all, err := causes(1, tuningSeed)
	require.NoError(t, err)
	for i, w := range all.worlds {
		player, err := w.start()
		require.NoError(t, err, w.name)
		require.NotEmpty(t, player.truth().spells, w.name)
		for _, s := range player.truth().spells {
			assert.Equal(t, causeWorlds[i].cause, s.cause, w.name)
			assert.Less(t, s.from+20, causePanes, w.name)
		}
	}
}
