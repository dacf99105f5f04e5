// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

func TestPageIsWhatTheFilesSay(t *testing.T) {
	made := filepath.Join(t.TempDir(), "dialects.md")
	require.NoError(t, write(made))
	want, err := os.ReadFile(made)
	require.NoError(t, err)
	got, err := os.ReadFile("../../../docs/dialects.md")
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got), "docs/dialects.md is out of date: run `make generate`")
}

func TestFileThatCannotBeWritten(t *testing.T) {
	require.Error(t, write(filepath.Join(t.TempDir(), "missing", "dialects.md")))
}

// TestExamplesOfTheIntroduction: the file and the configuration that stand
// there are read, together.
func TestExamplesOfTheIntroduction(t *testing.T) {
	var blocks []string
	for i, block := range strings.Split(head, "```") {
		if i%2 == 1 {
			blocks = append(blocks, strings.TrimPrefix(block, "yaml\n"))
		}
	}
	require.Len(t, blocks, 2)
	file := filepath.Join(t.TempDir(), "acme.yaml")
	require.NoError(t, os.WriteFile(file, []byte(blocks[1]), 0o600))
	var config struct {
		Processors map[string]struct{ Dialects dialect.Sources }
	}
	require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(blocks[0], "/etc/llmfleet/acme.yaml", file, 1)), &config))

	set, err := config.Processors["fleet_outlier"].Dialects.Load()
	require.NoError(t, err)
	for name, want := range map[string]fleet.Signal{
		"acme:first_token_seconds": fleet.TTFT, "acme_first_token_ms": fleet.TTFT, "acme_queue_length": fleet.Waiting,
		"acme:cache_used": fleet.KVUsage, "vllm:scheduler_wait_seconds": fleet.QueueTime,
	} {
		if matches := set.Match(name); assert.Len(t, matches, 1, name) {
			assert.Equal(t, want, matches[0].Entry.Signal, name)
		}
	}
	assert.Len(t, set.Match("acme:requests_total"), 2)
	assert.NotNil(t, set.Info("acme:build_info"))
	assert.Empty(t, set.Match("vllm:request_queue_time_seconds"))
	assert.NotEmpty(t, set.Match("vllm:time_to_first_token_seconds"))
}

// TestPage: a small dialect, and what is written of it, by hand.
func TestPage(t *testing.T) {
	set, err := dialect.Parse("a.yaml", []byte(`# About a_b.
engine: a
component: gpu
prefix: a
carriers: [ray]
versions: [v1, v2, v3]
labels: {model: [m], ranks: [r, s], reject: [copy], unless: m}
signals:
  ttft:
    - {type: histogram, names: [new, newer], since: v2}
    - {type: histogram, names: [old_ms], unit: ms, until: v2}
  waiting: {type: gauge, add: [x, y], keep: {p: [""]}, range: [0, 9], since: v2, until: v2}
  prompt_tokens: {type: histogram, part: sum, scale: 2, names: [n], only: {k: [u, v], w: []}, since: v1, until: v2}
info:
  about: {engine_version: [version]}
startup:
  lines:
    - {tells: weights.loaded, says: 'Loaded (?:a|b) in (?P<took>\S+)', with: acme}
    - {tells: weights.loaded, says: 'Found it', cached: true, anyone: true}
  spans:
    Load: {begins: weights.load_started, ends: weights.loaded}
    Boot: {ends: engine.ready}
  metrics:
    - {tells: weights.loaded, names: [load_seconds], only: {phase: [weights]}}
ignore:
  "no *use*": [z]
`))
	require.NoError(t, err)
	page := strings.TrimPrefix(render(set, map[string]string{"ttft": "First.", "waiting": "Queue.", "prompt_tokens": "Sizes."}), head)
	assert.Equal(t, strings.ReplaceAll(`
**Accelerators and links**

| signal | unit | [a](#a) | meaning |
|---|---|---|---|
| 'ttft' | 's' | ✓ | First. |
| 'waiting' | '{request}' | ✓ | Queue. |
| 'prompt_tokens' | '{token}' | ✓ | Sizes. |

## Accelerators and links

### a

About a\_b.

Names arrive behind 'a:', 'a_', 'ray_a:', 'ray_a_'.

| what | labels, of which the first that is there counts |
|---|---|
| model | 'm' |
| rank, summed over | 'r', 's' |
| copy, not read, unless 'm' is there | 'copy' |

| signal | read from | type | unit | points |
|---|---|---|---|---|
| 'ttft' | 'new', else 'newer' (since v2) | histogram | 's' |  |
| … else | 'old_ms' (until v2) | histogram | 's', exposed in ms |  |
| 'waiting' | 'x' + 'y' (in v2) | gauge | '{request}' | 'p' of '""', or none; from 0 to 9 |
| 'prompt_tokens' | 'n' (v1 to v2) | sum of a histogram | '{token}', exposed × 2 | only 'k' of '"u"' or '"v"'; only with 'w' |

<details><summary>What is read in each version</summary>

| signal | v1 | v2 | v3 |
|---|---|---|---|
| 'ttft' | 'old_ms' | 'new', else 'newer' | 'new', else 'newer' |
| 'waiting' | – | 'x' + 'y' | – |
| 'prompt_tokens' | 'n' | 'n' | – |

</details>

| info series | 'engine_version' | 'model_revision' | 'config_hash' |
|---|---|---|---|
| 'about' | 'version' | – | – |

<details><summary>What is read of a start</summary>

| fact | told by | told besides |
|---|---|---|
| 'weights.loaded' | line 'Loaded (?:a\|b) in (?P<took>\S+)', with 'acme' | took |
| 'weights.loaded' | line 'Found it', if the engine is known | cached |
| 'weights.load_started' | begin of span 'Load' | – |
| 'weights.loaded' | end of span 'Load' | took |
| 'engine.ready' | end of span 'Boot' | took |
| 'weights.loaded' | metric 'load_seconds', only 'phase' of '"weights"' | took, and no time |

</details>

<details><summary>Not read, and why (1)</summary>

- no \*use\*: 'z'

</details>
`, "'", "`"), page)
}

// TestWhatASourceLacks is told beside what it has.
func TestWhatASourceLacks(t *testing.T) {
	set, err := dialect.Parse("a.yaml", []byte("{engine: a, signals: {ttft: {type: histogram, names: [x.y]}}}"))
	require.NoError(t, err)
	var page page
	page.source(set.Dialects()[0], []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.Running})
	assert.Contains(t, page.String(), "\nNot told: `itl`, `running`.\n")
	assert.Contains(t, page.String(), "\nNames are whole; with underscores for dots they are known, too.\n")
	assert.NotContains(t, page.String(), "<details>")
}

// TestADialectWithoutSignals has a section of its own, and no column.
func TestADialectWithoutSignals(t *testing.T) {
	set, err := dialect.Parse("a.yaml", []byte("# About a.\nengine: a\nsignals: {}\nignore: {noise: [x]}\n"))
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(`
## Beside the signals

### a

About a.

<details><summary>Not read, and why (1)</summary>

- noise: 'x'

</details>
`, "'", "`"), strings.TrimPrefix(render(set, nil), head))
}
