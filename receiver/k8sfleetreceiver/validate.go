// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/llmfleet/llmfleet/internal/settings"
)

// mostPods is the most that may be followed: the bound of memory stays one.
const mostPods = 1_000_000

// Validate reports every setting that cannot work, by its key and with a remedy.
func (c *Config) Validate() error {
	errs := []error{
		c.validAuth(),
		settings.Duration("resync", c.Resync),
		settings.Duration("collection_interval", c.CollectionInterval),
		validLabels("model_labels", c.ModelLabels...),
		validLabels("gpu_model_labels", c.GPUModelLabels...),
		validLabels("node_pool_labels", c.NodePoolLabels...),
		c.validResources(),
		c.LeaderElection.validate(),
	}
	for _, namespace := range c.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			errs = append(errs, fmt.Errorf("namespaces: %q is not the name of one: use names such as %q, or leave the key out for all", namespace, "llm"))
		}
	}
	if c.GroupLabel != "" {
		errs = append(errs, validLabels("group_label", c.GroupLabel))
	}
	if _, err := labels.Parse(c.LabelSelector); err != nil {
		errs = append(errs, fmt.Errorf("label_selector: %w: use a selector as kubectl has it, as in %q", err, "app=vllm"))
	}
	if c.MaxPods < 1 || c.MaxPods > mostPods {
		errs = append(errs, fmt.Errorf("max_pods: %d is out of range: use 1 to %d", c.MaxPods, mostPods))
	}
	return errors.Join(errs...)
}

func (c *Config) validAuth() error {
	choices := []string{authServiceAccount, authKubeConfig, authNone}
	if !slices.Contains(choices, c.AuthType) {
		return fmt.Errorf("auth_type: unknown choice %q: use one of %s", c.AuthType, strings.Join(choices, ", "))
	}
	if c.Context != "" && c.AuthType != authKubeConfig {
		return fmt.Errorf("context: auth_type %s reads no kubeconfig: use auth_type: %s, or remove context", c.AuthType, authKubeConfig)
	}
	return nil
}

func validLabels(key string, names ...string) error {
	for _, name := range names {
		if len(validation.IsQualifiedName(name)) > 0 {
			return fmt.Errorf("%s: %q is not the key of a label: use keys such as %q", key, name, "llm-d.ai/model")
		}
	}
	return nil
}

func (c *Config) validResources() error {
	var errs []error
	if len(c.GPUResources) == 0 {
		errs = append(errs, errors.New("gpu_resources: there are none, so no pod would ask for an accelerator: use the names of extended resources, as in [nvidia.com/gpu]"))
	}
	for _, name := range c.GPUResources {
		bare := strings.TrimSuffix(name, "*")
		if bare != name {
			bare += "x" // what any could be
		}
		if len(validation.IsQualifiedName(bare)) > 0 {
			errs = append(errs, fmt.Errorf("gpu_resources: %q is not the name of an extended resource: use names such as nvidia.com/gpu, with a * at most at the end", name))
		}
	}
	for _, name := range c.IgnoreResources {
		if !slices.ContainsFunc(resources, func(r resource) bool { return r.name == name && name != podsResource }) {
			errs = append(errs, fmt.Errorf("ignore_resources: %q is not one that can be ignored: use some of %s", name, strings.Join(ignorable(), ", ")))
		}
	}
	return errors.Join(errs...)
}

func (c *LeaderElectionConfig) validate() error {
	if !c.Enabled {
		return nil
	}
	errs := []error{
		settings.Duration("leader_election.lease_duration", c.LeaseDuration),
		settings.Duration("leader_election.renew_deadline", c.RenewDeadline),
		settings.Duration("leader_election.retry_period", c.RetryPeriod),
	}
	if len(validation.IsDNS1123Subdomain(c.LeaseName)) > 0 {
		errs = append(errs, fmt.Errorf("leader_election.lease_name: %q cannot be the name of a Lease: use one such as %q", c.LeaseName, "llmfleet-k8s-fleet"))
	}
	if c.LeaseNamespace != "" && len(validation.IsDNS1123Label(c.LeaseNamespace)) > 0 {
		errs = append(errs, fmt.Errorf("leader_election.lease_namespace: %q is not the name of one: use a name such as %q", c.LeaseNamespace, "llmfleet"))
	}
	if c.RenewDeadline >= c.LeaseDuration {
		errs = append(errs, fmt.Errorf("leader_election.renew_deadline: %s does not end before the lease of %s: use a shorter one", c.RenewDeadline, c.LeaseDuration))
	}
	// A try can be late by its jitter of 20 %.
	if c.RetryPeriod+c.RetryPeriod/5 >= c.RenewDeadline && c.RenewDeadline >= time.Second {
		errs = append(errs, fmt.Errorf("leader_election.retry_period: %s leaves no second try within %s: use a shorter one", c.RetryPeriod, c.RenewDeadline))
	}
	return errors.Join(errs...)
}
