// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// job is what the tests read of a scrape job.
type job struct {
	JobName        string            `yaml:"job_name"`
	MetricsPath    string            `yaml:"metrics_path"`
	RelabelConfigs []*relabel.Config `yaml:"relabel_configs"`
}

// jobs returns the scrape jobs of the gateway with an ordinal, by name.
func jobs(t *testing.T, w workload, ordinal int) map[string]job {
	t.Helper()
	// The collector reads $$ as a dollar sign.
	text := strings.NewReplacer("$$", "$", "${env:SHARD}", strconv.Itoa(ordinal)).Replace(w.config)
	var config struct {
		Receivers struct {
			Prometheus struct {
				Config struct {
					ScrapeConfigs []job `yaml:"scrape_configs"`
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &config))
	found := map[string]job{}
	for _, j := range config.Receivers.Prometheus.Config.ScrapeConfigs {
		for _, rule := range j.RelabelConfigs {
			require.NoError(t, rule.Validate(model.UTF8Validation))
		}
		found[j.JobName] = j
	}
	require.NotEmpty(t, found)
	return found
}

// pod is a pod as Kubernetes has it; discovery makes one target of each of its ports.
type pod struct {
	labels, annotations map[string]string
	ports               map[string]int // by name
	ip, phase           string
}

var notInLabelNames = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// targets returns what Prometheus' discovery tells of a pod.
func (p pod) targets() []map[string]string {
	common := map[string]string{
		"__meta_kubernetes_pod_ip": "10.0.0.1", "__meta_kubernetes_pod_phase": "Running",
		"__meta_kubernetes_namespace": "chat", "__meta_kubernetes_pod_name": "llm-0",
		"__scheme__": "http",
	}
	if p.ip != "" {
		common["__meta_kubernetes_pod_ip"] = p.ip
	}
	if p.phase != "" {
		common["__meta_kubernetes_pod_phase"] = p.phase
	}
	for kind, of := range map[string]map[string]string{"label": p.labels, "annotation": p.annotations} {
		for name, value := range of {
			sane := notInLabelNames.ReplaceAllString(name, "_")
			common["__meta_kubernetes_pod_"+kind+"_"+sane] = value
			common["__meta_kubernetes_pod_"+kind+"present_"+sane] = "true"
		}
	}
	if len(p.ports) == 0 {
		return []map[string]string{common}
	}
	var targets []map[string]string
	for name, number := range p.ports {
		target := maps.Clone(common)
		target["__meta_kubernetes_pod_container_port_name"] = name
		target["__meta_kubernetes_pod_container_port_number"] = strconv.Itoa(number)
		targets = append(targets, target)
	}
	return targets
}

// pages returns the addresses that a job scrapes of a pod; targets with the same labels are one.
func (j job) pages(t *testing.T, p pod) []string {
	t.Helper()
	found := map[string]bool{}
	for _, target := range p.targets() {
		target["__metrics_path__"] = "/metrics"
		builder := labels.NewBuilder(labels.FromMap(target))
		if !relabel.ProcessBuilder(builder, j.RelabelConfigs...) {
			continue
		}
		scraped := builder.Labels()
		if j.JobName == "engines" {
			assert.Equal(t, "chat", scraped.Get("namespace"))
			assert.Equal(t, "llm-0", scraped.Get("pod"))
		}
		found["http://"+scraped.Get("__address__")+scraped.Get("__metrics_path__")] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// engines are pods as the charts and operators of engines make them, with the port and path of each one's page; none if empty.
var engines = map[string]struct {
	labels, annotations map[string]string
	ports               map[string]int
	page                string
}{
	"vllm": {labels: map[string]string{"app.kubernetes.io/name": "vllm"}, page: ":8000/metrics"},
	"vllm with several ports": {
		labels: map[string]string{"app": "vllm-qwen"},
		ports:  map[string]int{"http": 8000, "zmq": 5557},
		page:   ":8000/metrics",
	},
	"vllm by two labels": {
		labels: map[string]string{"app": "vllm", "app.kubernetes.io/name": "vllm"},
		page:   ":8000/metrics",
	},
	"vllm's router": {labels: map[string]string{"app": "vllm-router"}, ports: map[string]int{"http": 8000}},
	"vllm's dashboards": {
		labels: map[string]string{"app": "vllm-grafana"},
		ports:  map[string]int{"http": 3000},
	},
	"vllm of the production stack": {
		labels: map[string]string{"model": "qwen", "helm-release-name": "vllm"},
		ports:  map[string]int{"container-port": 8000, "zmq-port": 55555, "ucx-port": 9999},
		page:   ":8000/metrics",
	},
	"router of the production stack": {
		labels: map[string]string{"environment": "router", "release": "router"},
		ports:  map[string]int{"router-cport": 8000},
	},
	"sglang": {
		labels: map[string]string{"app": "sglang"},
		ports:  map[string]int{"http": 30000, "dist": 20000},
		page:   ":30000/metrics",
	},
	"sglang's router": {
		labels: map[string]string{"app": "sglang-router"},
		ports:  map[string]int{"http": 30000, "metrics": 29000},
	},
	"tensorrt-llm": {labels: map[string]string{"app": "trtllm-serve"}, page: ":8000/prometheus/metrics"},
	"dynamo's worker": {
		labels: map[string]string{"nvidia.com/dynamo-component-type": "worker"},
		ports:  map[string]int{"system": 9090, "nixl": 19090},
		page:   ":9090/metrics",
	},
	"dynamo's prefill worker": {
		labels: map[string]string{"nvidia.com/dynamo-component-type": "prefill"},
		ports:  map[string]int{"system": 9090},
		page:   ":9090/metrics",
	},
	"dynamo's frontend": {
		labels: map[string]string{"nvidia.com/dynamo-component-type": "frontend"},
		ports:  map[string]int{"http": 8000},
	},
	"llm-d, decode": {
		labels: map[string]string{"llm-d.ai/model": "qwen", "llm-d.ai/role": "decode"},
		ports:  map[string]int{"sidecar": 8000, "modelserver": 8200, "nixl": 5600},
		page:   ":8200/metrics",
	},
	"llm-d, prefill": {
		labels: map[string]string{"llm-d.ai/model": "qwen", "llm-d.ai/role": "prefill"},
		ports:  map[string]int{"modelserver": 8000, "nixl": 5600},
		page:   ":8000/metrics",
	},
	"llm-d's model service": {
		labels: map[string]string{"llm-d.ai/model": "qwen"},
		ports:  map[string]int{"sidecar": 8000, "metrics": 8200},
		page:   ":8200/metrics",
	},
	"llm-d with vllm's name": {
		labels: map[string]string{"llm-d.ai/model": "qwen", "app.kubernetes.io/name": "vllm"},
		ports:  map[string]int{"sidecar": 8000, "metrics": 8200},
		page:   ":8200/metrics",
	},
	"llm-d without a name for the port, which an annotation says": {
		labels:      map[string]string{"llm-d.ai/model": "qwen", "llm-d.ai/role": "decode"},
		annotations: map[string]string{"prometheus.io/port": "8200"},
		ports:       map[string]int{"http": 8000, "zmq": 5557},
		page:        ":8200/metrics",
	},
	"llm-d's endpoint picker": {
		labels: map[string]string{"llm-d.ai/inference-serving": "true", "inferencepool": "qwen-epp"},
		ports:  map[string]int{"grpc": 9002, "metrics": 9090},
	},
	"kserve": {
		labels:      map[string]string{"serving.kserve.io/inferenceservice": "qwen"},
		annotations: map[string]string{"prometheus.io/port": "8080", "prometheus.io/path": "/metrics"},
		ports:       map[string]int{"http1": 8080},
		page:        ":8080/metrics",
	},
	"triton": {
		labels: map[string]string{"app": "triton-server"},
		ports:  map[string]int{"http": 8000, "grpc": 8001, "metrics": 8002},
		page:   ":8002/metrics",
	},
	"annotated with another port": {
		labels:      map[string]string{"app": "vllm"},
		annotations: map[string]string{"prometheus.io/port": "9000"},
		ports:       map[string]int{"http": 9000},
		page:        ":9000/metrics",
	},
	"annotated with another path": {
		labels:      map[string]string{"app": "vllm"},
		annotations: map[string]string{"prometheus.io/path": "/stats"},
		page:        ":8000/stats",
	},
	"annotated, behind a mesh": {
		labels:      map[string]string{"app": "vllm"},
		annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "15020", "prometheus.io/path": "/stats/prometheus"},
		ports:       map[string]int{"http": 8000, "http-envoy-prom": 15090},
		page:        ":15020/stats/prometheus",
	},
	"annotated not to be read": {
		labels:      map[string]string{"app": "vllm"},
		annotations: map[string]string{"prometheus.io/scrape": "false"},
	},
	"annotated, and no engine": {
		labels:      map[string]string{"k8s-app": "kube-dns"},
		annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9153"},
		ports:       map[string]int{"metrics": 9153},
	},
	"no engine": {labels: map[string]string{"app": "postgres"}, ports: map[string]int{"metrics": 9187}},
	"llmfleet itself": {
		labels: map[string]string{"app.kubernetes.io/name": "llmfleet", "app": "vllm"},
		ports:  map[string]int{"prometheus": 9464},
	},
}

// TestEnginesAreFound: each engine is found at its page, once, and nothing else is.
func TestEnginesAreFound(t *testing.T) {
	t.Parallel()
	job := jobs(t, gateway(t, defaults.render(t)), 0)["engines"]
	for name, c := range engines {
		t.Run(name, func(t *testing.T) {
			for ip, host := range map[string]string{"10.0.0.1": "10.0.0.1", "fd00::1": "[fd00::1]"} {
				var want []string
				if c.page != "" {
					want = []string{"http://" + host + c.page}
				}
				p := pod{c.labels, c.annotations, c.ports, ip, "Running"}
				assert.Equal(t, want, job.pages(t, p))
				p.phase = "Succeeded"
				assert.Empty(t, job.pages(t, p))
			}
		})
	}
}

// TestAnnotatedPodsAreFound: on request, whatever asks to be scraped is, and for what is an engine its annotations count.
func TestAnnotatedPodsAreFound(t *testing.T) {
	t.Parallel()
	job := jobs(t, gateway(t, installation{flags: []string{"--set=presets.engines.annotated=true"}}.render(t)), 0)["engines"]
	asking := pod{annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9001", "prometheus.io/path": "/stats"}}
	assert.Equal(t, []string{"http://10.0.0.1:9001/stats"}, job.pages(t, asking))
	asking.labels = map[string]string{"app": "vllm"}
	assert.Equal(t, []string{"http://10.0.0.1:9001/stats"}, job.pages(t, asking))
	delete(asking.annotations, "prometheus.io/port")
	assert.Equal(t, []string{"http://10.0.0.1:8000/stats"}, job.pages(t, asking))
}

// TestOthersAreFound: the pages of GPUs and of endpoint pickers are found by their usual labels.
func TestOthersAreFound(t *testing.T) {
	t.Parallel()
	all := jobs(t, gateway(t, installation{flags: []string{"--set=presets.gpu.enabled=true,presets.epp.enabled=true"}}.render(t)), 0)
	dcgm := pod{labels: map[string]string{"app": "nvidia-dcgm-exporter"}}
	assert.Equal(t, []string{"http://10.0.0.1:9400/metrics"}, all["gpu"].pages(t, dcgm))
	picker := pod{labels: map[string]string{"inferencepool": "qwen-epp"}, ports: map[string]int{"grpc": 9002, "metrics": 9090}}
	assert.Equal(t, []string{"http://10.0.0.1:9090/metrics"}, all["epp"].pages(t, picker))
	assert.Empty(t, all["engines"].pages(t, dcgm))
	assert.Empty(t, all["engines"].pages(t, picker))
}

// TestShardsShareEngines: every model belongs to exactly one of the gateways, with all of its replicas, and no gateway has none.
func TestShardsShareEngines(t *testing.T) {
	t.Parallel()
	const gateways, models = 3, 40
	w := gateway(t, installation{flags: []string{fmt.Sprintf("--set=shardScrape.enabled=true,replicas=%d", gateways)}}.render(t))
	owned := map[int]int{}
	for number := range models {
		var owners []int
		for ordinal := range gateways {
			replicas := 0
			for replica := range 4 {
				p := pod{
					labels: map[string]string{"app": "vllm", "llm-d.ai/model": fmt.Sprintf("model-%d", number)},
					ports:  map[string]int{"metrics": 8000}, ip: fmt.Sprintf("10.0.%d.%d", number, replica),
				}
				replicas += len(jobs(t, w, ordinal)["engines"].pages(t, p))
			}
			if replicas > 0 {
				assert.Equal(t, 4, replicas)
				owners = append(owners, ordinal)
				owned[ordinal]++
			}
		}
		assert.Len(t, owners, 1, "model %d", number)
	}
	assert.Len(t, owned, gateways)
}
