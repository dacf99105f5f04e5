// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"os"

	"go.opentelemetry.io/collector/component"
)

// Instance names a component as the writer of derived series, the same after a
// restart: its host, which on Kubernetes is its pod, and its own name if it has
// one.
func Instance(id component.ID) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if id.Name() == "" {
		return host
	}
	return host + "/" + id.Name()
}
