// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	pageBefore = "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{engine=\"0\"} 100.0\n" +
		"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 7.0\n"
	pageAfter = "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{engine=\"0\"} 104.0\n" +
		"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 9.0\n"
)

func TestPageGoesOn(t *testing.T) {
	page, err := newVLLMPage(pageBefore, pageAfter)
	require.NoError(t, err)
	assert.Equal(t, 2, page.families())
	assert.Equal(t,
		"# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{engine=\"0\"} 112\n"+
			"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 7\n",
		string(page.at(3)))
}

func TestPagesThatDoNotMatch(t *testing.T) {
	_, err := newVLLMPage(pageBefore, pageAfter+"vllm:num_requests_waiting 0.0\n")
	require.ErrorContains(t, err, "different lines")
	_, err = newVLLMPage(pageBefore, strings.Replace(pageAfter, "running{", "waiting{", 1))
	require.ErrorContains(t, err, "more than values")
}

func TestSimulatedPageHasTheRealSize(t *testing.T) {
	page, err := simulateVLLM(2 * time.Second)
	require.NoError(t, err)
	samples := 0
	for line := range strings.Lines(string(page.at(1))) {
		if !strings.HasPrefix(line, "#") {
			samples++
		}
	}
	assert.Equal(t, pageSamples, samples)
	assert.NotEqual(t, page.at(0), page.at(1))
}
