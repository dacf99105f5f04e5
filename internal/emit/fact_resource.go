// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// workloadKinds are the kinds for which semantic conventions have an attribute.
var workloadKinds = map[string]bool{
	"Deployment": true, "StatefulSet": true, "DaemonSet": true, "ReplicaSet": true, "Job": true, "CronJob": true,
}

// WriteFactResource writes which pod a fact is of, and what it says about it, as
// attributes of a resource: by k8s.pod.uid facts are routed to one owner.
func WriteFactResource(f *lifecycle.Fact, to pcommon.Resource) {
	m := to.Attributes()
	putText(m, lifecycle.KeyPod, f.Pod)
	about := f.About
	if about == nil {
		return
	}
	putText(m, lifecycle.KeyPodName, about.Name)
	putText(m, lifecycle.KeyNamespace, about.Namespace)
	putText(m, lifecycle.KeyNode, about.Node)
	putText(m, lifecycle.KeyModel, about.Model)
	putText(m, lifecycle.KeyEngine, about.Engine)
	putText(m, lifecycle.KeyGPUModel, about.GPUModel)
	if workloadKinds[about.WorkloadKind] {
		putText(m, "k8s."+strings.ToLower(about.WorkloadKind)+".name", about.Workload)
	}
	putText(m, lifecycle.KeyWorkloadKind, about.WorkloadKind)
	putText(m, lifecycle.KeyWorkload, about.Workload)
	putCount(m, lifecycle.KeyGPUs, about.GPUs)
	putText(m, lifecycle.KeyGroup, about.Group)
	putText(m, lifecycle.KeyLeader, about.Leader)
	putCount(m, lifecycle.KeyGroupSize, about.GroupSize)
	if len(about.Containers) == 0 {
		return
	}
	containers, roles := m.PutEmptySlice(lifecycle.KeyContainers), pcommon.NewSlice()
	for _, c := range about.Containers {
		containers.AppendEmpty().SetStr(c.Name)
		roles.AppendEmpty().SetStr(c.Role.String())
	}
	roles.MoveAndAppendTo(m.PutEmptySlice(lifecycle.KeyContainerRoles))
}

func putCount(m pcommon.Map, key string, n int) {
	if n != 0 {
		m.PutInt(key, int64(n))
	}
}
