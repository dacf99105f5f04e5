// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scraped are values that need no warning.
const scraped = "outputs: {prometheus: {podMonitor: {enabled: true}}}"

const openToAll = "Every pod of the cluster may send OTLP to llmfleet: set inputs.otlp.tls and auth, or networkPolicy.from."

const noTraces = "Traces of starts go nowhere: set outputs.otlp.enabled=true and outputs.otlp.endpoint to your trace store."

// warned are values, beside a PodMonitor, with the first lines of the warnings that they earn, in the order of the notes.
var warned = []struct {
	name, values string
	warnings     []string
}{
	{"nothing else", "{}", nil},
	{"a ServiceMonitor instead", "outputs: {prometheus: {podMonitor: {enabled: false}, serviceMonitor: {enabled: true}}}", nil},
	{
		"nobody scrapes", "outputs: {prometheus: {podMonitor: {enabled: false}}}",
		[]string{"Nothing tells Prometheus to scrape llmfleet: set outputs.prometheus.podMonitor.enabled=true, or scrape port 9464 of its"},
	},
	{
		"pushed and not scraped",
		"outputs: {prometheus: {enabled: false, podMonitor: {enabled: false}}, remoteWrite: {enabled: true, endpoint: 'http://mimir/push'}}",
		nil,
	},
	{
		"starts without traces and logs", "presets: {coldstart: {enabled: true}}",
		[]string{noTraces, "Engines' logs do not come in, so that the stages inside of an engine are unattributed: set inputs.otlp.enabled=true."},
	},
	{
		"starts with traces turned off",
		"{presets: {coldstart: {enabled: true}}, inputs: {otlp: {enabled: true}}, outputs: {otlp: {enabled: true, endpoint: 'tempo:4317', traces: false}}}",
		[]string{noTraces, openToAll},
	},
	{
		"starts with traces and logs",
		"{presets: {coldstart: {enabled: true}}, inputs: {otlp: {enabled: true}}, outputs: {otlp: {enabled: true, endpoint: 'tempo:4317'}}}",
		[]string{openToAll},
	},
	{"OTLP from anybody by TLS", "inputs: {otlp: {enabled: true, tls: {enabled: true, cert: {secret: a}}}}", []string{openToAll}},
	{"OTLP with a token", "inputs: {otlp: {enabled: true, tls: {enabled: true, cert: {secret: a}}, auth: {secret: b}}}", nil},
	{"OTLP with a certificate", "inputs: {otlp: {enabled: true, tls: {enabled: true, cert: {secret: a}, clientCA: {secret: b}}}}", nil},
	{"OTLP from peers", "{inputs: {otlp: {enabled: true}}, networkPolicy: {from: [{podSelector: {}}]}}", nil},
	{"OTLP from peers whom no policy keeps", "{inputs: {otlp: {enabled: true}}, networkPolicy: {enabled: false, from: [{podSelector: {}}]}}", []string{openToAll}},
	{
		"a federated Prometheus in clear without a token", "inputs: {scrape: {enabled: false}, federate: {enabled: true, url: 'http://prometheus:9090'}}",
		nil,
	},
	{
		"a token to a federated Prometheus in clear",
		"inputs: {scrape: {enabled: false}, federate: {enabled: true, url: 'http://prometheus:9090', auth: {secret: a}}}",
		[]string{"inputs.federate.url is http://prometheus:9090: its token or password is shown in clear on the way."},
	},
	{
		"a token to a federated Prometheus by TLS",
		"inputs: {scrape: {enabled: false}, federate: {enabled: true, url: 'https://prometheus:9090', auth: {secret: a}}}",
		nil,
	},
	{
		"tokens to stores in clear",
		"outputs: {remoteWrite: {enabled: true, endpoint: 'http://mimir/push', auth: {secret: a}}, otlp: {enabled: true, protocol: http, endpoint: 'http://tempo:4318', auth: {secret: a}}}",
		[]string{
			"outputs.otlp.endpoint is http://tempo:4318: its token or password is shown in clear on the way.",
			"outputs.remoteWrite.endpoint is http://mimir/push: its token or password is shown in clear on the way.",
		},
	},
	{
		"tokens to stores that are off", "outputs: {remoteWrite: {endpoint: 'http://mimir/push', auth: {secret: a}}, otlp: {endpoint: 'http://tempo:4318', auth: {secret: a}}}",
		nil,
	},
	{
		"a token for the page in clear", "outputs: {prometheus: {auth: {secret: a}}}",
		[]string{"outputs.prometheus.auth without tls: whoever reads the page shows the token in clear."},
	},
	{"a token for the page by TLS", "outputs: {prometheus: {auth: {secret: a}, tls: {enabled: true, cert: {secret: b}}}}", nil},
	{
		"no storage", "storage: {enabled: false}",
		[]string{"Without storage a restart forgets the evidence of alarms; they clear, and come back an hour later at the earliest."},
	},
	{
		"the engines' own metrics as well", "presets: {reduce: {enabled: false}}",
		[]string{"presets.reduce is off: the engines' own metrics are passed on as well, and your Prometheus may have them twice."},
	},
}

var warning = regexp.MustCompile(`(?m)^\[WARNING\] (.*)$`)

// notes returns what helm says at the end of an installation.
func notes(t *testing.T, flags ...string) string {
	t.Helper()
	args := []string{"install", "llmfleet", chartFolder, "--namespace=" + namespace, "--dry-run=client"}
	said := helm(t, slices.Concat(args, []string{"--values=" + writeFile(t, "scraped.yaml", scraped)}, flags)...)
	_, after, found := strings.Cut(said, "\nNOTES:\n")
	require.True(t, found)
	return after
}

// TestNotesWarn: the notes warn of what works and is seldom meant, then and only then.
func TestNotesWarn(t *testing.T) {
	t.Parallel()
	for _, c := range warned {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var found []string
			for _, line := range warning.FindAllStringSubmatch(notes(t, "--values="+writeFile(t, "values.yaml", c.values)), -1) {
				found = append(found, line[1])
			}
			assert.Equal(t, c.warnings, found)
		})
	}
}

// TestWarningsAreComplete: each warning of the notes has a row in the table.
func TestWarningsAreComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(chartFolder, "templates", "NOTES.txt"))
	require.NoError(t, err)
	var earned []string
	for _, c := range warned {
		earned = append(earned, c.warnings...)
	}
	for _, line := range warning.FindAllStringSubmatch(string(text), -1) {
		parts := regexp.MustCompile(`\{\{.*?\}\}`).Split(line[1], -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		written := regexp.MustCompile("^" + strings.Join(parts, ".+") + "$")
		assert.True(t, slices.ContainsFunc(earned, written.MatchString), "no values earn %q", line[1])
	}
}

// TestNotesReadThePage: the page is read by way of the API server as it is served, and not told where that cannot be: the API
// server shows neither a token nor a certificate.
func TestNotesReadThePage(t *testing.T) {
	t.Parallel()
	const pods = "kubectl get --raw /api/v1/namespaces/" + namespace + "/pods/"
	const telemetry = pods + "llmfleet-0:8888/proxy/metrics"
	for values, page := range map[string]string{
		"{}": pods + "llmfleet-0:9464/proxy/metrics",
		"outputs: {prometheus: {tls: {enabled: true, cert: {secret: a}}}}":                        pods + "https:llmfleet-0:9464/proxy/metrics",
		"outputs: {prometheus: {tls: {enabled: true, cert: {secret: a}}, auth: {secret: b}}}":     "",
		"outputs: {prometheus: {tls: {enabled: true, cert: {secret: a}, clientCA: {secret: b}}}}": "",
	} {
		said := notes(t, "--values="+writeFile(t, "values.yaml", values))
		assert.Contains(t, said, telemetry)
		assert.Contains(t, said, page)
		assert.Equal(t, page != "", strings.Contains(said, ":9464/"), values)
	}
}
