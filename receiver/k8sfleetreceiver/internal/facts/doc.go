// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package facts reads what Kubernetes' objects and events say of a pod's start:
// objects in, lifecycle facts out, each at the time that the source told. It talks
// to nobody, and reads no clock.
package facts
