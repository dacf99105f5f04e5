// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/llmfleet/llmfleet/internal/settingstest"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

// remedies is what a user is told of each file in testdata/config/invalid: the
// key, and what to write instead.
var remedies = map[string][]string{
	"unknown_key":                {"selector: unknown key: use one of auth_type, collection_interval,"},
	"auth_unknown":               {`auth_type: unknown choice "token": use one of serviceAccount, kubeConfig, none`},
	"context_without_kubeconfig": {"context: auth_type serviceAccount reads no kubeconfig: use auth_type: kubeConfig, or remove context"},
	"namespace_name":             {`namespaces: "LLM" is not the name of one: use names such as "llm"`},
	"label_selector":             {"label_selector: ", `use a selector as kubectl has it, as in "app=vllm"`},
	"gpu_resources_none":         {"gpu_resources: there are none", "as in [nvidia.com/gpu]"},
	"gpu_resources_star":         {`gpu_resources: "nvidia.com/*gpu" is not the name of an extended resource`, "with a * at most at the end"},
	"model_label":                {`model_labels: "a b" is not the key of a label`},
	"group_label":                {`group_label: "/x" is not the key of a label`},
	"ignore_pods":                {`ignore_resources: "pods" is not one that can be ignored: use some of nodes, deployments,`},
	"ignore_unknown":             {`ignore_resources: "services" is not one that can be ignored`},
	"max_pods_zero":              {"max_pods: 0 is out of range: use 1 to 1000000"},
	"max_pods_too_many":          {"max_pods: 1000001 is out of range: use 1 to 1000000"},
	"resync_without_unit":        {`resync: 300ns is under a second; a number without a unit is read as nanoseconds: write the unit, as in "300s"`},
	"interval_zero":              {"collection_interval: must not be 0s: use a span of time of at least 1s"},
	"lease_name":                 {`leader_election.lease_name: "Fleet Lease" cannot be the name of a Lease`},
	"lease_namespace":            {`leader_election.lease_namespace: "a/b" is not the name of one`},
	"lease_short":                {"leader_election.renew_deadline: 10s does not end before the lease of 10s: use a shorter one"},
	"retry_long":                 {"leader_election.retry_period: 9s leaves no second try within 10s: use a shorter one"},
}

func TestInvalidConfig(t *testing.T) { settingstest.Refused[*Config](t, NewFactory(), remedies) }

func TestEmptyBodyHasDocumentedDefaults(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		AuthType: "serviceAccount",
		GPUResources: []string{
			"nvidia.com/gpu", "nvidia.com/mig-*", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "google.com/tpu", "habana.ai/gaudi",
			"aws.amazon.com/neuron",
		},
		ModelLabels: []string{"llm-d.ai/model"},
		GPUModelLabels: []string{
			"nvidia.com/gpu.product", "gpu.nvidia.com/productName", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator",
			"karpenter.k8s.aws/instance-gpu-name",
		},
		NodePoolLabels: []string{
			"karpenter.sh/nodepool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool",
		},
		MaxPods: 20_000, Resync: 5 * time.Minute,
		LeaderElection: LeaderElectionConfig{
			Enabled: true, LeaseName: "llmfleet-k8s-fleet", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		},
		CollectionInterval: 30 * time.Second, Metrics: metadata.DefaultMetricsConfig(),
	}, config)
}

func TestEverySetting(t *testing.T) {
	config, err := settingstest.Load[*Config](t, NewFactory(), "testdata/config/full.yaml")
	require.NoError(t, err)
	storage := component.MustNewIDWithName("file_storage", "fleet")
	assert.Equal(t, &Config{
		AuthType: "kubeConfig", Context: "admin", Namespaces: []string{"llm", "canary"}, LabelSelector: "app in (vllm, sglang)",
		GPUResources: []string{"nvidia.com/gpu", "example.com/npu-*"},
		ModelLabels:  []string{"model"}, GPUModelLabels: []string{"gpu"}, NodePoolLabels: []string{"pool"}, GroupLabel: "example.com/replica",
		IgnoreResources: []string{"events", "inferencepools"}, MaxPods: 100, Resync: time.Minute,
		LeaderElection: LeaderElectionConfig{
			Enabled: true, LeaseName: "fleet", LeaseNamespace: "llmfleet",
			LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 4 * time.Second,
		},
		Storage: &storage, CollectionInterval: 15 * time.Second, Metrics: metadata.DefaultMetricsConfig(),
	}, config)
}

// TestReadmeBlocks: every configuration of this receiver in its README works.
func TestReadmeBlocks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	settingstest.Shown[*Config](t, NewFactory(), "receivers", string(readme))
}

// TestRolesAreThoseThatAreUsed: rbac.yaml grants every resource that is watched,
// and none besides.
func TestRolesAreThoseThatAreUsed(t *testing.T) {
	granted := grants(t)
	for _, r := range resources {
		for _, version := range r.versions {
			key := version.Group + "/" + r.name
			assert.Equal(t, "[list watch]", granted[key], key)
			delete(granted, key)
		}
	}
	assert.Equal(t, map[string]string{"coordination.k8s.io/leases": "[get create update]"}, granted)
}
