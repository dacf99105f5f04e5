// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Window refuses a window that is no whole number of steps, as the key of the
// step calls them, or of more than most. A step under a second is passed over: it
// is refused for itself.
func Window(key string, window time.Duration, stepKey string, step time.Duration, most int) error {
	if err := Duration(key, window); err != nil || step < time.Second {
		return err
	}
	rest := window % step
	switch {
	case window < step:
		return fmt.Errorf("%s: %s is shorter than %s (%s): use %q or a multiple of it, or a shorter %s",
			key, window, stepKey, step, step.String(), stepKey)
	case rest != 0:
		return fmt.Errorf("%s: %s is not a multiple of %s (%s): use %q or %q",
			key, window, stepKey, step, (window - rest).String(), (window - rest + step).String())
	case window/step > time.Duration(most):
		return fmt.Errorf("%s: %s has %d %ss of %s, more than %d: use a longer %s or a shorter window",
			key, window, window/step, stepKey, step, most, stepKey)
	}
	return nil
}

// labelName is what becomes a label in every store: dots turn into underscores
// in some, two underscores at the beginning are kept for the store itself.
var labelName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.]*$`)

// GroupBy refuses keys of fleets that cannot be labels of derived points: for
// their name, because points use it otherwise (taken), or because it stands
// twice. Without any, all would be one fleet.
func GroupBy(keys, taken []string) error {
	if len(keys) == 0 {
		return errors.New("group_by: there are no keys, so everything would be one fleet: use at least [model_name]")
	}
	var errs []error
	seen := make(map[string]bool)
	for _, key := range keys {
		label := strings.ReplaceAll(key, ".", "_")
		switch {
		case !labelName.MatchString(key):
			errs = append(errs, fmt.Errorf("group_by: %q is no name of a label: use letters, digits, underscores and dots", key))
		case slices.Contains(taken, label):
			errs = append(errs, fmt.Errorf("group_by: %q cannot be a key, derived points use it otherwise: use attributes that a fleet has in common", key))
		case seen[label]:
			errs = append(errs, fmt.Errorf("group_by: %s is there twice: remove one", key))
		}
		seen[label] = true
	}
	return errors.Join(errs...)
}
