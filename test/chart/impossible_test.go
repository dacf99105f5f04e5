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

// impossible are values that cannot work together, with what the chart says to whoever sets them.
var impossible = []struct{ name, values, sentence string }{
	{
		"no output", "outputs: {prometheus: {enabled: false}}",
		"nothing comes out: set outputs.prometheus.enabled, outputs.remoteWrite.enabled or outputs.otlp.enabled to true",
	},
	{
		"an output that takes no metrics", "outputs: {prometheus: {enabled: false}, otlp: {enabled: true, endpoint: 'a:4317'}}",
		"what is found out goes nowhere: set outputs.prometheus.enabled, outputs.remoteWrite.enabled or outputs.otlp.metrics to true",
	},
	{
		"no input", "inputs: {scrape: {enabled: false}}",
		"nothing comes in: set inputs.scrape.enabled with presets.engines.enabled, inputs.federate.enabled or inputs.otlp.enabled to true",
	},
	{
		"several gateways that scrape the same", "replicas: 2",
		"replicas is 2, and each gateway would judge every fleet: set scaleOut.enabled or shardScrape.enabled, or replicas to 1",
	},
	{
		"both ways to several gateways", "{replicas: 2, scaleOut: {enabled: true}, shardScrape: {enabled: true}}",
		"scaleOut and shardScrape are two ways to the same end: set one of them, scaleOut.enabled or shardScrape.enabled",
	},
	{
		"routers before gateways that scrape", "{replicas: 2, inputs: {otlp: {enabled: true}}, scaleOut: {enabled: true}}",
		"scaleOut gets its metrics by OTLP, and each gateway would scrape every engine besides: set inputs.scrape.enabled to false and let agents send to the routers, or use shardScrape",
	},
	{
		"routers without anything to route", "{replicas: 2, inputs: {scrape: {enabled: false}}, scaleOut: {enabled: true}}",
		"scaleOut gets its metrics by OTLP: set inputs.otlp.enabled to true",
	},
	{
		"routing by series", scaledOut("scaleOut: {enabled: true, routingKey: streamID}"),
		`scaleOut.routingKey is "streamID", by which the replicas of one fleet reach different gateways, and none of them sees the fleet: set it to attributes`,
	},
	{
		"routing by trace", scaledOut("scaleOut: {enabled: true, routingKey: traceID}"),
		`scaleOut.routingKey is "traceID", by which the replicas of one fleet reach different gateways, and none of them sees the fleet: set it to attributes`,
	},
	{
		"an exporter of one's own that routes by series", "extra: {exporters: {load_balancing/mine: {routing_key: streamID}}}",
		"exporter load_balancing/mine routes by streamID, by which the replicas of one fleet reach different gateways: set routing_key to attributes and routing_attributes to [model_name]",
	},
	{
		"an exporter of one's own that routes by trace as it does by default", "extra: {exporters: {loadbalancing/mine: {}}}",
		"exporter loadbalancing/mine routes by traceID, by which the replicas of one fleet reach different gateways: set routing_key to attributes and routing_attributes to [model_name]",
	},
	{
		"one whole configuration for two roles", scaledOut("{scaleOut: {enabled: true}, configOverride: {service: {}}}"),
		"configOverride replaces the configuration of one role, and scaleOut has two: set scaleOut.enabled to false, and install one release a role",
	},
	{
		"routers that forward", scaledOut("{scaleOut: {enabled: true}, inputs: {otlp: {forward: true}}}"),
		"the routers of scaleOut pass on metrics and nothing else: set inputs.otlp.forward to false, and let senders send spans and logs to their store themselves",
	},
	{
		"gateways that may be reached past guarded routers", scaledOut("{scaleOut: {enabled: true}, networkPolicy: {enabled: false}, inputs: {otlp: {auth: {secret: a}, tls: {enabled: true, cert: {secret: b}}}}}"),
		"inputs.otlp.tls and auth guard the routers, and without a policy everybody could send past them to the gateways: set networkPolicy.enabled to true",
	},
	{
		"starts behind routers", scaledOut("{scaleOut: {enabled: true}, presets: {coldstart: {enabled: true}}}"),
		"what is told of one start has to meet in one gateway, and routers send on no logs: set presets.coldstart.enabled to false here, and install a second release with that preset and without scaleOut",
	},
	{
		"raw values on the pages of several gateways", scaledOut("{scaleOut: {enabled: true}, presets: {reduce: {enabled: false}}}"),
		"with scaleOut, a gateway that lost a model would go on serving the last values of its engines beside those of the new one: set presets.reduce.enabled to true",
	},
	{
		"shards of nothing", "{replicas: 2, shardScrape: {enabled: true}, inputs: {scrape: {enabled: false}, federate: {enabled: true, url: 'http://prometheus:9090'}}}",
		"shardScrape shares out what is scraped: set inputs.scrape.enabled and presets.engines.enabled to true, or use scaleOut",
	},
	{
		"shards with OTLP at any of them", "{replicas: 2, shardScrape: {enabled: true}, inputs: {otlp: {enabled: true}}}",
		"what comes by OTLP reaches any gateway, and not the one that scrapes its model: set inputs.otlp.enabled to false, or use scaleOut instead of shardScrape",
	},
	{
		"several gateways that ask Prometheus for the same", scaledOut("{scaleOut: {enabled: true}, inputs: {federate: {enabled: true, url: 'http://prometheus:9090'}}}"),
		"each of several gateways would take every series from Prometheus: set inputs.federate.enabled to false, or replicas to 1",
	},
	{
		"starts at several gateways", "{replicas: 2, shardScrape: {enabled: true}, presets: {coldstart: {enabled: true}}}",
		"what is told of one start has to meet in one gateway: set presets.coldstart.enabled to false here, and install a second release with replicas 1 and that preset alone",
	},
	{
		"a Prometheus without a name", "inputs: {scrape: {enabled: false}, federate: {enabled: true}}",
		"inputs.federate.url is empty: name your Prometheus, as http://prometheus-operated.monitoring.svc:9090",
	},
	{
		"a password in an address", "inputs: {scrape: {enabled: false}, federate: {enabled: true, url: 'http://a:b@prometheus:9090'}}",
		"inputs.federate.url holds a user or a password: put the password into a Secret, and set inputs.federate.auth",
	},
	{
		"engines read twice", "inputs: {federate: {enabled: true, url: 'http://prometheus:9090'}}",
		"engines would be read twice, from their pages and from Prometheus: set inputs.scrape.enabled or inputs.federate.enabled to false",
	},
	{
		"a user without a name", "inputs: {scrape: {enabled: false}, federate: {enabled: true, url: 'http://prometheus:9090', auth: {secret: a, scheme: Basic}}}",
		"inputs.federate.auth.username is empty, and scheme is Basic: set it, with the password in the Secret",
	},
	{
		"OTLP with TLS and no certificate", "inputs: {otlp: {enabled: true, tls: {enabled: true}}}",
		"inputs.otlp.tls.cert.secret is empty: name a Secret of type kubernetes.io/tls, or set inputs.otlp.tls.enabled to false",
	},
	{
		"tokens taken in clear", "inputs: {otlp: {enabled: true, auth: {secret: a}}}",
		"inputs.otlp.auth asks for a token, which senders would show in clear and gRPC does not send: set inputs.otlp.tls.enabled to true",
	},
	{
		"tokens sent in clear", "outputs: {otlp: {enabled: true, endpoint: 'a:4317', auth: {secret: a}, tls: {insecure: true}}}",
		"outputs.otlp.auth would show its token in clear: set outputs.otlp.tls.insecure to false",
	},
	{
		"forwarding to nowhere", "inputs: {otlp: {enabled: true, forward: true}}",
		"inputs.otlp.forward has nowhere to forward to: set outputs.otlp.enabled to true, or inputs.otlp.forward to false",
	},
	{
		"roles for everybody", "serviceAccount: {create: false}",
		"roles would go to every pod of the namespace, by its account default: set serviceAccount.name, or serviceAccount.create to true, or rbac.create to false",
	},
	{
		"a page with TLS and no certificate", "outputs: {prometheus: {tls: {enabled: true}}}",
		"outputs.prometheus.tls.cert.secret is empty: name a Secret of type kubernetes.io/tls, or set outputs.prometheus.tls.enabled to false",
	},
	{
		"tenants without spans", "presets: {tenants: {enabled: true, key: {secret: a}}}",
		"presets.tenants counts the spans of gateways, which come by OTLP: set inputs.otlp.enabled to true",
	},
	{
		"tenants hashed without a key", "{inputs: {otlp: {enabled: true}}, presets: {tenants: {enabled: true}}}",
		"presets.tenants hashes names with a key: keep one in a Secret and set presets.tenants.key.secret, or set presets.tenants.usage.tenant.id to plain, and tenant.from beside it, if names may be seen",
	},
	{
		"tenants in clear from anywhere", "{inputs: {otlp: {enabled: true}}, presets: {tenants: {enabled: true, usage: {tenant: {id: plain}}}}}",
		"presets.tenants.usage.tenant.id is plain, and shows whatever an attribute holds: name the attributes in presets.tenants.usage.tenant.from, as [tenant.id]",
	},
	{
		"two monitors of one page", "outputs: {prometheus: {podMonitor: {enabled: true}, serviceMonitor: {enabled: true}}}",
		"Prometheus would scrape each gateway twice: set one of outputs.prometheus.podMonitor.enabled and outputs.prometheus.serviceMonitor.enabled to false",
	},
	{
		"a monitor of no page", "outputs: {prometheus: {enabled: false, podMonitor: {enabled: true}}, otlp: {enabled: true, endpoint: 'a:4317', metrics: true}}",
		"there is no page to scrape: set outputs.prometheus.enabled to true, or podMonitor and serviceMonitor below it to false",
	},
	{
		"remote write to nowhere", "outputs: {remoteWrite: {enabled: true}}",
		"outputs.remoteWrite.endpoint is empty: say where to send to",
	},
	{
		"OTLP to nowhere", "outputs: {otlp: {enabled: true}}",
		"outputs.otlp.endpoint is empty: say where to send to",
	},
	{
		"OTLP by HTTP to no URL", "outputs: {otlp: {enabled: true, protocol: http, endpoint: 'tempo:4318'}}",
		"outputs.otlp.endpoint is tempo:4318, and protocol http takes a URL: write http://tempo:4318 or https://tempo:4318",
	},
	{
		"a component in the place of the chart's", "extra: {processors: {fleet_outlier: {}}}",
		"extra.processors.fleet_outlier would replace a component of the chart: call yours fleet_outlier/mine",
	},
	{
		"a whole configuration and more", "{configOverride: {service: {}}, extra: {processors: {batch: {}}}}",
		"configOverride is the whole configuration, and extra would be lost: put what extra has into configOverride",
	},
	{
		"a volume in the place of the chart's", "extraVolumes: [{name: storage, emptyDir: {}}]",
		"extraVolumes: storage is the name of a volume of the chart: choose another",
	},
	{
		"a volume in the place of the configuration", "extraVolumes: [{name: config, emptyDir: {}}]",
		"extraVolumes: config is the name of a volume of the chart: choose another",
	},
	{
		"a volume in the place of a Secret", "extraVolumes: [{name: secret-a1b2c3d4, emptyDir: {}}]",
		"extraVolumes: secret-a1b2c3d4 is the name of a volume of the chart: choose another",
	},
	{
		"a memory limit in a unit that Go has not", "resources: {limits: {memory: 1G}}",
		`resources.limits.memory is "1G": write it in Mi, Gi or Ti, so that GOMEMLIMIT can be set to 80 % of it`,
	},
}

// scaledOut adds what routers need to values.
func scaledOut(values string) string {
	return strings.Join([]string{"{replicas: 2, inputs: {scrape: {enabled: false}, otlp: {enabled: true}}}", values}, "\n---\n")
}

// TestImpossibleIsRefused: helm does not render what cannot work, and says in one sentence what to set instead.
func TestImpossibleIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range impossible {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var files []string
			for values := range strings.SplitSeq(c.values, "\n---\n") {
				files = append(files, "--values="+writeFile(t, "values.yaml", values))
			}
			assert.Contains(t, refusal(t, files...), ": "+c.sentence+"\n")
		})
	}
}

// onlyInCluster begins the sentences about what is installed already, which test/kube reads.
var onlyInCluster = []string{"storage of a StatefulSet cannot be changed: "}

// TestImpossibleIsComplete: each sentence of the templates has a row in the table.
func TestImpossibleIsComplete(t *testing.T) {
	t.Parallel()
	sentence := regexp.MustCompile(`\bfail (?:\(printf )?"((?:[^"\\]|\\.)*)"`)
	verb := regexp.MustCompile(`%[a-z]`)
	for _, file := range glob(t, "templates/*.tpl") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range sentence.FindAllStringSubmatch(string(text), -1) {
			if slices.ContainsFunc(onlyInCluster, func(start string) bool { return strings.HasPrefix(found[1], start) }) {
				continue
			}
			parts := verb.Split(strings.ReplaceAll(found[1], "%%", "\x00"), -1)
			for i := range parts {
				parts[i] = regexp.QuoteMeta(strings.ReplaceAll(parts[i], "\x00", "%"))
			}
			written := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
			assert.True(t, slices.ContainsFunc(impossible, func(c struct{ name, values, sentence string }) bool {
				return written.MatchString(c.sentence)
			}), "%s: no test for %q", filepath.Base(file), found[1])
		}
	}
}
