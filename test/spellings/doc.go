// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package spellings serves one fleet in every spelling that engines have had, alone and mixed, and holds against each
// other what is derived of it. It has tests only.
package spellings
