// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"

	"github.com/google/uuid"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// namespaceFile tells a container its pod's namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// namespace is where the Lease is: where the collector itself is, if nothing else
// is said.
func (c *LeaderElectionConfig) namespace() string {
	own, _ := os.ReadFile(namespaceFile) // outside of a cluster there is none
	return cmp.Or(c.LeaseNamespace, os.Getenv("POD_NAMESPACE"), strings.TrimSpace(string(own)), "default")
}

// identity is a name that no other collector has, and by which people find it.
func identity() string {
	host, _ := os.Hostname() // without it, the rest still tells it apart
	return host + "_" + uuid.NewString()
}

// elect has lead work while this collector holds the Lease, until ctx ends. When
// the Lease is lost, lead's context ends, and it is tried for again.
func (c *core) elect(ctx context.Context, leases coordinationv1.LeasesGetter, lead func(context.Context)) {
	of := &c.config.LeaderElection
	for ctx.Err() == nil {
		var term term
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Name: c.id.String(),
			Lock: &candidLock{logger: c.logger, Interface: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: of.namespace(), Name: of.LeaseName},
				Client:     leases,
				LockConfig: resourcelock.ResourceLockConfig{Identity: c.identity},
			}},
			LeaseDuration: of.LeaseDuration, RenewDeadline: of.RenewDeadline, RetryPeriod: of.RetryPeriod,
			ReleaseOnCancel: true, // facts that two tell for a moment are the same facts
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { term.serve(ctx, lead) },
				OnStoppedLeading: func() {},
				OnNewLeader: func(identity string) {
					c.logger.Info("who watches", zap.String("leader", identity), zap.Bool("me", identity == c.identity))
				},
			},
		})
		if err != nil { // Validate lets none through
			c.logger.Error("leader election cannot work, nothing is watched", zap.Error(err))
			return
		}
		elector.Run(ctx)
		term.end()
	}
}

// candidLock says so when it is forbidden to hold the Lease, once until it may:
// who may not be elected watches nothing, and would be silent about it.
type candidLock struct {
	resourcelock.Interface
	logger *zap.Logger
	told   bool // the elector asks one thing after the other
}

func (l *candidLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.tell(err)
	return record, raw, err
}

func (l *candidLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	l.tell(err)
	return err
}

func (l *candidLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	l.tell(err)
	return err
}

func (l *candidLock) tell(err error) {
	if apierrors.IsForbidden(err) && !l.told {
		l.told = true
		l.logger.Warn("may not hold the Lease, nothing is watched: grant get, create and update of leases, or set leader_election.enabled to false",
			zap.String("lease", l.Describe()), zap.Error(err))
	}
	if err == nil {
		l.told = false
	}
}

// term is the time as a leader. The elector begins it at a moment of its own, and
// does not wait for its end.
type term struct {
	mu      sync.Mutex
	over    bool
	serving sync.WaitGroup
}

func (t *term) serve(ctx context.Context, lead func(context.Context)) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.serving.Add(1)
	t.mu.Unlock()
	defer t.serving.Done()
	lead(ctx)
}

// end waits for the end of a term that began, and lets none begin.
func (t *term) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.serving.Wait()
}
