// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// secrets are made up, in the shapes in which those who issue them document
// them.
var secrets = []string{
	"sk-abc", "SK-abc", "sk-proj-abc", "sk-ant-api03-abc", "sk-lf-abc", "sk_live_51abc", "sk_test_51abc", "rk_live_51abc",
	"AIzaSyA", "ya29.abc", "AKIAIOSFODNN7EXAMPLE", "ASIAXYZ", "gsk_abc", "csk-abc", "xai-abc", "nvapi-abc", "pplx-abc", "r8_abc",
	"pk-lf-abc", "hf_abc", "tgp_v1_abc", "ghp_abc", "github_pat_abc", "glpat-abc", "xoxb-1-2", "eyJhbGciOiJIUzI1NiJ9.e30.abc",
	"Bearer x", "bearer abc", "Basic dXNlcjpwYXNz", "Token abc", "ApiKey abc", "Negotiate abc", "Digest username=\"x\"",
	"AccountKey=", "AccountKey=abc==", "-----BEGIN PRIVATE KEY-----",
}

func TestCredentials(t *testing.T) {
	for _, secret := range secrets {
		for _, before := range []string{
			"", " ", "\"", "'", "key=", "x:", "x: ", "a,", "a, ", "a;", "Authorization: ", "(", "{\"k\":\"", "https://x/?key=", "a&b=",
		} {
			assert.True(t, Credential(before+secret), "%q", before+secret)
		}
	}
}

func TestNoCredentials(t *testing.T) {
	for _, text := range []string{
		"", " ", "=", "acme", "team-sk-north", "task-force", "ASIA", "Asia Pacific", "asia-east1", "aiza", "Basics", "basic", "premium, basic",
		"Token", "tokenizer: fast", "mybasic plan", "api", "sk", "hf", "a - b", "--", "eye", "EYJafjallajökull", "müller",
		"meta-llama/Llama-3.1-8B-Instruct", "qwen3:32b", "ft:gpt-4o:acme::9x1", "anthropic.claude-sonnet-5-v1:0", "models/basic/7b",
		"0.11.0", "main 0.11.0 3fa9c", "3f1c9e0b7a6d5c42",
	} {
		assert.False(t, Credential(text), "%q", text)
	}
}

// TestCredentialsAreShownNowhere: of no model, tier or variant either.
func TestCredentialsAreShownNowhere(t *testing.T) {
	d := openDesk(t, LedgerOptions{})
	for _, secret := range secrets {
		assert.Equal(t, Invalid, NewNamer(NamerOptions{Mode: Plain}).Name(secret), "%q", secret)
		d.Count(&Request{Tenant: "a", Model: secret, Tier: secret, TTFT: -1}, d.now)
	}
	d.Count(&Request{Tenant: "a", Model: "sk-abc", Tier: "gold", TTFT: -1}, d.now)
	pages := d.closeAfter(0)
	assert.Len(t, pages, 1)
	assert.EqualValues(t, len(secrets), pages[Invalid].tiers[Invalid].Requests[OK])
}
