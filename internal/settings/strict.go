// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package settings reads the configuration of our components: strictly, and
// with errors that name the key and the remedy.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal decodes a configuration into the struct that config points to. It
// refuses unknown keys before confmap does, which would not say which keys
// there are. A component's Config calls it in its own Unmarshal.
func Unmarshal(conf *confmap.Conf, config any) error {
	if err := knownKeys("", conf.ToStringMap(), reflect.TypeOf(config).Elem()); err != nil {
		return err
	}
	return conf.Unmarshal(config)
}

// knownKeys holds the keys of a configuration, at all depths, against the
// fields of the struct that it is decoded into.
func knownKeys(path string, value any, into reflect.Type) error {
	if into.Kind() == reflect.Pointer { // what can be null
		into = into.Elem()
	}
	var errs []error
	switch value := value.(type) {
	case []any:
		if into.Kind() == reflect.Slice {
			for i, element := range value {
				errs = append(errs, knownKeys(fmt.Sprintf("%s[%d]", path, i), element, into.Elem()))
			}
		}
	case map[string]any:
		fields := keysOf(into)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := strings.TrimPrefix(path+"."+key, ".")
			switch {
			case into.Kind() == reflect.Map:
				errs = append(errs, knownKeys(at, value[key], into.Elem()))
			case fields != nil && fields[key] == nil:
				errs = append(errs, fmt.Errorf("%s: unknown key: use one of %s", at,
					strings.Join(slices.Sorted(maps.Keys(fields)), ", ")))
			case fields != nil:
				errs = append(errs, knownKeys(at, value[key], fields[key]))
			}
		}
	}
	return errors.Join(errs...)
}

// keysOf is the keys of a struct's fields with their types; nil if it is none.
func keysOf(t reflect.Type) map[string]reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	keys := make(map[string]reflect.Type)
	for field := range t.Fields() {
		if key := field.Tag.Get("mapstructure"); key != "" {
			keys[key] = field.Type
		}
	}
	return keys
}
