// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeschema writes the JSON Schemas that kubeconform checks manifests against: those of Kubernetes releases, made
// from the OpenAPI document in the Go module of each, and those of custom resources, made from the definitions that their
// operators' Go modules carry. They are as strict as a server with fieldValidation=Strict: a field that is not there is refused.
package kubeschema
