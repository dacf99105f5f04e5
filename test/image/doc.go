// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package image tests the image that deploy/docker/Dockerfile describes. It needs no container engine.
package image
