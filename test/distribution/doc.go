// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package distribution holds the manifests that people build collectors from: our own, and the one that docs/distributions.md
// shows to those who have theirs.
package distribution
