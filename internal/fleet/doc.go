// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet is the domain: signals, replicas and the fleets in which they
// may be compared. Its Registry keeps what every replica told in the last
// window, and hands it out as one closed Frame a fleet. It knows nothing of
// telemetry formats, and no clock.
package fleet
