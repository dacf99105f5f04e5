// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tenants says who sends a fleet's requests: some that are named, and others
// who share the rest by Zipf's law. What is left without others names no tenant.
// With a ServeGen trace its clients are the tenants, client-ID each.
type Tenants struct {
	// Count is how many others there are: tenant-1, who sends most, to
	// tenant-Count.
	Count int `yaml:"count"`
	// Zipf is their exponent: tenant-k sends in proportion to k^-Zipf.
	// Default: 1.
	Zipf *float64 `yaml:"zipf"`
	// Tiers of all: the named first, then the others; the list repeats from the
	// start.
	Tiers []string `yaml:"tiers"`
	// Named tenants.
	Named []Tenant `yaml:"named"`
}

// Tenant is one who sends requests.
type Tenant struct {
	// Name of the tenant.
	Name string `yaml:"name"`
	// Share of the fleet's requests, above 0.
	Share float64 `yaml:"share"`
	// Tier of the tenant. Default: what Tenants.Tiers gives to its place.
	Tier string `yaml:"tier"`
	// Prompt is the tenant's own prompt tokens. Default: the fleet's, or the
	// trace's.
	Prompt Tokens `yaml:"prompt_tokens"`
	// RateLimit is how many requests a second the gateway lets through, with a
	// burst of one second's; it turns the others away. Default: no limit.
	RateLimit float64 `yaml:"rate_limit"`
}

// mostTenants of one fleet that are drawn.
const mostTenants = 1_000_000

const (
	otherPrefix  = "tenant-"
	clientPrefix = "client-"
)

func (t *Tenants) setDefaults(fleetPrompt float64) {
	if t.Zipf == nil {
		t.Zipf = new(1.0)
	}
	t.Named = slices.Clone(t.Named)
	for i := range t.Named {
		if t.Named[i].hasPrompt() {
			t.Named[i].Prompt.setDefaults(fleetPrompt)
		}
	}
}

func (t *Tenant) hasPrompt() bool { return t.Prompt != Tokens{} }

// size is how many tenants there are.
func (t *Tenants) size() int { return len(t.Named) + t.Count }

// name of tenant number n, from 1; empty for 0, who is nobody.
func (t *Tenants) name(n int) string {
	switch {
	case n == 0:
		return ""
	case n <= len(t.Named):
		return t.Named[n-1].Name
	default:
		return otherPrefix + strconv.Itoa(n-len(t.Named))
	}
}

// tier of tenant number n; empty if it has none.
func (t *Tenants) tier(n int) string {
	switch {
	case n == 0:
		return ""
	case n <= len(t.Named) && t.Named[n-1].Tier != "":
		return t.Named[n-1].Tier
	default:
		return repeated(t.Tiers, n-1)
	}
}

// number of the tenant of that name; 0 if there is none.
func (t *Tenants) number(name string) int {
	if i := slices.IndexFunc(t.Named, func(named Tenant) bool { return named.Name == name }); i >= 0 {
		return i + 1
	}
	rank, found := strings.CutPrefix(name, otherPrefix)
	if k, err := strconv.Atoi(rank); found && err == nil && k >= 1 && k <= t.Count {
		return len(t.Named) + k
	}
	return 0
}

// shares of the requests, by number less 1. They sum to less than 1 if some
// requests name nobody.
func (t *Tenants) shares() []float64 {
	shares := make([]float64, 0, t.size())
	rest := 1.0
	for i := range t.Named {
		shares = append(shares, t.Named[i].Share)
		rest -= t.Named[i].Share
	}
	total := 0.0
	for k := range t.Count {
		total += math.Pow(float64(k+1), -*t.Zipf)
	}
	for k := range t.Count {
		shares = append(shares, rest*math.Pow(float64(k+1), -*t.Zipf)/total)
	}
	return shares
}

func (t *Tenants) validate(key string, arrivals *Arrivals, errs *mistakes) {
	if arrivals.Format == ServeGen && t.size() > 0 {
		errs.add(key, "count and named are not read with format: servegen, whose clients are the tenants: leave them out")
		return
	}
	if t.Count < 0 || t.Count > mostTenants {
		errs.add(key+".count", "is %d: write 0 to %d", t.Count, mostTenants)
	}
	if errs.notNegative(key+".zipf", *t.Zipf); math.IsInf(*t.Zipf, 1) {
		errs.add(key+".zipf", "is infinite: write for example 1")
	}
	if slices.Contains(t.Tiers, "") {
		errs.add(key+".tiers", "holds an empty word: write a name, or leave the list out")
	}
	names, sum := map[string]bool{}, 0.0
	for i := range t.Named {
		named := &t.Named[i]
		at := fmt.Sprintf("%s.named[%d]", key, i)
		if named.Name == "" || names[named.Name] || strings.HasPrefix(named.Name, otherPrefix) {
			errs.add(at+".name", "is %q: write a name of its own that does not begin with %s, as those of the others do", named.Name, otherPrefix)
		}
		names[named.Name] = true
		sum += named.Share
		named.validate(at, errs)
	}
	if sum > 1+1e-9 || t.Count > 0 && sum > 1-1e-9 {
		errs.add(key+".named", "have shares of %v in all: write at most 1, and less if count says that there are others", sum)
	}
}

func (t *Tenant) validate(key string, errs *mistakes) {
	if !(t.Share > 0) || math.IsInf(t.Share, 1) {
		errs.add(key+".share", "is %v: write the tenant's share of the requests, above 0", t.Share)
	}
	if t.hasPrompt() {
		t.Prompt.validate(key+".prompt_tokens", errs)
	}
	errs.notNegative(key+".rate_limit", t.RateLimit)
}
