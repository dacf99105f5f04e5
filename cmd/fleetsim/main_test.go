// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

func TestServesUntilStopped(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	output, stderr := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--vllm", "2", "--vllm-version", "v0.6", "--sglang", "1", "--tensorrt-llm", "1", "--slow", "3=1.5", "--port", "0", "--answer-key", key}, io.Discard, stderr)
		stderr.Close()
	}()
	var urls []string
	lines := bufio.NewScanner(output)
	for lines.Scan() && lines.Text() != "Stop with Ctrl-C." {
		urls = append(urls, regexp.MustCompile(`http://\S+`).FindAllString(lines.Text(), 1)...)
	}
	require.Len(t, urls, 5, "four pages, and where Prometheus finds them")
	assert.True(t, strings.HasSuffix(urls[4], "/targets"), urls[4])
	for i, want := range []string{"vllm:gpu_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:num_running_reqs", "trtllm_num_requests_running"} {
		response, err := http.Get(urls[i])
		require.NoError(t, err)
		page, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Contains(t, string(page), want)
	}
	cancel()
	require.NoError(t, <-done, "a stop is no failure")

	text, err := os.ReadFile(key)
	require.NoError(t, err)
	var fault fleetsim.KeyFault
	require.NoError(t, json.Unmarshal(bytes.Split(text, []byte("\n"))[1], &fault))
	assert.Equal(t, "tensorrt-llm-0", fault.Replica, "engines are numbered through, as ports are")
	assert.Equal(t, 1.5, fault.Factor)
}

func TestSpansGoWhereOTLPSays(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan ptrace.Traces, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		assert.NoError(t, err)
		traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(body)
		assert.NoError(t, err)
		select {
		case first <- traces:
		default:
		}
	}))
	defer collector.Close()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--vllm", "2", "--rate", "20", "--tenants", "3", "--port", "0", "--otlp", collector.URL, "--spans", "gateway,engines"}, io.Discard, io.Discard)
	}()
	traces := <-first
	cancel()
	require.NoError(t, <-done)
	sources := map[string]bool{}
	for _, of := range traces.ResourceSpans().All() {
		name, _ := of.Resource().Attributes().Get("service.name")
		sources[name.Str()] = true
	}
	assert.Equal(t, map[string]bool{"ai-gateway": true, "vllm": true}, sources)
	tenant, _ := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get("tenant.id")
	assert.Regexp(t, `^tenant-[123]$`, tenant.Str())
}

func TestAPersonIsToldWhenNobodyTakesSpans(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	output, stderr := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--rate", "20", "--port", "0", "--otlp", gone.URL}, io.Discard, stderr)
		stderr.Close()
	}()
	var last string
	for lines := bufio.NewScanner(output); lines.Scan(); last = lines.Text() {
		if strings.HasPrefix(lines.Text(), "fleetsim: nobody takes the spans at "+gone.URL+"/v1/traces: ") {
			cancel()
		}
	}
	require.NoError(t, <-done)
	assert.Regexp(t, `^fleetsim: the spans of \d+ requests were not sent to `, last)
}

func TestReplicasOfOnePageAreListedWithIt(t *testing.T) {
	s, err := fleetsim.Parse([]byte("fleets: [{name: q, engine: vllm, version: ray, model_name: m, replicas: 3, replicas_per_node: 2, arrivals: {rate: 1}}]"))
	require.NoError(t, err)
	sim, err := fleetsim.New(s, time.Unix(0, 0))
	require.NoError(t, err)
	server, err := fleetsim.Listen(sim, "127.0.0.1", 0)
	require.NoError(t, err)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	defer func() { require.NoError(t, server.Serve(stopped, sim.Now)) }()
	var out bytes.Buffer
	list(&out, sim, server)
	urls := server.URLs()
	require.Len(t, urls, 2)
	assert.Regexp(t, `(?m)^q-0 +q +`+urls[0]+`\nq-1 +q +`+urls[0]+`\nq-2 +q +`+urls[1]+`$`, out.String())
}

func TestPodsThatAreStillToComeAreListed(t *testing.T) {
	s, err := fleetsim.Parse([]byte(`
fleets: [{name: q, engine: vllm, model_name: m, replicas: 2, arrivals: {rate: 1}}]
faults: [{kind: new_revision, mode: replace, replicas: [1], revision: b, from: 1m}]
`))
	require.NoError(t, err)
	sim, err := fleetsim.New(s, time.Unix(0, 0))
	require.NoError(t, err)
	server, err := fleetsim.Listen(sim, "127.0.0.1", 0)
	require.NoError(t, err)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	defer func() { require.NoError(t, server.Serve(stopped, sim.Now)) }()
	var out bytes.Buffer
	list(&out, sim, server)
	urls := server.URLs()
	require.Len(t, urls, 3)
	assert.Regexp(t, `(?m)^q-0 +q +`+urls[0]+`\nq-1 +q +`+urls[1]+`\nq-b-1 +q +`+urls[2]+`$`, out.String())
}

func TestScenariosAreFoundByName(t *testing.T) {
	o, err := parseFlags([]string{"--scenario", "black_hole"}, io.Discard)
	require.NoError(t, err)
	s, err := o.load()
	require.NoError(t, err)
	want, err := fleetsim.Builtin("black_hole")
	require.NoError(t, err)
	assert.Equal(t, want, s)
}

func TestSeedFlagOverridesTheScenario(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scenario.yaml")
	require.NoError(t, os.WriteFile(path, []byte("seed: 3\nfleets: [{engine: vllm, model_name: m, arrivals: {rate: 1}}]"), 0o600))
	for args, want := range map[string]uint64{"": 3, "--seed 9": 9} {
		o, err := parseFlags(append([]string{"--scenario", path}, strings.Fields(args)...), io.Discard)
		require.NoError(t, err)
		s, err := o.load()
		require.NoError(t, err)
		assert.Equal(t, want, s.Seed)
	}
}

func TestMistakesSayWhatToDo(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	port := strconv.Itoa(busy.Addr().(*net.TCPAddr).Port)
	for args, want := range map[string]string{
		"--port " + port:                "choose other ports with --port",
		"--port -1":                     `invalid value "-1" for flag --port: write 0 to 65535`,
		"--port 70000":                  `invalid value "70000" for flag --port: write 0 to 65535`,
		"--port 65534":                  "--port 65534: 4 pages would need the ports up to 65537, but the last one is 65535",
		"--listen 192.0.2.1":            "--listen 192.0.2.1 is no address of this machine: write one without a port",
		"--listen 127.0.0.1:80":         "--listen 127.0.0.1:80 is no address of this machine: write one without a port",
		"--vllm 0":                      "set --vllm, --sglang or --tensorrt-llm",
		"--vllm -2":                     `invalid value "-2" for flag --vllm: write a whole number, 0 or more`,
		"--vllm-version v0.7":           `fleets[0].version: is "v0.7": write one of current`,
		"--slow 5=2 --tensorrt-llm 1":   "--slow 5=2: engines are numbered 0 to 4",
		"--sglang two":                  `invalid value "two" for flag --sglang: write a whole number`,
		"--rate -1.50":                  `invalid value "-1.50" for flag --rate: write the requests a second`,
		"--rate 0":                      `invalid value "0" for flag --rate: write the requests a second`,
		"--rate NaN":                    `invalid value "NaN" for flag --rate`,
		"--rate Inf":                    `invalid value "Inf" for flag --rate`,
		"--slow 3":                      "such as 3=1.8",
		"--slow 3=0":                    `invalid value "3=0" for flag --slow`,
		"--slow 4=2":                    "--slow 4=2: engines are numbered 0 to 3",
		"--seed x":                      `invalid value "x" for flag --seed`,
		"--slov 3=2":                    "flag provided but not defined: --slov; see fleetsim --help",
		"--rate":                        "flag needs an argument: --rate",
		"serve":                         `"serve" is no flag`,
		"--scenario x.yaml --vllm 2":    "leave out --vllm",
		"--scenario x.yaml --tenants 2": "leave out --tenants",
		"--tenants -2":                  `invalid value "-2" for flag --tenants: write a whole number, 0 or more`,
		"--otlp 127.0.0.1:4318":         "--otlp: OTLP endpoint is \"127.0.0.1:4318\": write a URL such as http://127.0.0.1:4318",
		"--spans router":                `invalid value "router" for flag --spans: write gateway, engines or gateway,engines`,
		"--spans gateway,gateway":       "write gateway, engines or gateway,engines",
		"--spans engines":               "add --otlp, such as --otlp http://127.0.0.1:4318, or leave out --spans",
		"--scenario x.yaml":             "name a file, or one of black_hole, ",
	} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), strings.Fields(args), &stdout, &stderr)
		require.ErrorContains(t, err, want, args)
		assert.Empty(t, stdout.String()+stderr.String(), "main prints the error, and once: %s", args)
	}
}

func TestHelpShowsExamplesAndTwoDashes(t *testing.T) {
	var help bytes.Buffer
	require.ErrorIs(t, run(t.Context(), []string{"--help"}, &help, io.Discard), flag.ErrHelp)
	assert.Contains(t, help.String(), "fleetsim --vllm 8 --slow 3=1.8 --sglang 4")
	assert.Contains(t, help.String(), "--answer-key faults.jsonl")
	assert.Contains(t, help.String(), "\n  --port port\n      first port; page i is at port+i, and 0 lets the system choose (default 18100)\n")
	assert.Contains(t, help.String(), "\n  --slow I=F\n")
	assert.NotRegexp(t, `(?m)(^|\s)-[a-z]`, help.String(), "no flag with a single dash")
	_, path, found := strings.Cut(help.String(), "cmd/fleetsim/")
	require.True(t, found)
	assert.FileExists(t, strings.Fields(path)[0])
}
