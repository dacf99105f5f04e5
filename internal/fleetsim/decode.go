// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decode reads a scenario's YAML. The library reports mistakes with the names of
// Go types, so what does not fit is found here first, with its line, its key
// and what may stand there.
func decode(text []byte) (Scenario, error) {
	var s Scenario
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return s, err
	}
	// Keys that stand twice and anchors that hold themselves are the library's.
	if err := document.Decode(new(any)); err != nil {
		return s, err
	}
	var errs mistakes
	if len(document.Content) > 0 { // an empty file is a scenario without fleets
		check(document.Content[0], reflect.TypeFor[Scenario](), "", &errs)
	}
	if err := errors.Join(errs...); err != nil {
		return s, err
	}
	return s, document.Decode(&s)
}

// check compares a value in a file with the type it is read into.
func check(node *yaml.Node, want reflect.Type, key string, errs *mistakes) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Tag == "!!null": // as if the key were left out
	case want.Kind() == reflect.Pointer:
		check(node, want.Elem(), key, errs)
	case want.Kind() == reflect.Struct:
		checkKeys(node, want, key, errs)
	case want.Kind() == reflect.Slice && node.Kind == yaml.SequenceNode:
		for i, item := range node.Content {
			check(item, want.Elem(), fmt.Sprintf("%s[%d]", key, i), errs)
		}
	case node.Decode(reflect.New(want).Interface()) != nil, isWhole(want) && node.Tag != "!!int":
		errs.addAt(node, key, "is %s: write %s", written(node), wanted(want))
	}
}

// checkKeys checks a mapping against the struct that it is read into.
func checkKeys(node *yaml.Node, want reflect.Type, parent string, errs *mistakes) {
	fields := map[string]reflect.Type{}
	var valid []string
	for field := range want.Fields() {
		name := field.Tag.Get("yaml")
		fields[name] = field.Type
		valid = append(valid, name)
	}
	if node.Kind != yaml.MappingNode {
		errs.addAt(node, parent, "is %s: write keys with values; the keys are %s", written(node), strings.Join(valid, ", "))
		return
	}
	for i := 0; i < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := strings.TrimPrefix(parent+"."+name.Value, ".")
		field, known := fields[name.Value]
		switch {
		case name.Tag == "!!merge":
			checkMerged(value, want, parent, errs)
		case !known:
			errs.addAt(name, key, "there is no such key: write one of %s", strings.Join(valid, ", "))
		default:
			check(value, field, key, errs)
		}
	}
}

// checkMerged checks what `<<` brings in: one mapping or several.
func checkMerged(node *yaml.Node, want reflect.Type, parent string, errs *mistakes) {
	if node.Kind != yaml.SequenceNode {
		check(node, want, parent, errs)
		return
	}
	for _, item := range node.Content {
		check(item, want, parent, errs)
	}
}

// isWhole tells whether the library would cut a fraction off for this type.
func isWhole(t reflect.Type) bool {
	return t.Kind() == reflect.Int || t.Kind() == reflect.Uint64
}

// written is a value as it stands in the file.
func written(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping of keys"
	case yaml.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("%q", node.Value)
	}
}

// wanted says what may stand where a value of a type is read.
func wanted(want reflect.Type) string {
	if want == reflect.TypeFor[time.Duration]() {
		return "a duration with its unit, such as 30s or 120us"
	}
	if want.Kind() == reflect.Slice && want.Elem().Kind() == reflect.Struct {
		return "a list, each item after a dash"
	}
	if want.Kind() == reflect.Slice && want.Elem().Kind() == reflect.String {
		return "a list of words, such as [a, b]"
	}
	switch want.Kind() {
	case reflect.Slice:
		return "a list of numbers, such as [0, 1]"
	case reflect.String:
		return "a word"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Int:
		return "a whole number"
	default:
		return "a number"
	}
}

// addAt adds a mistake of the file's form, with its line.
func (m *mistakes) addAt(node *yaml.Node, key, format string, args ...any) {
	if key == "" {
		key = "the file"
	}
	m.add(fmt.Sprintf("line %d: %s", node.Line, key), format, args...)
}
