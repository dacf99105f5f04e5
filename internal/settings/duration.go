// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"time"
)

// Duration refuses what is no span of time of at least a second: a bare number
// is read as nanoseconds.
func Duration(key string, d time.Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("%s: %s is negative: use a positive span of time, as in %q", key, d, (-d).String())
	case d == 0:
		return fmt.Errorf("%s: must not be 0s: use a span of time of at least 1s, as in %q", key, "30s")
	case d < time.Second && d%time.Millisecond == 0:
		return fmt.Errorf("%s: %s is under a second: use at least 1s", key, d)
	case d < time.Second:
		return fmt.Errorf("%s: %s is under a second; a number without a unit is read as nanoseconds: write the unit, as in %q",
			key, d, fmt.Sprintf("%ds", d.Nanoseconds()))
	}
	return nil
}
