// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/facts"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

// Config is the configuration of the k8s_fleet receiver.
type Config struct {
	// AuthType is how the receiver proves to the API server who it is:
	// serviceAccount, kubeConfig or none.
	AuthType string `mapstructure:"auth_type"`
	// Context is the context of the kubeconfig, if it is not the current one.
	Context string `mapstructure:"context"`
	// Namespaces are those that are watched; none are all.
	Namespaces []string `mapstructure:"namespaces"`
	// LabelSelector says which pods are of the fleet. Without it, those are that
	// ask for an accelerator.
	LabelSelector string `mapstructure:"label_selector"`
	// GPUResources are the extended resources that are accelerators. A * at the end
	// stands for any.
	GPUResources []string `mapstructure:"gpu_resources"`
	// ModelLabels are labels of pods that name the model: the first that is there
	// counts.
	ModelLabels []string `mapstructure:"model_labels"`
	// GPUModelLabels are labels of nodes that name the accelerator's model.
	GPUModelLabels []string `mapstructure:"gpu_model_labels"`
	// NodePoolLabels are labels of nodes that name the node pool.
	NodePoolLabels []string `mapstructure:"node_pool_labels"`
	// GroupLabel is a label of pods that names the replica group, besides those of
	// LeaderWorkerSet and Ray.
	GroupLabel string `mapstructure:"group_label"`
	// IgnoreResources are resources that are not watched.
	IgnoreResources []string `mapstructure:"ignore_resources"`
	// MaxPods is how many pods are followed.
	MaxPods int `mapstructure:"max_pods"`
	// Resync is how often all objects are looked at again.
	Resync time.Duration `mapstructure:"resync"`
	// LeaderElection has one of several collectors watch.
	LeaderElection LeaderElectionConfig `mapstructure:"leader_election"`
	// Storage is an extension that keeps over a restart what was told.
	Storage *component.ID `mapstructure:"storage"`
	// CollectionInterval is how often metrics are emitted.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// Metrics turns single metrics on or off.
	Metrics metadata.MetricsConfig `mapstructure:"metrics"`
	// prevent unkeyed literals
	_ struct{}
}

// LeaderElectionConfig says how one of several collectors is chosen.
type LeaderElectionConfig struct {
	// Enabled has only the collector watch that holds the Lease.
	Enabled bool `mapstructure:"enabled"`
	// LeaseName is the name of the Lease.
	LeaseName string `mapstructure:"lease_name"`
	// LeaseNamespace is its namespace; empty: the collector's own.
	LeaseNamespace string `mapstructure:"lease_namespace"`
	// LeaseDuration is how long another waits that sees the Lease not renewed.
	LeaseDuration time.Duration `mapstructure:"lease_duration"`
	// RenewDeadline is how long the holder tries to renew it before it gives up.
	RenewDeadline time.Duration `mapstructure:"renew_deadline"`
	// RetryPeriod is the time between two tries.
	RetryPeriod time.Duration `mapstructure:"retry_period"`
	// prevent unkeyed literals
	_ struct{}
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

const (
	defaultMaxPods            = 20_000
	defaultResync             = 5 * time.Minute
	defaultCollectionInterval = 30 * time.Second
	// Those that Kubernetes' own controllers have.
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
)

func createDefaultConfig() component.Config {
	return &Config{
		AuthType: authServiceAccount,
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
		MaxPods: defaultMaxPods,
		Resync:  defaultResync,
		LeaderElection: LeaderElectionConfig{
			Enabled: true, LeaseName: "llmfleet-k8s-fleet",
			LeaseDuration: defaultLeaseDuration, RenewDeadline: defaultRenewDeadline, RetryPeriod: defaultRetryPeriod,
		},
		CollectionInterval: defaultCollectionInterval,
		Metrics:            metadata.DefaultMetricsConfig(),
	}
}

// Unmarshal refuses unknown keys.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

func (c *Config) factsOptions() facts.Options {
	return facts.Options{
		GPUResources: c.GPUResources, ModelLabels: c.ModelLabels, GPUModelLabels: c.GPUModelLabels, GroupLabel: c.GroupLabel,
	}
}
