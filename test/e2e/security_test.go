// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// variable is one of the environment in a configuration, with its default or without.
var variable = regexp.MustCompile(`\$\{env:(\w+)(:-([^}]*))?\}`)

// inEnvironment starts the collector with a configuration of examples/security in an environment.
func inEnvironment(t *testing.T, example string, environment map[string]string) *binarytest.Process {
	t.Helper()
	text, err := os.ReadFile("../../examples/security/" + example)
	require.NoError(t, err)
	config := variable.ReplaceAllStringFunc(string(text), func(found string) string {
		parts := variable.FindStringSubmatch(found)
		value, ok := environment[parts[1]]
		require.True(t, ok || parts[2] != "", "%s: there is no %s", example, parts[1])
		if !ok {
			return parts[3]
		}
		return value
	})
	return binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, example, config))
}

// guarded is a gateway that lets in who shows a certificate and a token.
type guarded struct {
	authority     *authority
	address       string
	metrics       string // what it derives, and passes on
	tokens        string // file
	process       *binarytest.Process
	senderAddress target
}

func startGuarded(t *testing.T, tokens string) *guarded {
	t.Helper()
	port, metrics := binarytest.FreePort(t), binarytest.FreePort(t)
	g := &guarded{
		authority: newAuthority(t), address: binarytest.LoopbackAddress(port),
		metrics: "https://" + binarytest.LoopbackAddress(metrics) + "/metrics", tokens: binarytest.WriteFile(t, "tokens", tokens),
		senderAddress: startFleet(t, calm)[0],
	}
	server := g.authority.issue(t, "gateway")
	g.process = inEnvironment(t, "gateway.yaml", map[string]string{
		"OTLP_PORT": strconv.Itoa(port), "METRICS_PORT": strconv.Itoa(metrics), "SELF_PORT": strconv.Itoa(binarytest.FreePort(t)),
		"CERT_FILE": server.cert, "KEY_FILE": server.key, "SENDERS_CA": g.authority.file, "TOKENS_FILE": g.tokens,
	})
	return g
}

// agent starts one that sends to the gateway as a pod of this name, by a certificate and with the token in a file.
func (g *guarded) agent(t *testing.T, pod string, with keyPair, token string) *binarytest.Process {
	t.Helper()
	return inEnvironment(t, "agent.yaml", map[string]string{
		"ENGINE": g.senderAddress.Address, "POD_NAME": pod, "SCRAPE_INTERVAL": "1s", "SELF_PORT": strconv.Itoa(binarytest.FreePort(t)),
		"GATEWAY": g.address, "GATEWAY_CA": g.authority.file, "CERT_FILE": with.cert, "KEY_FILE": with.key, "TOKEN_FILE": token,
	})
}

// ask reads what the gateway passes on, with a certificate and a header or without. Where there is no answer there is
// an error.
func (g *guarded) ask(t *testing.T, with *keyPair, authorization string) (status int, page string, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: g.authority.trusting(t, with)}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, g.metrics, http.NoBody)
	require.NoError(t, err)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// tokensOf is how many tokens the gateway knows a pod to have generated, -1 if it does not know the pod.
func (g *guarded) tokensOf(t *testing.T, reader keyPair, token, pod string) float64 {
	t.Helper()
	_, page, err := g.ask(t, &reader, "Bearer "+token)
	if err != nil {
		return -1
	}
	found := regexp.MustCompile(`(?m)^vllm:generation_tokens_total{.*pod="` + pod + `".*} (\S+)$`).FindStringSubmatch(page)
	if found == nil {
		return -1
	}
	value, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return value
}

// TestOnlyWhoIsKnownIsLetIn: of agents with the gateway's own configuration, the one with the right certificate and the
// right token reaches it; all others are refused, and their logs say why.
func TestOnlyWhoIsKnownIsLetIn(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, "right # of this test\n")
	known, stranger := g.authority.issue(t, "agent"), newAuthority(t).issue(t, "stranger")
	token := func(text string) string { return binarytest.WriteFile(t, "token", text) }

	for _, c := range []struct {
		pod   string
		with  keyPair
		token string
		says  string
	}{
		{"wrong-token", known, token("wrong\n"), `Unauthenticated.*does not match`},
		{"no-token", known, token(""), `Unauthenticated.*does not match`},
		{"another-ca", stranger, token("right\n"), `tls: (unknown certificate authority|bad certificate)`},
		{"no-certificate", keyPair{}, token("right\n"), `tls: certificate required`},
	} {
		t.Run(c.pod, func(t *testing.T) {
			refused := g.agent(t, c.pod, c.with, c.token)
			told := regexp.MustCompile(c.says)
			require.Eventually(t, func() bool { return told.MatchString(refused.Output()) }, time.Minute, 200*time.Millisecond, "the log does not say %s", c.says)
			assert.Equal(t, -1.0, g.tokensOf(t, known, "right", c.pod))
			refused.Stop(t)
		})
	}
	g.agent(t, "right", known, token("right\n"))
	require.Eventually(t, func() bool { return g.tokensOf(t, known, "right", "right") > 0 }, time.Minute, 200*time.Millisecond, "the right one was not let in")
	for _, pod := range []string{"wrong-token", "no-token", "another-ca", "no-certificate"} {
		assert.Equal(t, -1.0, g.tokensOf(t, known, "right", pod), pod)
	}

	for _, c := range []struct {
		name, authorization string
		with                *keyPair
		status              int
	}{
		{"right", "Bearer right", &known, http.StatusOK},
		{"wrong token", "Bearer wrong", &known, http.StatusUnauthorized},
		{"the comment beside the token", "Bearer right # of this test", &known, http.StatusUnauthorized},
		{"another scheme", "Basic right", &known, http.StatusUnauthorized},
		{"no token", "", &known, http.StatusUnauthorized},
	} {
		status, page, err := g.ask(t, c.with, c.authorization)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.status, status, c.name)
		assert.Equal(t, c.status == http.StatusOK, strings.Contains(page, "vllm:"), c.name)
	}
	_, _, err := g.ask(t, nil, "Bearer right")
	assert.ErrorContains(t, err, "certificate required")
	_, _, err = g.ask(t, &stranger, "Bearer right")
	assert.Error(t, err)
}

// TestTokensAreChangedInFlight: the gateway takes a new token beside the old one, the agent changes over, and the old one
// is worth nothing any more; no process was started anew.
func TestTokensAreChangedInFlight(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, "old\n")
	known, own := g.authority.issue(t, "agent"), binarytest.WriteFile(t, "token", "old\n")
	agent := g.agent(t, "agent", known, own)
	write := func(path, tokens string) { require.NoError(t, os.WriteFile(path, []byte(tokens), 0o600)) }
	arrives := func(token, when string) {
		before := g.tokensOf(t, known, token, "agent")
		require.Eventually(t, func() bool { return g.tokensOf(t, known, token, "agent") > before }, time.Minute, 200*time.Millisecond, when)
	}
	status := func(token string) int {
		status, _, err := g.ask(t, &known, "Bearer "+token)
		require.NoError(t, err)
		return status
	}
	require.Eventually(t, func() bool { return g.tokensOf(t, known, "old", "agent") > 0 }, time.Minute, 200*time.Millisecond, "nothing arrived")
	assert.Equal(t, http.StatusUnauthorized, status("new"))

	write(g.tokens, "old\nnew\n")
	require.Eventually(t, func() bool { return status("new") == http.StatusOK }, time.Minute, 200*time.Millisecond, "the new token is not taken")
	assert.Equal(t, http.StatusOK, status("old"))
	arrives("old", "while both are good")

	write(own, "new\n")
	require.Eventually(t, func() bool { return strings.Contains(agent.Output(), "refresh token") }, time.Minute, 200*time.Millisecond, "the agent did not read its token again")
	write(g.tokens, "new\n")
	require.Eventually(t, func() bool { return status("old") == http.StatusUnauthorized }, time.Minute, 200*time.Millisecond, "the old token is still good")
	arrives("new", "the agent did not change over")
	assert.NotContains(t, agent.Output(), "Unauthenticated")
}

// everywhere is how a configuration or a flag names all addresses of a machine.
var everywhere = regexp.MustCompile(`\b0\.0\.0\.0\b|\[::\]|["'\s]:::?\d|(endpoint|listen|address)\S*:\s*["']?:\d`)

// TestNothingListensEverywhere: no configuration that is shipped, in an example, on a page or in the chart, binds all
// addresses of a machine by itself.
func TestNothingListensEverywhere(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`endpoint: 0.0.0.0:4317`, `endpoint: "[::]:4317"`, `endpoint: :4317`, `host: '0.0.0.0'`, `${env:POD_IP:-0.0.0.0}:4317`} {
		require.Regexp(t, everywhere, bad)
	}
	for _, good := range []string{`endpoint: "[${env:POD_IP}]:4317"`, `endpoint: ${env:POD_IP:-127.0.0.1}:9464`, `cidr: 10.0.0.0/8`} {
		require.NotRegexp(t, everywhere, good)
	}
	read := 0
	for _, folder := range []string{"examples", "deploy", "docs", "processor", "connector", "receiver", "cmd", "README.md", "CONTRIBUTING.md"} {
		require.NoError(t, filepath.WalkDir("../../"+folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.Name() == "testdata" {
				if entry != nil && entry.IsDir() && err == nil {
					return filepath.SkipDir
				}
				return err
			}
			text := configurationOf(t, path)
			read += len(text)
			for _, line := range text {
				assert.NotRegexp(t, everywhere, line, path)
			}
			return nil
		}))
	}
	assert.Greater(t, read, 1000)
}

// configurationOf are the lines of a file that configure something: of a page the YAML that it shows, without comments.
func configurationOf(t *testing.T, path string) (lines []string) {
	t.Helper()
	var blocks []string
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".tpl":
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		blocks = []string{string(text)}
	case ".md", ".txt":
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			blocks = append(blocks, block[1])
		}
	}
	for _, block := range blocks {
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(line, "# ")
			lines = append(lines, line)
		}
	}
	return lines
}

// TestDefaultsListenOnLoopback: a collector whose configuration names no address is reached from its own machine alone.
func TestDefaultsListenOnLoopback(t *testing.T) {
	t.Parallel()
	config := `
receivers: {otlp: {protocols: {grpc: {}, http: {}}}}
exporters: {nop: null}
extensions: {health_check: {}, pprof: {}, zpages: {}}
service:
  extensions: [health_check, pprof, zpages]
  pipelines: {metrics: {receivers: [otlp], exporters: [nop]}}
`
	path := binarytest.WriteFile(t, "config.yaml", config)
	whole, err := exec.Command(binarytest.Collector(t), "print-config", "--config="+path).CombinedOutput()
	require.NoError(t, err, string(whole))
	endpoints := regexp.MustCompile(`(?:endpoint|host): "?([^"\s]+)`).FindAllStringSubmatch(string(whole), -1)
	require.GreaterOrEqual(t, len(endpoints), 5, string(whole))
	for _, found := range endpoints {
		assert.Regexp(t, `^(localhost|127\.0\.0\.1)(:|$)`, found[1], fmt.Sprint(found))
	}
}
