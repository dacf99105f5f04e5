// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// amount is a number of GPUs by kind: the resource by which they are asked for.
// Devices of a DRA driver are of the kind of its vendor's resource, so that a GPU
// that is told both ways is one.
type amount map[string]int

func (s *Store) isGPU(resource string) bool {
	return slices.ContainsFunc(s.options.GPUResources, func(name string) bool {
		prefix, open := strings.CutSuffix(name, "*")
		return name == resource || open && strings.HasPrefix(resource, prefix)
	})
}

// kindOf is the kind of a driver's devices; "" if they are no GPUs.
func (s *Store) kindOf(driver string) string {
	if !slices.Contains(s.options.GPUDrivers, driver) {
		return ""
	}
	for _, name := range s.options.GPUResources {
		vendor, _, _ := strings.Cut(name, "/")
		if !strings.HasSuffix(name, "*") && (driver == vendor || strings.HasSuffix(driver, "."+vendor)) {
			return name
		}
	}
	return driver
}

// classKind is the kind of the devices that a class stands for, by its extended
// resource, a driver that its selectors name, or its own name; "" if it cannot be
// told or they are no GPUs. Selectors are searched, not evaluated.
func (s *Store) classKind(class string) string {
	if c := s.classes[types.NamespacedName{Name: class}]; c != nil {
		if name := c.Spec.ExtendedResourceName; name != nil && s.isGPU(*name) {
			return *name
		}
		for _, selector := range c.Spec.Selectors {
			for _, driver := range s.options.GPUDrivers {
				if selector.CEL != nil && quotes(selector.CEL.Expression, driver) {
					return s.kindOf(driver)
				}
			}
		}
	}
	for _, driver := range s.options.GPUDrivers {
		_, vendor, _ := strings.Cut(driver, ".")
		if class == driver || strings.HasSuffix(class, "."+vendor) {
			return s.kindOf(driver)
		}
	}
	return ""
}

func quotes(expression, word string) bool {
	return strings.Contains(expression, `"`+word+`"`) || strings.Contains(expression, "'"+word+"'")
}

// extended is what a pod asks for as extended resources, without what a claim
// serves: its containers and sidecars together, or an init container with the
// sidecars before it if that is more.
func (s *Store) extended(p *corev1.Pod) amount {
	served := map[[2]string]bool{}
	if status := p.Status.ExtendedResourceClaimStatus; status != nil {
		for _, m := range status.RequestMappings {
			served[[2]string{m.ContainerName, m.ResourceName}] = true
		}
	}
	total, sidecars, most := amount{}, amount{}, amount{}
	each := func(c *corev1.Container, visit func(kind string, n int)) {
		for name, quantity := range c.Resources.Limits { // of extended resources, requests equal limits
			if kind := string(name); s.isGPU(kind) && !served[[2]string{c.Name, kind}] && quantity.Value() > 0 {
				visit(kind, int(quantity.Value()))
			}
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		each(c, func(kind string, n int) {
			if sidecar {
				sidecars[kind] += n
			} else {
				most[kind] = max(most[kind], sidecars[kind]+n)
			}
		})
	}
	for i := range p.Spec.Containers {
		each(&p.Spec.Containers[i], func(kind string, n int) { total[kind] += n })
	}
	for kind, n := range sidecars {
		total[kind] += n
	}
	for kind, n := range most {
		total[kind] = max(total[kind], n)
	}
	return total
}

// claimsOf are a pod's claims, as far as they were made.
func (s *Store) claimsOf(p *corev1.Pod) (claims []*resourcev1.ResourceClaim) {
	var names []string
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	for _, c := range p.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	if status := p.Status.ExtendedResourceClaimStatus; status != nil {
		names = append(names, status.ResourceClaimName)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if c := s.claims[types.NamespacedName{Namespace: p.Namespace, Name: name}]; c != nil {
			claims = append(claims, c)
		}
	}
	return claims
}

// wants is all that a pod asks for, as extended resources and by claims.
func (s *Store) wants(p *corev1.Pod) amount {
	all := s.extended(p)
	for _, claim := range s.claimsOf(p) {
		for kind, n := range s.claimed(claim) {
			all[kind] += n
		}
	}
	return all
}

// claimed is how many GPUs a claim has, or asks for while it has none. Of
// alternatives the first counts, "all devices" as one, access of administrators not.
func (s *Store) claimed(claim *resourcev1.ResourceClaim) amount {
	all := amount{}
	if claim.Status.Allocation != nil {
		seen := map[device]bool{}
		for _, r := range claim.Status.Allocation.Devices.Results {
			d := device{r.Driver, r.Pool, r.Device}
			if kind := s.kindOf(r.Driver); kind != "" && !isTrue(r.AdminAccess) && !seen[d] {
				seen[d] = true
				all[kind]++
			}
		}
		return all
	}
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		switch {
		case r.Exactly != nil:
			if kind := s.classKind(r.Exactly.DeviceClassName); kind != "" && !isTrue(r.Exactly.AdminAccess) {
				all[kind] += int(max(r.Exactly.Count, 1))
			}
		case len(r.FirstAvailable) > 0:
			if kind := s.classKind(r.FirstAvailable[0].DeviceClassName); kind != "" {
				all[kind] += int(max(r.FirstAvailable[0].Count, 1))
			}
		}
	}
	return all
}

func isTrue(b *bool) bool { return b != nil && *b }
