// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command scorecard plays simulated fleets whose truth is known through the
// judgements, and prints one line a figure,
//
//	name value unit target pass|fail # what it stands on
//
// and below each the figures of rules that people use today, named after a slash
// and held to no target. It exits with status 1 if a figure of ours misses its
// target.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/llmfleet/llmfleet/internal/score"
)

func main() {
	var o score.Options
	flag.BoolVar(&o.Full, "full", false, "play a fleet-week instead of a fleet-day")
	flag.Uint64Var(&o.Seed, "seed", score.DefaultSeed, "`seed` of every random choice")
	flag.StringVar(&o.Data, "data", "", "play the public traces of this `folder` as well")
	only := flag.String("only", ".", "play only worlds whose name matches this regular expression")
	flag.Parse()
	if err := run(os.Stdout, o, *only); err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
}

// legend says what the lines mean.
const legend = `# name value unit target pass|fail # what it stands on; name/rule is the same figure of a rule that people use today
# docs/canary.md, docs/outliers.md and docs/tenants.md say what the worlds and the rules are
`

func run(out io.Writer, o score.Options, only string) (err error) {
	if o.Only, err = regexp.Compile(only); err != nil {
		return err
	}
	length := "fleet-days, false alarms scaled to a week"
	if o.Full {
		length = "fleet-weeks"
	}
	fmt.Fprintf(out, "%s# seed %d, %s\n", legend, o.Seed, length)
	card, err := score.Judgements(o)
	if err != nil {
		return err
	}
	return card.Write(out)
}
