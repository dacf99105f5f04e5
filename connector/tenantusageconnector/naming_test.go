// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// acme is the name of the tenant acme under the key of testdata/key, as
// `printf acme | openssl dgst -sha256 -hmac "$(cat testdata/key)"` begins.
const acme = "e0b9cc15f79d7406"

func TestKeys(t *testing.T) {
	t.Setenv("TENANT_KEY", "correct horse battery staple")
	for _, c := range []TenantConfig{
		{ID: idHash, KeyFile: "testdata/key"}, // which ends in a line break
		{ID: idHash, KeyEnv: "TENANT_KEY"},
	} {
		namer, err := c.namer(zap.NewNop())
		require.NoError(t, err)
		assert.Equal(t, acme, namer.Name("acme"))
	}
}

// TestRandomKey: without a key, names are others after each start, and that is
// told.
func TestRandomKey(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	c := TenantConfig{ID: idHash}
	one, err := c.namer(zap.New(core))
	require.NoError(t, err)
	other, err := c.namer(zap.New(core))
	require.NoError(t, err)
	assert.NotEqual(t, one.Name("acme"), other.Name("acme"))
	require.Equal(t, 2, logs.Len())
	assert.Contains(t, logs.All()[0].Message, "names change with every restart: set tenant.key_env or tenant.key_file")
}

// TestKeysThatCannotBe: errors say what is wrong and where, and show no key.
func TestKeysThatCannotBe(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	require.NoError(t, os.WriteFile(short, []byte("fifteen-bytes-x\n"), 0o600))
	t.Setenv("SHORT_KEY", "fifteen-bytes-x")
	for _, c := range []struct {
		config TenantConfig
		want   string
	}{
		{TenantConfig{ID: idHash, KeyFile: "testdata/none"}, "tenant.key_file: open testdata/none:"},
		{TenantConfig{ID: idHash, KeyFile: short}, "tenant.key_file: " + short + ": the key has 15 bytes: use at least 16 random ones"},
		{TenantConfig{ID: idHash, KeyEnv: "SHORT_KEY"}, "tenant.key_env: SHORT_KEY: the key has 15 bytes"},
		{TenantConfig{ID: idHash, KeyEnv: "NO_SUCH_KEY"}, "tenant.key_env: NO_SUCH_KEY: the key has 0 bytes"},
	} {
		_, err := c.config.namer(zap.NewNop())
		require.ErrorContains(t, err, c.want)
		assert.NotContains(t, err.Error(), "fifteen-bytes-x")
	}
}

func TestMap(t *testing.T) {
	c := TenantConfig{ID: idMap, MapFile: "testdata/tenants.yaml"}
	namer, err := c.namer(zap.NewNop())
	require.NoError(t, err)
	assert.Equal(t, "Acme", namer.Name("team-7f3a"))
	assert.Equal(t, tenant.Unmapped, namer.Name("Acme"))

	path := filepath.Join(t.TempDir(), "tenants.yaml")
	require.NoError(t, os.WriteFile(path, []byte("---\n7: \"null\"\ntrue: 8\n...\n"), 0o600))
	c.MapFile = path
	namer, err = c.namer(zap.NewNop())
	require.NoError(t, err)
	assert.Equal(t, "null", namer.Name("7"), "one document, and what only looks like null")
	assert.Equal(t, "8", namer.Name("true"))
}

// TestMapsThatCannotBe: errors name the file and the line, and nobody.
func TestMapsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "is no map of names",
		"- sk-1":                        "is no map of names",
		"sk-1":                          "is no map of names",
		"sk-1: [c":                      "is not YAML (line 1)",
		"a: b\nsk-1:":                   "line 2: names nobody",
		"a: b\nsk-1: {c: d}":            "line 2: names nobody",
		"a: b\n[sk-1]: d":               "line 2: names nobody",
		"a: b\nsk-1: null":              "line 2: names nobody",
		"a: b\nsk-1: ~":                 "line 2: names nobody",
		"a: b\n~: sk-1":                 "line 2: names nobody",
		"a: b\n\"\": sk-1":              "line 2: names nobody",
		"a: b\nsk-2: !!null x":          "line 2: names nobody",
		"a: b\n---\nsk-1: c":            "line 2: another document begins",
		"---\na: b\n---\n":              "another document begins",
		"a: b\n---\nsk-1: [c":           "is not YAML (line",
		"sk-1: __other__":               "line 1: names that begin with __ are taken: use another",
		"sk-1: a\nsk-2: b\nsk-1: again": "line 3: is there twice: remove one",
	} {
		path := filepath.Join(t.TempDir(), "tenants.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		c := TenantConfig{ID: idMap, MapFile: path}
		_, err := c.namer(zap.NewNop())
		require.ErrorContains(t, err, want, text)
		assert.ErrorContains(t, err, "tenant.map_file: "+path, text)
		assert.NotContains(t, err.Error(), "sk-", text)
	}
	c := TenantConfig{ID: idMap, MapFile: "testdata/none"}
	_, err := c.namer(zap.NewNop())
	require.ErrorContains(t, err, "tenant.map_file: open testdata/none:")
}

// TestStartFails: a key that cannot be read is an error of the start, of either
// connector, and a shutdown after it is none.
func TestStartFails(t *testing.T) {
	s := newStage(t, createDefaultConfig().(*Config))
	s.config.Tenant.KeyFile = "testdata/none"
	s.metrics, s.logs = s.makeMetrics(), s.makeLogs()
	require.ErrorContains(t, s.metrics.Start(t.Context(), componenttest.NewNopHost()), "tenant.key_file")
	require.ErrorContains(t, s.logs.Start(t.Context(), componenttest.NewNopHost()), "tenant.key_file")
	s.shutdown()
}
