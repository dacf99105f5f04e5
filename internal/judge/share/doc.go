// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package share tells which tenants of a fleet raise the inter-token latency of
// all: the noisy neighbours. It reads one closed pane after the other and writes
// a report; it knows neither telemetry nor a clock.
//
// # The model
//
// An engine that computes a prompt makes the answers in its batch wait. So the
// mean inter-token latency of a fleet follows, pane by pane, a line
//
//	ITL = a + b·running + g·P
//
// with running the requests in a replica's batch and P the uncached prompt tokens
// a second and replica, of all tenants. Both are by replica, so that scaling is
// no surge. The line is fitted by least squares that forget (half of it in
// HalfLife) and weigh panes by their relative error, for tokens and latency told
// in the same pane and up to two panes apart, either way; the lag at which g is
// most certain counts. There is one g for all tenants, which is why a few panes
// determine it. What the batch and the tokens could both explain is put down to
// the tokens, as it is tokens that make batches.
//
// A tenant's surplus is what it sends beyond its usual share of P. All tenants'
// surpluses sum to zero, and a surge that all take part in is nobody's: it makes
// the latency rise and no surplus. Three figures follow.
//
//   - Excess is g·surplus over the usual ITL: 0.4 says that the fleet's latency is
//     longer by 40 % of the usual for what the tenant sends beyond its share. A
//     tenant that sends less than its share has a negative one. As slower tokens
//     keep requests in the batch for longer, which is slower still, that gain is
//     included as far as the latency did rise.
//   - Score is the t statistic of the correlation of the surplus with what the
//     usual traffic leaves of the latency, ITL - b·running - g·(P - surplus).
//     However much the load of all swings, it does not speak for or against one.
//   - Since is when the CUSUM of the excess, less half of MinExcess, left zero.
//
// A tenant is noisy after Panes panes in a row in which its score is over MinScore;
// its excess is MinExcess of what the latency would be without it, or of the usual
// if that is more; and ITL - b·running goes with its surplus too (t over 2). The
// second is so because in a surge of all much of the usual latency is little of what
// there is; the third because nobody is slower for a tenant who sends more where
// the others send as much less.
//
// It is no longer noisy after as many panes in which the excess of the pane is
// below half of MinExcess, or cannot be told. While its excess makes it suspect,
// and while it is noisy, its usual share stands still, and so does the usual ITL.
// Not for ever: what goes on for two half-lives is the new usual.
//
// # What it is not
//
// It is attribution, not proof: the fitted line says what goes together. Other
// things that go together with a tenant's prompts are put down to them: long
// contexts that slow decoding down, another model on the same GPUs. A tenant that
// is heavy by its answers acts by running and is not named. Where the prompts and
// answers of all rise and fall together, an excess is rather too large than too
// small. Where a tenant is served by few replicas, the fleet's latency shows a part
// of what its neighbours there meet. Where engines are so full that latency is no
// line any more, in either direction, less is found and who is found may be wrong.
//
// Nobody is named while the line is not known: where P or the latency does not
// move, or not together (Unidentifiable), where the gateways tell of less than
// four fifths of the engines' tokens (Unaccounted), or in the first panes
// (Warming). A pane with many times the usual tokens or latency is not learned
// from (Incredible), unless panes are like that for two half-lives: then all is
// learned anew. So are all shares where most tokens are of tenants that nobody has
// seen, who are old ones under new names.
//
// tenant.Other is never noisy: who is part of it changes. tenant.Unknown, Invalid
// and Unmapped may be, as each is one kind of sender, and one to be found.
package share
