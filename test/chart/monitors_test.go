// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// monitor is what the tests read of a PodMonitor or a ServiceMonitor.
type monitor struct {
	Spec struct {
		Selector                       metav1.LabelSelector
		PodMetricsEndpoints, Endpoints []monitorEndpoint
	}
}

type monitorEndpoint struct {
	Port, Scheme string
	HonorLabels  bool
	Relabelings  []struct{ Action, Regex string }
}

func (m monitor) endpoints() []monitorEndpoint {
	return slices.Concat(m.Spec.PodMetricsEndpoints, m.Spec.Endpoints)
}

// monitored returns the installations that have a monitor, by its kind; one of each has routers.
func monitored(t *testing.T) map[string][]installation {
	t.Helper()
	scaled := "--values=" + chartFolder + "/examples/scale-out/values.yaml"
	all := append(
		installations(t),
		installation{"routers with a PodMonitor", []string{scaled, "--set=outputs.prometheus.enabled=true,outputs.prometheus.podMonitor.enabled=true"}},
		installation{"routers with a ServiceMonitor", []string{scaled, "--set=outputs.prometheus.enabled=true,outputs.prometheus.serviceMonitor.enabled=true"}},
	)
	found := map[string][]installation{}
	for _, installed := range all {
		for _, m := range installed.render(t) {
			if m.Kind == "PodMonitor" || m.Kind == "ServiceMonitor" {
				found[m.Kind] = append(found[m.Kind], installed)
			}
		}
	}
	require.Len(t, found, 2)
	return found
}

// monitorOf returns the one monitor that is rendered.
func monitorOf(t *testing.T, all manifests, kind string) monitor {
	t.Helper()
	i := slices.IndexFunc(all, func(m manifest) bool { return m.Kind == kind })
	require.GreaterOrEqual(t, i, 0)
	var found monitor
	decodeInto(t, all[i].text, &found)
	return found
}

// TestMonitorsFindThePages: a monitor reaches once the page of every gateway, and what gateways and routers say of themselves;
// it keeps the labels of the page, and speaks TLS where the page does.
func TestMonitorsFindThePages(t *testing.T) {
	t.Parallel()
	for kind, all := range monitored(t) {
		for _, installed := range all {
			t.Run(installed.name, func(t *testing.T) {
				rendered := installed.render(t)
				found := monitorOf(t, rendered, kind)
				want, reached := map[string]int{}, map[string]int{}
				for _, w := range workloads(t, rendered) {
					for _, port := range []string{"prometheus", "telemetry"} {
						if _, ok := declared(t, w)[port]; ok {
							want[w.name+" "+port] = 1
						}
					}
				}
				tls := at(gateway(t, rendered).parsed(t).Exporters["prometheus"], "tls") != nil
				for _, endpoint := range found.endpoints() {
					for _, name := range reachedBy(t, rendered, kind, found.Spec.Selector.MatchLabels, endpoint.Port) {
						reached[name+" "+endpoint.Port]++
					}
					page := endpoint.Port == "prometheus"
					assert.Equal(t, page, endpoint.HonorLabels, endpoint.Port)
					assert.Equal(t, page && tls, endpoint.Scheme == "https", endpoint.Port)
				}
				assert.Equal(t, want, reached)
			})
		}
	}
}

// reachedBy returns the workloads that a monitor scrapes at a port: by the labels of pods, or by those of Services.
func reachedBy(t *testing.T, all manifests, kind string, labels map[string]string, port string) []string {
	t.Helper()
	var names []string
	if kind == "PodMonitor" {
		for _, w := range selectedBy(t, labels, all) {
			if _, ok := declared(t, w)[port]; ok {
				names = append(names, w.name)
			}
		}
		return names
	}
	for _, service := range of[corev1.Service](t, all, "Service") {
		fits := slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port })
		for key, value := range labels {
			fits = fits && service.Labels[key] == value
		}
		if !fits {
			continue
		}
		for _, w := range selectedBy(t, service.Spec.Selector, all) {
			names = append(names, w.name)
		}
	}
	return names
}

// TestMonitorsPutNoPodOnReplicas: the operator puts the gateway's namespace, pod, container, endpoint and service on what has
// none; a replica or a fleet that the page names without them must not get the gateway's. What a gateway says of itself does.
func TestMonitorsPutNoPodOnReplicas(t *testing.T) {
	t.Parallel()
	// As the operator's documentation of honorLabels and of targets' labels has them.
	ofTheGateway := []string{"container", "endpoint", "namespace", "pod", "service"}
	for kind, all := range monitored(t) {
		for _, endpoint := range monitorOf(t, all[0].render(t), kind).endpoints() {
			kept := append([]string{"instance", "job"}, ofTheGateway...)
			for _, rule := range endpoint.Relabelings {
				require.Equal(t, "labeldrop", rule.Action)
				dropped := regexp.MustCompile("^(?:" + rule.Regex + ")$")
				kept = slices.DeleteFunc(kept, dropped.MatchString)
			}
			if endpoint.Port == "prometheus" {
				assert.Equal(t, []string{"instance", "job"}, kept, kind)
			} else {
				assert.Subset(t, kept, ofTheGateway, kind)
			}
		}
	}
}
