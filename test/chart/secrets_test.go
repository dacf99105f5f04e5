// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// secretKey is a key of a collector's configuration whose value lets someone in. Those that name a file end otherwise.
var secretKey = regexp.MustCompile(`(?i)(^|_)(password|passphrase|token|credentials|authorization|(api|access|private|secret)_?key|(key|cert|ca)_pem|secret)$`)

// TestSecretsAreNamedOnly: the chart makes no Secret and writes none into a configuration: what lets someone in is a file of
// a mounted Secret, or an environment variable that is taken from one.
func TestSecretsAreNamedOnly(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			assert.Empty(t, of[corev1.Secret](t, w.all, "Secret"))
			fromSecret := map[string]bool{}
			for _, variable := range w.container(t).Env {
				fromSecret["${env:"+variable.Name+"}"] = variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil
			}
			config := w.parsed(t)
			for _, components := range []map[string]map[string]any{
				config.Receivers, config.Processors, config.Exporters, config.Connectors, config.Extensions,
			} {
				for name, body := range components {
					for key, value := range secretsOf(body) {
						assert.True(t, fromSecret[value], "%s: %s is written as %q", name, key, value)
					}
				}
			}
		})
	}
}

// secretsOf returns the secrets in a part of a configuration, by their keys.
func secretsOf(tree any) map[string]string {
	found := map[string]string{}
	switch part := tree.(type) {
	case map[string]any:
		for key, value := range part {
			if text, ok := value.(string); ok && secretKey.MatchString(key) {
				found[key] = text
			}
			for inner, text := range secretsOf(value) {
				found[key+"."+inner] = text
			}
		}
	case []any:
		for _, value := range part {
			maps.Copy(found, secretsOf(value))
		}
	}
	return found
}

// TestSecretsAreFound: the search finds what it is there to find.
func TestSecretsAreFound(t *testing.T) {
	t.Parallel()
	found := secretsOf(map[string]any{
		"auth":    map[string]any{"bearer_token": "a", "token_file": "/b"},
		"jobs":    []any{map[string]any{"basic_auth": map[string]any{"password": "c", "username": "d"}}},
		"headers": map[string]any{"Authorization": "e"},
		"tls":     map[string]any{"key_file": "/f", "key_pem": "g"},
	})
	assert.Equal(t, map[string]string{
		"auth.bearer_token": "a", "jobs.basic_auth.password": "c", "headers.Authorization": "e", "tls.key_pem": "g",
	}, found)
}
