// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package binarytest runs the built collector, and the programs it is tested against, as processes of a test.
package binarytest
