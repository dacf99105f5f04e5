// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rules that never fire prove nothing: here each one meets a house that breaks it.

func TestGraphRulesFire(t *testing.T) {
	const (
		pdata  = "go.opentelemetry.io/collector/pdata/pmetric"
		hash   = "github.com/cespare/xxhash/v2"
		middle = "example.com/innocuous"
	)
	for _, tt := range []struct {
		name string
		pkg  pkg
		want string // part of the one violation; empty for none
	}{
		{"a component uses the rooms below it", ours("processor/oneprocessor", "internal/intake", "internal/judge/outlier"), ""},
		{"a component uses its own subpackage", ours("processor/oneprocessor", "processor/oneprocessor/internal/metadata"), ""},
		{"a component imports another", ours("processor/oneprocessor", "processor/twoprocessor"), "against the arrow"},
		{"a component imports another's inside", ours("processor/oneprocessor", "processor/twoprocessor/internal/metadata"), "against the arrow"},
		{"upward", ours("internal/fleet", "internal/judge/outlier"), "against the arrow"},
		{"upward from a subpackage", ours("internal/fleet/identity", "internal/evaluate"), "against the arrow"},
		{"sideways", ours("internal/intake", "internal/emit"), "against the arrow"},
		{"sideways between judgements", ours("internal/judge/share", "internal/judge/outlier"), "against the arrow"},
		{"sideways at the bottom", ours("internal/window", "internal/stats"), "against the arrow"},
		{"the simulator knows a judgement", ours("internal/fleetsim", "internal/judge/outlier"), "against the arrow"},
		{"the product knows the simulator", ours("internal/evaluate", "internal/fleetsim"), "against the arrow"},
		{"the product imports a test helper", ours("internal/emit", "internal/emittest"), "against the arrow"},
		{"no room", ours("internal/attic"), "has no room"},
		{"a name that says nothing", pkg{ImportPath: module + "internal/fleet/util", Name: "util"}, "says nothing"},
		{"a module in a room of the standard library", imports("internal/stats", hash), "standard library only"},
		{"a module in a room that may have some", imports("internal/fleet", hash), ""},
		{"files in a judgement", imports("internal/judge/outlier", "os"), "pure room"},
		{"network in a judgement", imports("internal/judge/outlier", "net/http"), "pure room"},
		{"mathematics in a judgement", imports("internal/judge/outlier", "math"), ""},
		{"OpenTelemetry in intake", imports("internal/intake", pdata), ""},
		{"OpenTelemetry in a judgement", imports("internal/judge/outlier", pdata), "OpenTelemetry is known"},
		{"OpenTelemetry by way of another module", pkg{ImportPath: module + "internal/evaluate", Imports: []string{middle}, Deps: []string{middle, pdata}}, "OpenTelemetry is known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			packages := graph{"math": {Standard: true}, "os": {Standard: true}, "net/http": {Standard: true}}
			packages[tt.pkg.ImportPath] = tt.pkg
			violations := packages.check(house)
			if tt.want == "" {
				assert.Empty(t, violations)
				return
			}
			require.Len(t, violations, 1)
			assert.Contains(t, violations[0], tt.want)
		})
	}
}

// ours is a package of the module that imports other packages of it.
func ours(path string, imported ...string) pkg {
	for i := range imported {
		imported[i] = module + imported[i]
	}
	return imports(path, imported...)
}

// imports is a package of the module that imports any packages.
func imports(path string, imported ...string) pkg {
	return pkg{ImportPath: module + path, Imports: imported, Deps: imported}
}

func TestSizeRulesFire(t *testing.T) {
	function := func(lines int) string { return "func f() {" + strings.Repeat("\n", lines-1) + "}\n" }

	assert.Empty(t, parse(t, "internal/stats/a.go", function(maxFunctionLines)).checkSize())
	assert.Len(t, parse(t, "internal/stats/a.go", function(maxFunctionLines+1)).checkSize(), 1)
	assert.Empty(t, parse(t, "internal/stats/a.go", strings.Repeat("\n", maxFileLines-1)).checkSize())
	assert.Len(t, parse(t, "internal/stats/a.go", strings.Repeat("\n", maxFileLines)).checkSize(), 1)
	assert.Empty(t, parse(t, "internal/stats/a_test.go", strings.Repeat("\n", maxFileLines)).checkSize())
}

func TestClockRuleFires(t *testing.T) {
	const reads = "import \"time\"\nvar at = time.Now()\n"
	assert.Len(t, parse(t, "internal/judge/outlier/a.go", reads).checkClock(house), 1)
	assert.Len(t, parse(t, "internal/fleet/a.go", "import clock \"time\"\nvar wait = clock.After\n").checkClock(house), 1)
	assert.Empty(t, parse(t, "internal/fleet/a.go", "import \"time\"\nconst wait = time.Second\n").checkClock(house))
	assert.Empty(t, parse(t, "internal/fleet/a_test.go", reads).checkClock(house))
	assert.Empty(t, parse(t, "internal/evaluate/a.go", reads).checkClock(house))
}

func TestLicenceRuleFires(t *testing.T) {
	assert.Len(t, parse(t, "a.go", "").checkLicence(), 1)
	licensed, err := parseSource("a.go", licence+"\npackage a\n")
	require.NoError(t, err)
	assert.Empty(t, licensed.checkLicence())
}

// parse makes a source file of one package line and the body.
func parse(t *testing.T, path, body string) source {
	t.Helper()
	s, err := parseSource(path, "package a\n"+body)
	require.NoError(t, err)
	return s
}
