// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// reason is why a flag turned off.
type reason uint8

const (
	recovered reason = iota // the verdict says so
	departed                // the replica, or whatever it is, is not there any more
	withheld                // it is there, and not judged any more
	silent                  // nothing was heard of it
	promoted                // the canary that it was about is the majority
)

var reasonNames = []string{
	recovered: "recovered", departed: "departed", withheld: "withheld", silent: "silent", promoted: "promoted",
}

// String is the reason as the attribute has it.
func (r reason) String() string { return reasonNames[r] }

// onsetSentence tells that something is what it should not be.
func onsetSentence(a *alarm, rd, inFleet *reading) string {
	return sentence(who(rd.labels)+" is "+a.is, a.numbers(rd, inFleet, on))
}

// clearSentence tells that it no longer is, and how long it was.
func clearSentence(a *alarm, rd, inFleet *reading, why reason, lasted time.Duration) string {
	name, was := who(rd.labels), "; it had been "+a.is+" for "+span(lasted)+"."
	switch why {
	case departed:
		return name + " departed" + was
	case withheld:
		return name + " is no longer judged" + was
	case silent:
		return name + " is not heard of any more" + was
	default:
		return sentence(name+" is no longer "+a.is+", after "+span(lasted), a.numbers(rd, inFleet, off))
	}
}

// changeSentence tells of a variant what it was and is, as far as that is known.
func changeSentence(labels []fleet.Label, was, is *variant) string {
	var parts []string
	for i, name := range variantNames {
		switch {
		case was[i] == is[i] || is[i] == "":
		case was[i] == "":
			parts = append(parts, words(name)+" "+is[i])
		default:
			parts = append(parts, words(name)+" "+was[i]+" to "+is[i])
		}
	}
	return sentence(who(labels)+" changed its variant", parts)
}

func sentence(claim string, parts []string) string {
	if len(parts) == 0 {
		return claim + "."
	}
	return claim + ": " + strings.Join(parts, "; ") + "."
}

// who names what a sentence is about, as on-call engineers do.
func who(labels []fleet.Label) string {
	var name string
	replica, tenant := labelOf(labels, emit.AttributeReplica), labelOf(labels, emit.AttributeTenant)
	switch pod := labelOf(labels, labelPod); {
	case tenant != "":
		name = "Tenant " + tenant
	case replica == "":
		return "Node " + labelOf(labels, emit.AttributeNode)
	case pod != "":
		name = "Replica " + strings.TrimPrefix(labelOf(labels, labelNamespace)+"/"+pod, "/")
	default:
		name = "Replica " + replica
	}
	return ofModel(name, labels)
}

// ofModel adds to a name which model it is of, and its engine.
func ofModel(name string, labels []fleet.Label) string {
	if model := labelOf(labels, fleet.ModelName.String()); model != "" {
		name += " of " + model
	}
	if engine := labelOf(labels, fleet.EngineName.String()); engine != "" {
		name += " (" + engine + ")"
	}
	return name
}

// words are a name as it is spoken.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// How many significant digits numbers have: those that are looked at, and those
// that are compared.
const (
	coarse = 2
	fine   = 3
)

func number(v float64) string { return rounded(v, coarse) }

// rounded has so many significant digits, and all that stand before the point.
func rounded(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', digits-1, 64), "e") // once rounded: that of 9.99 may be that of 10
	before, _ := strconv.Atoi(exponent)                                           // there is one in every number
	return strconv.FormatFloat(v, 'f', max(0, digits-1-before), 64)
}

// seconds are a time in the unit that is easiest to read.
func seconds(v float64, digits int) string {
	if v < 1 {
		return rounded(v*1000, digits) + " ms"
	}
	return rounded(v, digits) + " s"
}

func percent(ratio float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(ratio*100, 'f', 1, 64), ".0") + " %"
}

// span is a length of time without the units that are zero at its end.
func span(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// share is the value of the attribute quantile, 0 if it is no number.
func share(quantile string) float64 {
	q, err := strconv.ParseFloat(quantile, 64)
	if err != nil {
		return 0
	}
	return q
}

// percentile is a quantile as it is spoken: 0.95 is p95.
func percentile(quantile string) string {
	const decimals = 1e4 // of a percentage: 0.999 is p99.9, whatever the multiplication makes of it
	return "p" + strconv.FormatFloat(math.Round(share(quantile)*100*decimals)/decimals, 'f', -1, 64)
}
