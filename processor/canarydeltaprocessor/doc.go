// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../tools.mod mdatagen metadata.yaml

// Package canarydeltaprocessor tells whether a canary is worse than its baseline:
// it reads what LLM engines, and whoever judges their answers, say as metrics pass,
// and emits for each model with two variants a verdict, its evidence and the
// figures of both.
package canarydeltaprocessor
