// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Whoever may not hold the Lease says so once, and again if it is taken away later; an API server that is away is another matter.
func TestForbiddenLeaseIsTold(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	forbidden := apierrors.NewForbidden(leases, "llmfleet", errors.New("no rule"))
	answers := map[string]error{}
	client := fake.NewClientset()
	client.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := answers[action.GetVerb()]
		return err != nil, nil, err
	})
	core, logs := observer.New(zap.WarnLevel)
	lock := &candidLock{logger: zap.New(core), Interface: &resourcelock.LeaseLock{
		Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "a"},
	}}
	lock.Interface.(*resourcelock.LeaseLock).LeaseMeta.Name = "llmfleet"
	lock.Interface.(*resourcelock.LeaseLock).LeaseMeta.Namespace = "monitoring"
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "a"}
	try := func() {
		if _, _, err := lock.Get(t.Context()); apierrors.IsNotFound(err) {
			_ = lock.Create(t.Context(), record)
		} else if err == nil {
			_ = lock.Update(t.Context(), record)
		}
	}

	answers["get"] = errors.New("connection refused")
	try()
	assert.Empty(t, logs.All(), "away, not forbidden")
	answers = map[string]error{"create": forbidden}
	try()
	try()
	require.Len(t, logs.TakeAll(), 1)
	answers = nil
	try()
	try()
	assert.Empty(t, logs.All())
	answers = map[string]error{"update": forbidden}
	try()
	told := logs.TakeAll()
	require.Len(t, told, 1)
	assert.Contains(t, told[0].Message, "grant get, create and update of leases")
	assert.Contains(t, told[0].ContextMap()["lease"], "monitoring/llmfleet")
}
