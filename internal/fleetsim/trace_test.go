// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func traceFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	file, err := os.Create(path)
	require.NoError(t, err)
	if filepath.Ext(name) == ".gz" {
		packed := gzip.NewWriter(file)
		_, err = packed.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, packed.Close())
	} else {
		_, err = file.WriteString(text)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	return path
}

// readAll opens a trace as a scenario would and drains it.
func readAll(t *testing.T, a Arrivals) []arrival {
	t.Helper()
	f := Fleet{Name: "f", Arrivals: a, Prompt: Tokens{Mean: 40}, Output: Tokens{Mean: 8}}
	f.setDefaults()
	source, _, err := newArrivals(&f, nil, 1)
	require.NoError(t, err)
	var all []arrival
	for a, ok := source.next(); ok; a, ok = source.next() {
		all = append(all, a)
	}
	return all
}

const azureText = `TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.5000000,374,44
2023-11-16 18:15:48.7500000,879,55
2023-11-16 18:15:47.5000000,12,0
`

func TestAzureTrace(t *testing.T) {
	want := []arrival{{at: 0, prompt: 374, output: 44}, {at: 1, prompt: 12, output: 1}, {at: 2.25, prompt: 879, output: 55}}
	for _, name := range []string{"trace.csv", "trace.csv.gz"} {
		assert.Equal(t, want, readAll(t, Arrivals{Process: Trace, Format: Azure, File: traceFile(t, name, azureText)}), name)
	}
	twice := readAll(t, Arrivals{Process: Trace, Format: Azure, Speed: 2, File: traceFile(t, "t.csv", azureText)})
	assert.Equal(t, arrival{at: 1.125, prompt: 879, output: 55}, twice[2])
}

func TestMooncakeTrace(t *testing.T) {
	file := traceFile(t, "trace.jsonl", `{"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}
{"timestamp": 3250, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}
`)
	assert.Equal(t, []arrival{{at: 0, prompt: 6758, output: 500}, {at: 0.25, prompt: 7322, output: 490}}, readAll(t, Arrivals{Process: Trace, Format: Mooncake, File: file}))
}

func TestServeGenTrace(t *testing.T) {
	file := traceFile(t, "rates.csv", `client,t_s,rate_rps,cv,pattern
0,600,20,0.5,Gamma
1,1200,5,2,Weibull
1,600,0,1,Gamma
`)
	all := readAll(t, Arrivals{Process: Trace, Format: ServeGen, File: file})
	var early, late int
	for i, a := range all {
		if a.at < 600 {
			early++
		} else {
			late++
		}
		assert.Positive(t, a.prompt)
		assert.Positive(t, a.output)
		assert.True(t, i == 0 || a.at >= all[i-1].at)
	}
	assert.InEpsilon(t, 12000, early, 0.03, "20 a second for ten minutes")
	assert.InEpsilon(t, 3000, late, 0.15, "5 a second, in bursts")
}

func TestTraceMistakes(t *testing.T) {
	for text, want := range map[string]struct {
		format TraceFormat
		text   string
	}{
		"a,b\n1,2\n":             {Azure, "first line must be TIMESTAMP,ContextTokens,GeneratedTokens"},
		azureText + "noon,1,2\n": {Azure, "row 5"},
		"{\"timestamp\": 0}\n{":  {Mooncake, "request 2"},
		" ":                      {Mooncake, "holds no requests"},
		"client,t_s,rate_rps,cv,pattern\n0,0,1,1,Uniform\n": {ServeGen, `pattern is "Uniform"`},
		"client,t_s,rate_rps,cv,pattern\n0,0,x,1,Gamma\n":   {ServeGen, "row 2"},
	} {
		f := Fleet{Arrivals: Arrivals{Process: Trace, Format: want.format, File: traceFile(t, "t", text)}}
		f.setDefaults()
		_, _, err := newArrivals(&f, nil, 1)
		require.ErrorContains(t, err, want.text, text)
	}
	_, err := New(Scenario{Fleets: []Fleet{{Name: "f", Engine: VLLM, ModelName: "m", Arrivals: Arrivals{Process: Trace, Format: Azure, File: "gone.csv"}}}}, start)
	require.ErrorContains(t, err, "gone.csv")
}

func TestTracePathsCountFromTheScenario(t *testing.T) {
	trace := traceFile(t, "trace.csv", azureText)
	scenario := filepath.Join(filepath.Dir(trace), "scenario.yaml")
	text := "fleets: [{engine: vllm, model_name: m, arrivals: {process: trace, format: azure, file: trace.csv}}]"
	require.NoError(t, os.WriteFile(scenario, []byte(text), 0o600))
	s, err := Load(scenario)
	require.NoError(t, err)
	sim, err := New(s, start)
	require.NoError(t, err)
	sim.AdvanceTo(time.Minute)
	assert.Equal(t, uint64(3), sim.Engines()[0].Snapshot().TTFT.Count)
}

func TestArrivalRateAndBurstiness(t *testing.T) {
	// The index of dispersion of counts tends to the squared variation of the
	// gaps: 1 for Poisson, 4 for gamma of shape 1/4, 1/4 for shape 4.
	for arrivals, want := range map[string]float64{"rate: 50": 1, "rate: 50, process: gamma, burstiness: 0.25": 4, "rate: 50, process: gamma, burstiness: 4": 0.25} {
		s, err := Parse([]byte(strings.Replace(oneVLLM, "rate: 30", arrivals, 1)))
		require.NoError(t, err)
		source, _, err := newArrivals(&s.Fleets[0], nil, 3)
		require.NoError(t, err)
		counts := make([]float64, 2000)
		for a, _ := source.next(); a.at < 2000; a, _ = source.next() {
			counts[int(a.at)]++
		}
		mean, sd := moments(counts)
		assert.InEpsilon(t, 50, mean, 0.03, arrivals)
		assert.InEpsilon(t, want, sd*sd/mean, 0.15, arrivals)
	}
}
