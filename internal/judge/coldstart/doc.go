// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package coldstart joins the facts of a replica's start into one account: its
// stages, which of them it waited for, and what nothing known explains.
//
// A Book keeps the facts of each pod until the start is over; the account is made
// from all of them at once, so that neither their order nor repetition matters.
package coldstart
