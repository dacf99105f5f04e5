// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/fleetsim/gateway"
)

const usage = `fleetsim serves the metrics pages of simulated LLM engines: requests arrive,
wait and run in batches, latency follows load, and faults strike as asked.
Page i is at port+i, path /metrics, or /prometheus/metrics for TensorRT-LLM.
Spans of the requests go to where --otlp says.

Usage:
  fleetsim [flags]

Examples:
  Eight vLLM replicas, number 3 of them 1.8 times as slow, and four of SGLang:
    fleetsim --vllm 8 --slow 3=1.8 --sglang 4
  Three of TensorRT-LLM, and four vLLM replicas as version 0.6 wrote its page:
    fleetsim --tensorrt-llm 3 --vllm 4 --vllm-version v0.6
  Fleets and faults from a file, and what was injected into another:
    fleetsim --scenario fleet.yaml --answer-key faults.jsonl
  A scenario that comes with fleetsim, drawn anew:
    fleetsim --scenario black_hole --seed 2
  One of 200 tenants slows all others down, and the gateway tells of each request:
    fleetsim --scenario noisy_neighbour --otlp http://127.0.0.1:4318

What a scenario file may hold: cmd/fleetsim/README.md in llmfleet's repository.

Flags:
`

// options are the command's flags.
type options struct {
	scenario  string
	listen    string
	port      port
	seed      uint64
	seedGiven bool
	answerKey string
	otlp      string
	sources   sources
	quick     quickFleets
}

// parseFlags reads the arguments. Help goes to out, mistakes only into the
// error.
func parseFlags(args []string, out io.Writer) (options, error) {
	o := options{port: 18100, sources: sources{gateway.Gateway}, quick: quickFleets{vllm: 4, rate: 4}}
	flags := flag.NewFlagSet("fleetsim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.scenario, "scenario", "", "read fleets and faults from this `file` instead of from flags, or play one that\ncomes with fleetsim: "+builtins())
	flags.StringVar(&o.listen, "listen", "127.0.0.1", "`address` of this machine to listen at; 0.0.0.0 is all of them")
	flags.Var(&o.port, "port", "first `port`; page i is at port+i, and 0 lets the system choose")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of every random choice; overrides the scenario's")
	flags.StringVar(&o.answerKey, "answer-key", "", "write the injected faults as JSON lines to this `file`, or to stdout with -")
	flags.StringVar(&o.otlp, "otlp", "", "send a span of each request to this OTLP/HTTP `URL`, such as http://127.0.0.1:4318")
	flags.Var(&o.sources, "spans", "`who` tells of a request: gateway, engines (vLLM's own spans), or both as\ngateway,engines; with --otlp")
	flags.Var(&o.quick.vllm, "vllm", "`number` of vLLM replicas")
	flags.Var(&o.quick.sglang, "sglang", "`number` of SGLang replicas")
	flags.Var(&o.quick.tensorrtLLM, "tensorrt-llm", "`number` of TensorRT-LLM replicas")
	flags.StringVar(&o.quick.vllmVersion, "vllm-version", "current", "how vLLM spells its page: `version` v0.6, v0.9.2, v0.11, current, rust, or ray,\nwhere one page shows all replicas")
	flags.Var(&o.quick.rate, "rate", "`requests` a second for each replica")
	flags.Var(&o.quick.tenants, "tenants", "`number` of tenants who send the requests of each fleet, by Zipf's law")
	flags.Var(&o.quick.slow, "slow", "`I=F` makes every step of engine I take F times as long from the start; may be\nrepeated. Engines are numbered from 0: vLLM's first, then SGLang's, then\nTensorRT-LLM's. With --vllm 4 --sglang 2, engine 5 is the second of SGLang")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, errors.Join(printHelp(out, flags), err)
	} else if err != nil {
		return o, twoDashes(err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag: see fleetsim --help", flags.Arg(0))
	}
	var mixed []string
	var spansGiven bool
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "seed":
			o.seedGiven = true
		case "spans":
			spansGiven = true
		case "vllm", "vllm-version", "sglang", "tensorrt-llm", "rate", "tenants", "slow":
			mixed = append(mixed, "--"+f.Name)
		}
	})
	if o.scenario != "" && len(mixed) > 0 {
		return o, fmt.Errorf("--scenario says which fleets there are: leave out %s, or write it into the file", strings.Join(mixed, ", "))
	}
	if spansGiven && o.otlp == "" {
		return o, errors.New("--spans says who tells, and nothing where to: add --otlp, such as --otlp http://127.0.0.1:4318, or leave out --spans")
	}
	return o, nil
}

// printHelp is flag's PrintDefaults with two dashes.
func printHelp(out io.Writer, flags *flag.FlagSet) error {
	text := usage
	flags.VisitAll(func(f *flag.Flag) {
		name, meaning := flag.UnquoteUsage(f)
		if f.DefValue != "" {
			meaning += " (default " + f.DefValue + ")"
		}
		text += fmt.Sprintf("  --%s %s\n      %s\n", f.Name, name, strings.ReplaceAll(meaning, "\n", "\n      "))
	})
	_, err := io.WriteString(out, text)
	return err
}

// oneDash is where the flag package writes a flag's name into an error.
var oneDash = regexp.MustCompile(`^(flag [a-z ]+: |invalid value ".*" for flag )-`)

func twoDashes(err error) error {
	return errors.New(oneDash.ReplaceAllString(err.Error(), "$1--") + "; see fleetsim --help")
}

func (o *options) load() (fleetsim.Scenario, error) {
	if o.scenario == "" {
		s, err := o.quick.scenario()
		s.Seed = o.seed
		return s, err
	}
	s, err := o.named()
	if o.seedGiven {
		s.Seed = o.seed
	}
	return s, err
}

// named reads the scenario that comes with the simulator, or the file.
func (o *options) named() (fleetsim.Scenario, error) {
	if slices.Contains(fleetsim.Builtins(), o.scenario) {
		return fleetsim.Builtin(o.scenario)
	}
	s, err := fleetsim.Load(o.scenario)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%w: name a file, or one of %s", err, strings.Join(fleetsim.Builtins(), ", "))
	}
	return s, err
}

// builtins lists the scenarios that come with the simulator, in lines of six.
func builtins() string {
	var lines []string
	for names := range slices.Chunk(fleetsim.Builtins(), 6) {
		lines = append(lines, strings.Join(names, ", "))
	}
	return strings.Join(lines, ",\n")
}

// open listens for all pages; an error names the flag to change.
func (o *options) open(sim *fleetsim.Simulation) (*fleetsim.Server, error) {
	pages := len(sim.Targets())
	if last := int(o.port) + pages - 1; o.port != 0 && last > math.MaxUint16 {
		return nil, fmt.Errorf("--port %d: %d pages would need the ports up to %d, but the last one is %d: choose a lower --port or fewer engines",
			o.port, pages, last, math.MaxUint16)
	}
	server, err := fleetsim.Listen(sim, o.listen, int(o.port))
	var lookup *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: stop what listens there, or choose other ports with --port", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &lookup):
		return nil, fmt.Errorf("--listen %s is no address of this machine: write one without a port, such as 127.0.0.1, or 0.0.0.0 for all", o.listen)
	}
	return server, err
}

// exporter sends the spans of a simulation to where --otlp says, and tells mistakes
// to w; nil if it says nothing.
func (o *options) exporter(sim *fleetsim.Simulation, w io.Writer) (*gateway.Exporter, error) {
	if o.otlp == "" {
		return nil, nil
	}
	exporter, err := gateway.New(gateway.Options{
		Endpoint: o.otlp, Sources: o.sources,
		Tell: func(message string) { fmt.Fprintln(w, "fleetsim:", message) },
	})
	if err != nil {
		return nil, fmt.Errorf("--otlp: %w", err)
	}
	sim.Watch(exporter.Add)
	return exporter, nil
}

// sources is a value of --spans.
type sources []gateway.Source

func (s *sources) String() string {
	words := make([]string, len(*s))
	for i, source := range *s {
		words[i] = string(source)
	}
	return strings.Join(words, ",")
}

// Set reads gateway, engines, or both.
func (s *sources) Set(text string) error {
	*s = nil
	for word := range strings.SplitSeq(text, ",") {
		source := gateway.Source(word)
		if source != gateway.Gateway && source != gateway.Engines || slices.Contains(*s, source) {
			return errors.New("write gateway, engines or gateway,engines")
		}
		*s = append(*s, source)
	}
	return nil
}

// port is a value of --port.
type port int

func (p *port) String() string { return strconv.Itoa(int(*p)) }

// Set reads 0 to 65535.
func (p *port) Set(text string) error {
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("write 0 to %d", math.MaxUint16)
	}
	*p = port(number)
	return nil
}
