// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway stands before a simulated fleet and tells of its requests as
// real gateways and engines do: by spans, sent as OTLP over HTTP.
//
//	exporter, err := gateway.New(gateway.Options{Endpoint: "http://127.0.0.1:4318"})
//	simulation.Watch(exporter.Add)
//	exporter.Run(ctx) // beside what plays the simulation
package gateway
