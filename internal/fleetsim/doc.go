// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleetsim simulates fleets of LLM engines: requests arrive, wait,
// are prefilled and decoded in batches, and every engine shows the metrics
// page that a real vLLM, SGLang or TensorRT-LLM would show, each in the spelling
// of one of its versions.
//
// A [Scenario] says which fleets there are, how requests reach them and which
// faults strike when; [Builtin] has some that show one thing each. A
// [Simulation] plays it in simulated time, as fast as the processor allows; a
// [Server] puts its [Target] pages behind real HTTP and real time. Every random
// choice comes from a stream of its own, named by seed, engine and purpose, so a
// scenario replays exactly and a fault changes nothing but the replica it
// strikes; those in which the router has a part move requests, and a surge adds
// some.
//
// Who watches a simulation gets a [RequestRecord] of every request that ends, with
// its tenant; package gateway makes spans of them.
//
// The latency of one engine step follows its load:
//
//	step = (a + b·n·(1 + c·n/max_num_seqs) + g·p) · noise
//
// for n requests in the batch and p prompt tokens prefilled in that step. A
// decoding request sees one step as its inter-token latency; its time to first
// token is the wait for a place in the batch plus the steps of its prefill.
package fleetsim
