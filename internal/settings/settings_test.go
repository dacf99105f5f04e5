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

func TestWindow(t *testing.T) {
	for window, want := range map[time.Duration]string{
		60 * time.Second:   "",
		10 * time.Second:   `window: 10s is shorter than pane (20s): use "20s" or a multiple of it, or a shorter pane`,
		50 * time.Second:   `window: 50s is not a multiple of pane (20s): use "40s" or "1m0s"`,
		80 * time.Second:   `window: 1m20s has 4 panes of 20s, more than 3: use a longer pane or a shorter window`,
		time.Duration(300): `window: 300ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "300s"`,
	} {
		err := Window("window", window, "pane", 20*time.Second, 3)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
	}
	require.NoError(t, Window("window", time.Minute, "pane", 7, 3), "the pane is refused for itself")
}

func TestGroupBy(t *testing.T) {
	require.NoError(t, GroupBy([]string{"model_name", "k8s.cluster.name"}, []string{"signal"}))
	for _, c := range []struct {
		keys []string
		want string
	}{
		{nil, "group_by: there are no keys, so everything would be one fleet: use at least [model_name]"},
		{[]string{"__name"}, `group_by: "__name" is no name of a label: use letters, digits, underscores and dots`},
		{[]string{"signal"}, `group_by: "signal" cannot be a key, derived points use it otherwise: use attributes that a fleet has in common`},
		{[]string{"a.b", "a_b"}, "group_by: a_b is there twice: remove one"},
	} {
		require.EqualError(t, GroupBy(c.keys, []string{"signal"}), c.want)
	}
}
