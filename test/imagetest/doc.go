// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package imagetest lays out the root file system that deploy/docker/Dockerfile describes and runs programs in it as a
// container would, without a container engine. It reads the instructions that the Dockerfile uses and refuses others.
package imagetest
