// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/settings"
)

// The most that may be asked for: every bound of memory stays one.
const (
	mostTop     = 1000
	mostTracked = 100_000
	mostLabels  = 1000 // models, and tiers of a model
	mostTenants = 1_000_000
	mostBounds  = 160
	mostWindow  = 24 * time.Hour
)

// Validate reports every setting that cannot work, by its key and with a remedy.
func (c *Config) Validate() error {
	errs := []error{
		settings.Duration("interval", c.Interval),
		settings.Duration("half_life", c.HalfLife),
		settings.Duration("ttl", c.TTL),
		settings.Duration("events.window", c.Events.Window),
		inRange("top", c.Top, mostTop),
		inRange("track", c.Track, mostTracked),
		inRange("max_models", c.MaxModels, mostLabels),
		inRange("max_tiers", c.MaxTiers, mostLabels),
		inRange("events.max_tenants", c.Events.MaxTenants, mostTenants),
		validNames("tier.from", c.Tier.From),
		c.Tenant.validate(),
		c.validSpans(),
		c.validSources(),
		settings.Aliases("model_aliases", c.ModelAliases),
		c.TTFT.validate(),
		c.Metrics.Validate(componentType),
	}
	if c.Top >= 1 && c.Track >= 1 && c.Track < c.Top {
		errs = append(errs, fmt.Errorf("track: %d tenants are followed, fewer than the top %d: use at least 10 times top", c.Track, c.Top))
	}
	if c.Events.Window > mostWindow {
		errs = append(errs, fmt.Errorf("events.window: %s is too long, records would come once in that time: use at most %q", c.Events.Window, mostWindow.String()))
	}
	if c.Interval >= time.Second && c.TTL >= time.Second && c.TTL < 2*c.Interval {
		errs = append(errs, fmt.Errorf("ttl: %s is shorter than two intervals of %s: use at least %q", c.TTL, c.Interval, (2*c.Interval).String()))
	}
	return errors.Join(errs...)
}

func inRange(key string, n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("%s: %d is out of range: use 1 to %d", key, n, most)
	}
	return nil
}

func validNames(key string, names []string) error {
	if slices.Contains(names, "") {
		return fmt.Errorf("%s: one is empty: use the key of an attribute of spans", key)
	}
	return nil
}

// validSpans holds what is read of spans against what can be read.
func (c *Config) validSpans() error {
	var errs []error
	for _, name := range c.Spans {
		if _, ok := intake.RequestClassOf(name); !ok {
			errs = append(errs, fmt.Errorf("spans: unknown choice %q: use gateway, router or engine", name))
		}
	}
	if len(c.Spans) == 0 {
		errs = append(errs, errors.New("spans: there are none, so nothing would be counted: use gateway, router or engine"))
	}
	for field, names := range c.Attributes {
		errs = append(errs, validNames("attributes."+field, names))
	}
	o := c.requestOptions()
	if err := o.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("attributes: %w", err))
	}
	return errors.Join(errs...)
}

// validSources finds sources that are the same but for their case.
func (c *Config) validSources() error {
	seen := make(map[string]bool, len(c.InputIncludesCached))
	for source := range c.InputIncludesCached {
		lower := strings.ToLower(source)
		if seen[lower] {
			return fmt.Errorf("input_includes_cached: %q is there twice, in different case: remove one", lower)
		}
		seen[lower] = true
	}
	return nil
}

func (c *TenantConfig) validate() error {
	errs := []error{validNames("tenant.from", c.From)}
	if len(c.From) == 0 {
		errs = append(errs, errors.New("tenant.from: there is none, so nobody would be told from anybody: use the attributes that name the tenant, as tenant.id"))
	}
	hasKey := c.KeyEnv != "" || c.KeyFile != ""
	switch c.ID {
	case idHash:
		if c.KeyEnv != "" && c.KeyFile != "" {
			errs = append(errs, errors.New("tenant.key_env: there is a key_file as well: use one of them"))
		}
	case idPlain:
		errs = append(errs, c.validPlain())
	case idMap:
		if c.MapFile == "" {
			errs = append(errs, errors.New("tenant.map_file: id: map needs one: use the path of a YAML file, a line for each tenant, as in \"raw: name\""))
		}
	default:
		errs = append(errs, fmt.Errorf("tenant.id: unknown choice %q: use %q, %q or %q", c.ID, idHash, idMap, idPlain))
	}
	if hasKey && c.ID != idHash {
		errs = append(errs, fmt.Errorf("tenant.id: %s uses no key: use id: hash, or remove key_env and key_file", c.ID))
	}
	if c.MapFile != "" && c.ID != idMap {
		errs = append(errs, fmt.Errorf("tenant.id: %s uses no map: use id: map, or remove map_file", c.ID))
	}
	return errors.Join(errs...)
}

// validPlain lets names through as they are only from attributes that were
// chosen, and that do not carry a credential.
func (c *TenantConfig) validPlain() error {
	if slices.Equal(c.From, intake.DefaultTenantAttributes()) {
		return errors.New("tenant.from: with id: plain, name the attributes that your authenticating gateway sets, as in [tenant.id]: in others, clients may say what they want")
	}
	var errs []error
	for _, name := range c.From {
		if carriesCredential(name) {
			errs = append(errs, fmt.Errorf("tenant.id: plain would show what is in %s, which may be a credential: use id: hash, or take it out of tenant.from", name))
		}
	}
	return errors.Join(errs...)
}

// credentialTerms are in the names of attributes that carry credentials, in
// whichever way their words are set apart.
var credentialTerms = []string{
	"authorization", "apikey", "virtualkey", "accesskey", "token", "cookie", "secret", "password", "credential", "bearer",
}

// credentialWords are words of such names: within others, as author and keyword,
// they mean something else.
var credentialWords = []string{"auth", "jwt", "key", "session"}

// harmlessEnds are how names end of what a credential goes by.
var harmlessEnds = []string{"id", "alias", "name", "hash"}

// carriesCredential tells from an attribute's name that it carries a credential,
// rather than what a credential goes by.
func carriesCredential(name string) bool {
	words := wordsOf(name)
	if len(words) > 0 && slices.Contains(harmlessEnds, words[len(words)-1]) {
		return false
	}
	bare := strings.Join(words, "")
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(credentialWords, word) }) ||
		slices.ContainsFunc(credentialTerms, func(term string) bool { return strings.Contains(bare, term) })
}

var wordEnd = regexp.MustCompile(`[^\pL\pN]+|(\p{Ll})(\p{Lu})`)

// wordsOf are the words of a name in lower case: set apart by what is no letter
// or digit, or by capitals.
func wordsOf(name string) []string {
	return strings.Fields(strings.ToLower(wordEnd.ReplaceAllString(name, "$1 $2")))
}

func (c *TTFTConfig) validate() error {
	if len(c.Bounds) == 0 || len(c.Bounds) > mostBounds {
		return fmt.Errorf("ttft.bounds: there are %d: use 1 to %d upper bounds of buckets, in seconds", len(c.Bounds), mostBounds)
	}
	last := 0.0
	for _, bound := range c.Bounds {
		if !(bound > last) || math.IsInf(bound, 1) { // NaN fails the first
			return fmt.Errorf("ttft.bounds: %v does not follow %v: use numbers of seconds above 0 that ascend", bound, last)
		}
		last = bound
	}
	return nil
}
