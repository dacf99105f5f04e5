// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// listening returns the ports that a configuration opens to other pods, by who opens them.
func listening(t *testing.T, config collectorConfig) map[string]int32 {
	t.Helper()
	endpoints := map[string]any{}
	for name, body := range config.Receivers {
		for _, protocol := range []string{"grpc", "http"} {
			endpoints[name+" "+protocol] = at(body, "protocols", protocol, "endpoint")
		}
	}
	for name, body := range config.Exporters {
		if component(name) == "prometheus" {
			endpoints[name] = at(body, "endpoint")
		}
	}
	for _, name := range config.Service.Extensions {
		endpoints[name] = at(config.Extensions[name], "endpoint")
	}
	readers, _ := at(config.Service.Telemetry, "metrics", "readers").([]any)
	for i, reader := range readers {
		page, _ := at(reader, "pull", "exporter", "prometheus").(map[string]any)
		require.NotNil(t, page, "telemetry reader %d", i)
		endpoints["telemetry"] = fmt.Sprintf("%v:%v", page["host"], page["port"])
	}
	ports := map[string]int32{}
	for who, endpoint := range endpoints {
		if text, ok := endpoint.(string); ok && !strings.HasPrefix(text, "127.0.0.1:") {
			ports[who] = portOf(t, text)
		}
	}
	return ports
}

func portOf(t *testing.T, endpoint string) int32 {
	t.Helper()
	host, port := endpoint[:strings.LastIndex(endpoint, ":")], endpoint[strings.LastIndex(endpoint, ":")+1:]
	// IPv6 needs brackets. Neither all interfaces nor none in particular.
	assert.Contains(t, []string{"${env:POD_IP}", "[${env:POD_IP}]"}, host)
	number, err := strconv.ParseInt(port, 10, 32)
	require.NoError(t, err, endpoint)
	return int32(number)
}

// TestPortsAreWhatIsListenedOn: the container declares the ports that its configuration opens, no more and no fewer.
func TestPortsAreWhatIsListenedOn(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			assert.Equal(t, opened(t, w), slices.Sorted(maps.Values(declared(t, w))))
		})
	}
}

func opened(t *testing.T, w workload) []int32 {
	t.Helper()
	return slices.Sorted(maps.Values(listening(t, w.parsed(t))))
}

// declared returns the ports of the container by name.
func declared(t *testing.T, w workload) map[string]int32 {
	t.Helper()
	ports := map[string]int32{}
	for _, port := range w.container(t).Ports {
		require.NotContains(t, ports, port.Name)
		ports[port.Name] = port.ContainerPort
	}
	return ports
}

// TestProbesHitHealthCheck: both probes ask the port and path at which the configuration has its health check.
func TestProbesHitHealthCheck(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			config := w.parsed(t)
			require.Contains(t, config.Service.Extensions, "health_check")
			check := config.Extensions["health_check"]
			path, ok := check["path"].(string)
			if !ok {
				path = "/"
			}
			c := w.container(t)
			for name, probe := range map[string]*corev1.Probe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
				require.NotNil(t, probe, name)
				require.NotNil(t, probe.HTTPGet, name)
				assert.Equal(t, listening(t, config)["health_check"], resolve(t, w, probe.HTTPGet.Port), name)
				assert.Equal(t, path, probe.HTTPGet.Path, name)
			}
		})
	}
}

// resolve returns the number of a port that is named or numbered.
func resolve(t *testing.T, w workload, port intstr.IntOrString) int32 {
	t.Helper()
	if port.Type == intstr.Int {
		return port.IntVal
	}
	require.Contains(t, declared(t, w), port.StrVal, w.name)
	return declared(t, w)[port.StrVal]
}

// TestServicesReachPods: each Service selects one of the workloads, and its ports are open there.
func TestServicesReachPods(t *testing.T) {
	t.Parallel()
	for _, installed := range append(installations(t), defaults) {
		t.Run(installed.name, func(t *testing.T) {
			t.Parallel()
			all := installed.render(t)
			for _, service := range of[corev1.Service](t, all, "Service") {
				selected := selectedBy(t, service.Spec.Selector, all)
				require.Len(t, selected, 1, "%s selects %v", service.Name, service.Spec.Selector)
				for _, port := range service.Spec.Ports {
					assert.Contains(t, opened(t, selected[0]), resolve(t, selected[0], port.TargetPort), "%s: %s", service.Name, port.Name)
				}
			}
		})
	}
}

// selectedBy returns the workloads whose pods have all labels of a selector.
func selectedBy(t *testing.T, selector map[string]string, all manifests) []workload {
	t.Helper()
	var selected []workload
	for _, w := range workloads(t, all) {
		fits := len(selector) > 0
		for key, value := range selector {
			fits = fits && w.pod.Labels[key] == value
		}
		if fits {
			selected = append(selected, w)
		}
	}
	return selected
}

// TestNetworkPolicyAdmitsPorts: what may reach a pod is exactly what it listens on.
func TestNetworkPolicyAdmitsPorts(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			var admitted []int32
			policies := 0
			for _, policy := range of[networkingv1.NetworkPolicy](t, w.all, "NetworkPolicy") {
				if !slices.ContainsFunc(selectedBy(t, policy.Spec.PodSelector.MatchLabels, w.all), w.is) {
					continue
				}
				policies++
				assert.Contains(t, policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
				for _, rule := range policy.Spec.Ingress {
					require.NotEmpty(t, rule.Ports, "a rule without ports admits to all")
					for _, port := range rule.Ports {
						require.Nil(t, port.EndPort)
						admitted = append(admitted, resolve(t, w, *port.Port))
					}
				}
			}
			assert.Equal(t, 1, policies)
			slices.Sort(admitted)
			assert.Equal(t, opened(t, w), slices.Compact(admitted))
		})
	}
}

// TestNetworkPolicyAdmitsMore: ports that components of one's own listen on are admitted beside the chart's, from the same peers.
func TestNetworkPolicyAdmitsMore(t *testing.T) {
	t.Parallel()
	peer := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "chat"}}}
	values := map[string]any{"networkPolicy": map[string]any{"ports": []int{9411, 14268}, "from": []any{peer}}}
	scaled := installation{flags: []string{"--values=" + chartFolder + "/ci/scale-out-values.yaml"}}
	policies := of[networkingv1.NetworkPolicy](t, scaled.render(t), "NetworkPolicy")
	wider := of[networkingv1.NetworkPolicy](t, scaled.render(t, withValues(t, values)), "NetworkPolicy")
	require.Len(t, wider, 2)
	for i, policy := range wider {
		want := policies[i].Spec.Ingress
		for _, number := range []int{9411, 14268} {
			want[0].Ports = append(want[0].Ports, networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt(number))})
		}
		want[0].From = []networkingv1.NetworkPolicyPeer{peer}
		assert.Equal(t, want, policy.Spec.Ingress, policy.Name)
	}
}

// TestServicesSpeakAsThePodDoes: a Service says h2c, HTTP/2 in clear, of a gRPC port without TLS, and says nothing of one with it,
// or what stands before the port would speak in clear to it.
func TestServicesSpeakAsThePodDoes(t *testing.T) {
	t.Parallel()
	plain, secured := 0, 0
	for _, installed := range append(installations(t), defaults) {
		all := installed.render(t)
		for _, service := range of[corev1.Service](t, all, "Service") {
			for _, port := range service.Spec.Ports {
				if port.Name != "otlp-grpc" || service.Spec.ClusterIP == corev1.ClusterIPNone {
					assert.Nil(t, port.AppProtocol, "%s %s", installed.name, port.Name)
					continue
				}
				receiver := selectedBy(t, service.Spec.Selector, all)[0].parsed(t).Receivers["otlp"]
				if at(receiver, "protocols", "grpc", "tls") != nil {
					secured++
					assert.Nil(t, port.AppProtocol, installed.name)
				} else {
					plain++
					assert.Equal(t, new("kubernetes.io/h2c"), port.AppProtocol, installed.name)
				}
			}
		}
	}
	assert.Positive(t, plain)
	assert.Positive(t, secured)
}

func (w workload) is(other workload) bool { return w.name == other.name }
