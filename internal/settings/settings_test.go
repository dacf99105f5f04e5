// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

type config struct {
	Every time.Duration     `mapstructure:"every"`
	Inner []inner           `mapstructure:"inner"`
	Maybe *inner            `mapstructure:"maybe"`
	Free  map[string]string `mapstructure:"free"`
	Any   []any             `mapstructure:"any"`
}

type inner struct {
	Name string `mapstructure:"name"`
}

func (c *config) Unmarshal(conf *confmap.Conf) error { return Unmarshal(conf, c) }

func TestUnmarshal(t *testing.T) {
	var c config
	conf := confmap.NewFromStringMap(map[string]any{
		"every": "30s", "inner": []any{map[string]any{"name": "a"}},
		"free": map[string]any{"whatever": "x"}, "any": []any{"file", map[string]any{"key": 1}},
	})
	require.NoError(t, conf.Unmarshal(&c))
	assert.Equal(t, config{
		Every: 30 * time.Second, Inner: []inner{{"a"}}, Free: map[string]string{"whatever": "x"},
		Any: []any{"file", map[string]any{"key": 1}},
	}, c)
}

func TestUnknownKeysAreNamedWithThoseThatThereAre(t *testing.T) {
	for _, c := range []struct {
		conf map[string]any
		want string
	}{
		{map[string]any{"evry": "30s"}, "evry: unknown key: use one of any, every, free, inner, maybe"},
		{map[string]any{"inner": []any{map[string]any{"nam": "a"}}}, "inner[0].nam: unknown key: use one of name"},
		{map[string]any{"maybe": map[string]any{"nam": "a"}}, "maybe.nam: unknown key: use one of name"},
	} {
		assert.ErrorContains(t, confmap.NewFromStringMap(c.conf).Unmarshal(new(config)), c.want)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-5 * time.Second: `every: -5s is negative: use a positive span of time, as in "5s"`,
		0:                `every: must not be 0s: use a span of time of at least 1s, as in "30s"`,
		time.Millisecond: `every: 1ms is under a second: use at least 1s`,
		300:              `every: 300ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "300s"`,
	} {
		require.EqualError(t, Duration("every", d), want)
	}
	require.NoError(t, Duration("every", time.Second))
}

func TestAliases(t *testing.T) {
	require.NoError(t, Aliases("model_aliases", nil))
	require.NoError(t, Aliases("model_aliases", map[string]string{"chat": "llama", "llama-lora": "llama", "llama": "llama"}))
	for _, c := range []struct {
		aliases map[string]string
		want    string
	}{
		{map[string]string{"chat": ""}, "a name is empty"},
		{map[string]string{"": "llama"}, "a name is empty"},
		{map[string]string{"a": "b", "b": "c"}, "model_aliases: a is another name of b, which is one of c: name the last at once"},
	} {
		require.ErrorContains(t, Aliases("model_aliases", c.aliases), c.want)
	}
}
