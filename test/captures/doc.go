// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package captures puts real pages, which are not this project's to publish, through the built collector:
// `make test-captures CAPTURES=DIR`. It has tests only, behind the build tag captures.
package captures
