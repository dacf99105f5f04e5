// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// plain leaves all that it can to defaults; the name's default is its
// model_name, which says so.
const plain = `
fleets:
  - engine: vllm
    model_name: model_name
    arrivals:
      rate: 1
`

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// keysTable is a table of keys: what stands in the first column, and its rows.
type keysTable struct {
	keys []string
	rows map[string]string
}

func keysTables(text string) []keysTable {
	var tables []keysTable
	for part := range strings.SplitSeq(text, "| key | default | meaning |\n|---|---|---|\n") {
		table := keysTable{rows: map[string]string{}}
		for line := range strings.Lines(part) {
			key, row, found := strings.Cut(strings.TrimPrefix(line, "| `"), "` |")
			if !strings.HasPrefix(line, "| `") || !found {
				break
			}
			table.keys = append(table.keys, key)
			table.rows[key] = row
		}
		tables = append(tables, table)
	}
	return tables[1:] // the first part is the text before all tables
}

// documented finds the table whose keys are a struct's.
func documented(t *testing.T, tables []keysTable, of reflect.Type) keysTable {
	t.Helper()
	var keys []string
	for field := range of.Fields() {
		keys = append(keys, field.Tag.Get("yaml"))
	}
	for _, table := range tables {
		if assert.ObjectsAreEqual(keys, table.keys) {
			return table
		}
	}
	require.Failf(t, "README.md is behind", "no table has the keys of %s, in this order: %v", of, keys)
	return keysTable{}
}

// checkStruct looks up every key of v, and where v has a value that the
// scenario did not give, this default.
func checkStruct(t *testing.T, tables []keysTable, v reflect.Value) {
	t.Helper()
	table := documented(t, tables, v.Type())
	for i := range v.NumField() {
		key, field := v.Type().Field(i).Tag.Get("yaml"), v.Field(i)
		if field.Kind() == reflect.Pointer && !field.IsNil() {
			field = field.Elem()
		}
		switch {
		case field.Kind() == reflect.Struct:
			checkStruct(t, tables, field)
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			for j := range field.Len() {
				checkStruct(t, tables, field.Index(j))
			}
		case !field.IsZero() && !strings.Contains(plain, " "+key+": "):
			assert.Contains(t, table.rows[key], fmt.Sprintf("`%v`", field.Interface()), "default of %s", key)
		}
	}
}

func TestReadmeHasEveryKeyAndItsDefault(t *testing.T) {
	scenario, err := fleetsim.Parse([]byte(plain))
	require.NoError(t, err)
	tables := keysTables(readme(t))
	checkStruct(t, tables, reflect.ValueOf(scenario))
	documented(t, tables, reflect.TypeFor[fleetsim.Tenant]())
	documented(t, tables, reflect.TypeFor[fleetsim.Fault]())
	assert.Len(t, tables, 9, "scenario, fleet, limits, latency, tokens, arrivals, tenants, tenant, fault")
}

func TestReadmeHasEveryVersion(t *testing.T) {
	for engine, versions := range map[fleetsim.EngineKind][]fleetsim.Version{
		fleetsim.VLLM:        {fleetsim.Current, fleetsim.VLLMv011, fleetsim.VLLMv09, fleetsim.VLLMv06, fleetsim.VLLMRay, fleetsim.VLLMRust},
		fleetsim.SGLang:      {fleetsim.Current},
		fleetsim.TensorRTLLM: {fleetsim.Current, fleetsim.TensorRTLLMDynamo},
	} {
		_, rows, found := strings.Cut(readme(t), fmt.Sprintf("\n| `%s` | `%s` | ", engine, versions[0]))
		require.True(t, found, engine)
		for _, version := range versions[1:] {
			_, rows, found = strings.Cut(rows, fmt.Sprintf("\n| | `%s` | ", version))
			assert.True(t, found, "%s %s", engine, version)
		}
	}
}

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestReadmeExamplesAreScenarios(t *testing.T) {
	shown := map[fleetsim.FaultKind]bool{}
	for _, block := range fenced.FindAllStringSubmatch(readme(t), -1) {
		text := block[1]
		if strings.Contains(text, "scrape_configs:") {
			continue
		}
		if !strings.Contains(text, "fleets:") {
			text = "fleets: [{name: chat, engine: vllm, model_name: m, replicas: 8, arrivals: {rate: 1}}]\n" + text
		}
		scenario, err := fleetsim.Parse([]byte(text))
		require.NoError(t, err, text)
		for i := range scenario.Faults {
			shown[scenario.Faults[i].Kind] = true
		}
	}
	for _, kind := range []fleetsim.FaultKind{
		fleetsim.Slow, fleetsim.Hung, fleetsim.Errors, fleetsim.Restart, fleetsim.NewRevision, fleetsim.ColdCache, fleetsim.LongPrompts, fleetsim.Overload,
		fleetsim.TrafficSurge, fleetsim.Throttle, fleetsim.XID, fleetsim.LinkErrors, fleetsim.Gap, fleetsim.StaleSeries, fleetsim.NewBounds,
	} {
		assert.True(t, shown[kind], kind)
	}
}

func TestReadmeListsTheScenariosThatComeWithIt(t *testing.T) {
	for _, name := range fleetsim.Builtins() {
		assert.Contains(t, readme(t), "\n| `"+name+"` | ")
	}
}

func TestReadmeShowsTheAnswerKeyAsItIs(t *testing.T) {
	scenario, err := fleetsim.Parse([]byte(`
seed: 7
fleets: [{name: chat, engine: vllm, model_name: qwen3-8b, replicas: 2, tenants: {named: [{name: acme, share: 0.25}]}, arrivals: {rate: 1}}]
faults:
  - {kind: slow, replicas: [1], factor: 1.8, from: 5m, to: 20m}
  - {kind: new_bounds, replicas: [0], series: "vllm:time_to_first_token_seconds", bounds: [1], from: 10m}
  - {kind: surge, tenant: acme, factor: 2, prompt_factor: 3, from: 15m}
`))
	require.NoError(t, err)
	sim, err := fleetsim.New(scenario, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	var key bytes.Buffer
	require.NoError(t, sim.WriteAnswerKey(&key))
	for line := range strings.Lines(key.String()) {
		assert.Contains(t, readme(t), "\n"+line)
	}
}
