// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// key is the way to a value, from the root of values.yaml.
type key []string

// String is the key as a JSON pointer, which is how helm names it.
func (k key) String() string {
	pointer := ""
	for _, name := range k {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return pointer
}

func (k key) above() key { return k[:len(k)-1] }

func (k key) last() string { return k[len(k)-1] }

// values nests a value under the key, as YAML has it.
func (k key) values(value any) map[string]any {
	nested := map[string]any{k.last(): value}
	for i := len(k) - 2; i >= 0; i-- {
		nested = map[string]any{k[i]: nested}
	}
	return nested
}

// named are the maps whose keys are names that people give, and not the chart's.
var named = regexp.MustCompile(`^/presets/(engines|gpu|epp)/find$|^/presets/engines/except$|^/presets/(engines|gpu|epp)/find/[^/]+/labels$|^/dashboards/labels$|/resources/(requests|limits)$`)

// walk visits every key of values, those above first.
func walk(values map[string]any, above key, visit func(k key, value any)) {
	for _, name := range sortedKeys(values) {
		k := append(append(key{}, above...), name)
		visit(k, values[name])
		if below, ok := values[name].(map[string]any); ok {
			walk(below, k, visit)
		}
	}
}

func defaultValues(t *testing.T) map[string]any {
	t.Helper()
	var values map[string]any
	readYAML(t, filepath.Join(chartFolder, "values.yaml"), &values)
	return values
}

// withValues writes values into a file, and returns helm's flag for it.
func withValues(t *testing.T, values any) string {
	t.Helper()
	text, err := json.Marshal(values)
	require.NoError(t, err)
	return "--values=" + writeFile(t, "values.yaml", string(text))
}

// merge adds values to others, deeply.
func merge(into, from map[string]any) {
	for name, value := range from {
		below, isMap := value.(map[string]any)
		if inner, ok := into[name].(map[string]any); isMap && ok {
			merge(inner, below)
		} else {
			into[name] = value
		}
	}
}

// byDepth returns all keys of values.yaml, those beside each other together: values that are wrong at one depth are all named
// in one answer, but hide what stands below them.
func byDepth(t *testing.T) [][]key {
	t.Helper()
	var depths [][]key
	walk(defaultValues(t), nil, func(k key, _ any) {
		for len(depths) < len(k) {
			depths = append(depths, nil)
		}
		depths[len(k)-1] = append(depths[len(k)-1], k)
	})
	require.Greater(t, len(depths), 3)
	return depths
}

// saidOf reports whether an answer has a line about a place that holds some words, and in quotes a name.
func saidOf(answer string, place key, words, name string) bool {
	line := `(?m)at '` + regexp.QuoteMeta(place.String()) + `': ` + words + `.*'` + regexp.QuoteMeta(name) + `'`
	return regexp.MustCompile(line).MatchString(answer)
}

// TestTyposAreRefused: every key with a letter too many is refused, and named with the place where it stands.
func TestTyposAreRefused(t *testing.T) {
	t.Parallel()
	typos, misspelt := map[string]any{}, []key{}
	for _, keys := range byDepth(t) {
		for _, k := range keys {
			if !named.MatchString(k.above().String()) {
				k = append(slices.Clone(k.above()), k.last()+"x")
				merge(typos, k.values("a"))
				misspelt = append(misspelt, k)
			}
		}
	}
	require.Greater(t, len(misspelt), 100)
	answer := refusal(t, withValues(t, typos))
	accepted := slices.DeleteFunc(misspelt, func(k key) bool {
		return saidOf(answer, k.above(), "additional properties", k.last())
	})
	assert.Empty(t, accepted)
}

// TestWrongTypesAreRefused: a value of another type than the default's is refused with its place.
func TestWrongTypesAreRefused(t *testing.T) {
	t.Parallel()
	defaults := defaultValues(t)
	for _, keys := range byDepth(t) {
		wrong := map[string]any{}
		for _, k := range keys {
			if _, isMap := at(defaults, k...).(map[string]any); isMap {
				merge(wrong, k.values("a"))
			} else {
				merge(wrong, k.values(map[string]any{"a": true}))
			}
		}
		answer := refusal(t, withValues(t, wrong))
		accepted := slices.DeleteFunc(keys, func(k key) bool { return strings.Contains(answer, "at '"+k.String()+"'") })
		assert.Empty(t, accepted)
	}
}

// TestNullIsUnderstood: helm takes a default away for which null is given. What the templates cannot do without is missed by
// the schema then; what they can, they do without.
func TestNullIsUnderstood(t *testing.T) {
	t.Parallel()
	for _, keys := range byDepth(t) {
		nulls := map[string]any{}
		keys = slices.DeleteFunc(keys, func(k key) bool { return named.MatchString(k.above().String()) })
		for _, k := range keys {
			merge(nulls, k.values(nil))
		}
		// Nothing is missed at the depths where people give the names.
		_, answer, _ := run(tool(t, "helm"), "template", "llmfleet", chartFolder, withValues(t, nulls))
		rest := map[string]any{}
		for _, k := range keys {
			if !saidOf(answer, k.above(), "missing propert(y|ies)", k.last()) {
				merge(rest, k.values(nil))
			}
		}
		installation{flags: []string{withValues(t, rest)}}.render(t)
	}
}

// TestSchemaKnowsWhatValuesHave: the schema lists the keys of values.yaml, no more and no fewer.
func TestSchemaKnowsWhatValuesHave(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	readYAML(t, filepath.Join(chartFolder, "values.schema.json"), &schema)
	var listed, there []string
	properties(schema, schema, nil, func(k key) { listed = append(listed, k.String()) })
	walk(defaultValues(t), nil, func(k key, _ any) {
		if !named.MatchString(k.above().String()) && !strings.Contains(k.String(), "/find/") {
			there = append(there, k.String())
		}
	})
	assert.ElementsMatch(t, there, listed)
}

// properties visits every property that a schema lists.
func properties(schema, root map[string]any, above key, visit func(k key)) {
	if reference, ok := schema["$ref"].(string); ok {
		schema = at(root, strings.Split(strings.TrimPrefix(reference, "#/"), "/")...).(map[string]any)
	}
	listed, _ := schema["properties"].(map[string]any)
	for name, below := range listed {
		k := append(append(key{}, above...), name)
		visit(k)
		properties(below.(map[string]any), root, k, visit)
	}
}

// TestGlobalIsAccepted: what a parent chart shares is none of this chart's business.
func TestGlobalIsAccepted(t *testing.T) {
	t.Parallel()
	shared := installation{flags: []string{"--set=global.anything.at=all,global.imageRegistry=registry.example.com"}}
	assert.Equal(t, defaults.text(t), shared.text(t))
}
