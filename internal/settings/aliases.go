// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Aliases refuses names that lead to no name that counts.
func Aliases(key string, aliases map[string]string) error {
	var errs []error
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		name := aliases[alias]
		switch further, ok := aliases[name]; {
		case alias == "" || name == "":
			errs = append(errs, fmt.Errorf("%s: %q: %q: a name is empty: use the name that a gateway or an adapter goes by, and that of the engine's model", key, alias, name))
		case ok && further != name:
			errs = append(errs, fmt.Errorf("%s: %s is another name of %s, which is one of %s: name the last at once", key, alias, name, further))
		}
	}
	return errors.Join(errs...)
}
