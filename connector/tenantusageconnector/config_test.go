// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/settingstest"
)

// remedies is what a user is told of each file in testdata/config/invalid: the
// key, and what to write instead.
var remedies = map[string][]string{
	"unknown_key":           {"topp: unknown key: use one of attributes, events, half_life,"},
	"unknown_tenant_key":    {"tenant.form: unknown key: use one of from, id, key_env, key_file, map_file"},
	"interval_without_unit": {`interval: 30ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "30s"`},
	"window_zero":           {"events.window: must not be 0s: use a span of time of at least 1s"},
	"window_too_long":       {`events.window: 24h0m1s is too long, records would come once in that time: use at most "24h0m0s"`},
	"sources_twice":         {`input_includes_cached: "edge" is there twice, in different case: remove one`},
	"plain_session":         {"tenant.id: plain would show what is in http.request.header.x-session, which may be a credential"},
	"half_life_negative":    {"half_life: -10m0s is negative: use a positive span of time"},
	"ttl_short":             {`ttl: 30s is shorter than two intervals of 30s: use at least "1m0s"`},
	"top_zero":              {"top: 0 is out of range: use 1 to 1000"},
	"top_too_many":          {"top: 1001 is out of range: use 1 to 1000"},
	"track_too_few":         {"track: 99 tenants are followed, fewer than the top 100: use at least 10 times top"},
	"track_too_many":        {"track: 100001 is out of range: use 1 to 100000"},
	"max_models_zero":       {"max_models: 0 is out of range: use 1 to 1000"},
	"max_tiers_too_many":    {"max_tiers: 1001 is out of range: use 1 to 1000"},
	"max_tenants_too_many":  {"events.max_tenants: 1000001 is out of range: use 1 to 1000000"},
	"tenant_from_none":      {"tenant.from: there is none", "use the attributes that name the tenant, as tenant.id"},
	"tenant_from_empty":     {"tenant.from: one is empty: use the key of an attribute of spans"},
	"tier_from_empty":       {"tier.from: one is empty: use the key of an attribute of spans"},
	"id_unknown":            {`tenant.id: unknown choice "raw": use "hash", "map" or "plain"`},
	"plain_defaults":        {"tenant.from: with id: plain, name the attributes that your authenticating gateway sets, as in [tenant.id]"},
	"plain_authorization":   {"tenant.id: plain would show what is in http.request.header.authorization, which may be a credential: use id: hash, or take it out of tenant.from"},
	"plain_api_key":         {"tenant.id: plain would show what is in http.request.header.x-api-key"},
	"plain_cookie":          {"tenant.id: plain would show what is in http.request.header.cookie"},
	"plain_token":           {"tenant.id: plain would show what is in access_token"},
	"plain_key":             {"tenant.id: plain uses no key: use id: hash, or remove key_env and key_file"},
	"hash_map":              {"tenant.id: hash uses no map: use id: map, or remove map_file"},
	"map_without_file":      {"tenant.map_file: id: map needs one: use the path of a YAML file"},
	"map_key":               {"tenant.id: map uses no key: use id: hash, or remove key_env and key_file"},
	"two_keys":              {"tenant.key_env: there is a key_file as well: use one of them"},
	"spans_none":            {"spans: there are none, so nothing would be counted: use gateway, router or engine"},
	"spans_unknown":         {`spans: unknown choice "client": use gateway, router or engine`},
	"attributes_unknown":    {"attributes: ", `"input"`, "input_tokens"},
	"attributes_empty":      {"attributes.input_tokens: one is empty: use the key of an attribute of spans"},
	"aliases":               {"model_aliases: a is another name of b, which is one of c: name the last at once"},
	"bounds_none":           {"ttft.bounds: there are 0: use 1 to 160 upper bounds of buckets, in seconds"},
	"bounds_fall":           {"ttft.bounds: 0.5 does not follow 1: use numbers of seconds above 0 that ascend"},
	"bounds_zero":           {"ttft.bounds: 0 does not follow 0"},
	"bounds_infinite":       {"ttft.bounds: +Inf does not follow 1"},
	"metrics_unknown":       {`metrics: tenant_usage emits no metric "llmfleet.fleet.latency": use one of llmfleet.tenant.tokens,`},
}

func TestInvalidConfig(t *testing.T) { settingstest.Refused[*Config](t, NewFactory(), remedies) }

func TestAllErrorsAtOnce(t *testing.T) {
	err := (&Config{TTFT: TTFTConfig{Bounds: []float64{math.NaN()}}}).Validate()
	for _, key := range []string{
		"interval", "half_life", "ttl", "events.window", "top", "track", "max_models", "max_tiers", "events.max_tenants",
		"tenant.from", "tenant.id", "spans", "ttft.bounds: NaN does not follow",
	} {
		assert.ErrorContains(t, err, key)
	}
}

func TestEmptyBodyHasDocumentedDefaults(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Interval: 30 * time.Second, Top: 20, Track: 512, HalfLife: 10 * time.Minute, TTL: time.Hour, MaxModels: 32, MaxTiers: 16,
		Tenant: TenantConfig{From: intake.DefaultTenantAttributes(), ID: "hash"},
		Tier:   TierConfig{From: intake.DefaultTierAttributes()},
		Spans:  []string{"gateway", "engine"},
		TTFT:   TTFTConfig{Bounds: []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}},
		Events: EventsConfig{Window: time.Minute, MaxTenants: 20_000},
	}, config)
}

func TestEverySetting(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/full.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Interval: 15 * time.Second, Top: 50, Track: 1000, HalfLife: 5 * time.Minute, TTL: 2 * time.Hour, MaxModels: 8, MaxTiers: 4,
		Tenant:              TenantConfig{From: []string{"http.request.header.authorization"}, ID: "hash", KeyEnv: "TENANT_KEY"},
		Tier:                TierConfig{From: []string{"http.request.header.x-plan"}},
		Spans:               []string{"gateway"},
		InputIncludesCached: map[string]bool{"my-gateway": false},
		Attributes:          map[string][]string{"input_tokens": {"tokens.in"}},
		ModelAliases:        map[string]string{"chat": "qwen3-8b"},
		TTFT:                TTFTConfig{Bounds: []float64{.1, .5, 2}, Exponential: true},
		Events:              EventsConfig{Window: 5 * time.Minute, MaxTenants: 1000, EachRequest: true},
		Metrics:             emit.Switches{"llmfleet.tenant.ttft": {Enabled: false}},
	}, config)
}

// TestLimits: each is allowed.
func TestLimits(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Top, config.Track, config.MaxModels, config.MaxTiers, config.Events.MaxTenants = 1000, 100_000, 1000, 1000, 1_000_000
	config.Interval, config.TTL, config.Events.Window, config.HalfLife = time.Second, 2*time.Second, time.Second, time.Second
	require.NoError(t, config.Validate())
	config.Events.Window = 24 * time.Hour
	config.Top, config.Track, config.MaxModels, config.MaxTiers, config.Events.MaxTenants = 1, 1, 1, 1, 1
	require.NoError(t, config.Validate())
}

// TestPlainAttributes: what names a credential without being it may be shown.
func TestPlainAttributes(t *testing.T) {
	for name, credential := range map[string]bool{
		"tenant.id": false, "litellm.team.id": false, "metadata.user_api_key_team_id": false, "metadata.user_api_key_alias": false,
		"fairness_id": false, "http.request.header.x-tenant-id": false,
		"authorization": true, "http.request.header.Authorization": true, "x-api-key": true, "api_key": true, "apikey": true,
		"auth": true, "x-auth": true, "auth.user": true, "jwt": true, "jwt.claims": true, "http.request.header.x-session": true, "sessionKey": true,
		"Key": true, "x_key": true, "tenant.key": true, "apiKey": true, "x-auth-token": true,
		"author": false, "keyword": false, "monkey": false, "sessions": false, "authority": false, "jwtenant": false, "session.id": false,
		"sessionId": false, "key.hash": false, "auth_alias": false, "jwt-name": false, "tenant": false, "": false,
		"http.request.header.cookie": true, "auth.token": true, "client_secret": true, "x-virtual-key": true, "aws_access_key": true,
	} {
		assert.Equal(t, credential, carriesCredential(name), name)
	}
}
