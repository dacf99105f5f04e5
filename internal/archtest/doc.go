// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the house to its plan: which room may import which,
// who may read the clock or know OpenTelemetry, and how long a file or a
// function may grow. It has no code but tests; the plan is the table in
// house_test.go.
package archtest
