// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

const schemaFile = "schema.json"

// schema is the schema as a validator and as a document.
func schema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource(schemaFile, document))
	compiled, err := compiler.Compile(schemaFile)
	require.NoError(t, err)
	return compiled, document.(map[string]any)
}

// validate holds a YAML file against the schema, as an editor does.
func validate(s *jsonschema.Schema, text []byte) error {
	var content any
	if err := yaml.Unmarshal(text, &content); err != nil {
		return err
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(instance)
}

func TestBuiltinFilesFitTheSchema(t *testing.T) {
	s, _ := schema(t)
	for name, data := range builtinFiles(t) {
		assert.NoError(t, validate(s, data), name)
	}
	assert.NoError(t, validate(s, []byte(complete)))
}

// beyondSchema are mistakes that only the reader sees: they are in how two
// places of a file go together, or no JSON can hold them.
var beyondSchema = []string{
	"unknown version", "until before since", "versions missing", "name twice in a signal", "range turned round", "a second document",
}

// TestSchemaAndReaderAgree on what is broken.
func TestSchemaAndReaderAgree(t *testing.T) {
	s, _ := schema(t)
	for name, tc := range brokenFiles {
		err := validate(s, []byte(tc.text(t)))
		assert.Equal(t, slices.Contains(beyondSchema, name), err == nil, "%s: %v", name, err)
	}
	for _, name := range beyondSchema {
		assert.Contains(t, brokenFiles, name)
	}
}

// TestSchemaKnowsWhatTheReaderKnows: the same signals, with the same types and
// units, and the same words.
func TestSchemaKnowsWhatTheReaderKnows(t *testing.T) {
	s, document := schema(t)
	at := func(path string) (found any) {
		found = document
		for key := range strings.SplitSeq(path, "/") {
			found = found.(map[string]any)[key]
		}
		return found
	}
	words := func(path string) (all []string) {
		for _, word := range at(path).([]any) {
			all = append(all, word.(string))
		}
		return all
	}
	assert.Equal(t, componentNames[:], words("properties/component/enum"))
	assert.Equal(t, partNames[:], words("$defs/form/properties/part/enum"))
	assert.Equal(t, typeNames, words("$defs/form/properties/type/enum"))

	var signals []string
	for signal := range fleet.SignalCount {
		if signal.IsQuality() {
			continue
		}
		signals = append(signals, signal.String())
	}
	assert.ElementsMatch(t, signals, slices.Collect(maps.Keys(at("properties/signals/properties").(map[string]any))))

	var all []string
	for _, known := range units {
		all = slices.AppendSeq(all, maps.Keys(known))
	}
	for _, signal := range signals {
		for _, unit := range append(all, "parsec") {
			for _, form := range []string{"{type: histogram, ", "{type: histogram, part: sum, ", "{type: gauge, ", "{type: counter, "} {
				text := []byte("{engine: a, signals: {" + signal + ": " + form + "unit: " + unit + ", names: [x]}}}")
				_, err := Parse("", text)
				assert.Equal(t, err == nil, validate(s, text) == nil, "%s: the reader says %v", text, err)
			}
		}
	}
}

// TestSchemaKnowsEveryKey: the complete file has every key of the schema, and
// fits both.
func TestSchemaKnowsEveryKey(t *testing.T) {
	_, document := schema(t)
	keys := func(of ...string) []string {
		node := document
		for _, key := range of {
			node = node[key].(map[string]any)
		}
		return slices.Sorted(maps.Keys(node["properties"].(map[string]any)))
	}
	var file struct {
		All     map[string]any            `yaml:",inline"`
		Labels  map[string]any            `yaml:"labels"`
		Signals map[string]any            `yaml:"signals"`
		Info    map[string]map[string]any `yaml:"info"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(complete), &file))
	assert.Equal(t, keys(), slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(file.All)), "labels", "signals", "info"))))
	assert.Equal(t, keys("properties", "labels"), slices.Sorted(maps.Keys(file.Labels)))
	assert.Equal(t, keys("properties", "info", "additionalProperties"), slices.Sorted(maps.Keys(file.Info["build_info"])))
	form := make(map[string]bool)
	for _, signal := range file.Signals {
		forms, ok := signal.([]any)
		if !ok {
			forms = []any{signal}
		}
		for _, f := range forms {
			for key := range f.(map[string]any) {
				form[key] = true
			}
		}
	}
	assert.Equal(t, keys("$defs", "form"), slices.Sorted(maps.Keys(form)))
}
