// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"fmt"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

// windowSentence says what a tenant did in a window.
func windowSentence(r *tenant.Record) string {
	var b strings.Builder
	total := uint64(0)
	for _, n := range r.Requests {
		total += n
	}
	fmt.Fprintf(&b, "Tenant %s sent %s", r.Tenant, number(total, "request"))
	if len(r.Models) > 0 {
		b.WriteString(" to " + strings.Join(r.Models, ", "))
	}
	fmt.Fprintf(&b, " from %s to %s", timeOfDay(r.From), timeOfDay(r.To))
	var told [tenant.TokenTypeCount]bool
	for i, n := range r.Tokens {
		told[i] = n > 0 || r.Known[i] > 0
	}
	b.WriteString(": " + strings.Join(append(ends(r), tokens(r.Tokens, told)), ", ") + ".")
	if r.Partial {
		b.WriteString(" This is not all of the window.")
	}
	return b.String()
}

// ends says how requests ended that did not end well.
func ends(r *tenant.Record) (parts []string) {
	if n := r.Requests[tenant.Failed]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", n))
	}
	if n := r.Requests[tenant.Throttled]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d throttled", n))
	}
	return parts
}

// requestSentence says what one request was.
func requestSentence(r *tenant.Request) string {
	var b strings.Builder
	b.WriteString("A request of tenant " + r.Tenant)
	if r.Model != "" {
		b.WriteString(" to " + r.Model)
	}
	switch r.Outcome {
	case tenant.Failed:
		b.WriteString(" failed")
	case tenant.Throttled:
		b.WriteString(" was throttled")
	default:
	}
	b.WriteString(": " + tokens(r.Tokens, r.Known))
	if r.TTFT >= 0 {
		fmt.Fprintf(&b, ", the first after %.3g s", r.TTFT)
	}
	return b.String() + "."
}

// tokens says how many tokens were taken, as far as it is told.
func tokens(n [tenant.TokenTypeCount]uint64, told [tenant.TokenTypeCount]bool) string {
	var parts []string
	input := number(n[tenant.InputUncached]+n[tenant.InputCached], "input token")
	switch {
	case told[tenant.InputUncached] && told[tenant.InputCached]:
		parts = append(parts, fmt.Sprintf("%s (%d cached)", input, n[tenant.InputCached]))
	case told[tenant.InputUncached]:
		parts = append(parts, input)
	case told[tenant.InputCached]:
		parts = append(parts, number(n[tenant.InputCached], "cached input token"))
	}
	if told[tenant.Output] {
		parts = append(parts, number(n[tenant.Output], "output token"))
	}
	if len(parts) == 0 {
		return "tokens not told"
	}
	return strings.Join(parts, " and ")
}

func number(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func timeOfDay(at window.Instant) string { return time.Unix(0, int64(at)).UTC().Format(time.TimeOnly) }
