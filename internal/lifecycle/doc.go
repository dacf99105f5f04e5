// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle has the words in which Kubernetes and engines tell of a pod's
// way from asked-for to first token: facts, each with whose clock told its time,
// and how Kubernetes spells them in events. It knows neither OpenTelemetry nor
// the Kubernetes client.
package lifecycle
