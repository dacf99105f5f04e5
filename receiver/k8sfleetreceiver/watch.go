// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/objects"
)

const (
	// syncWait is how long the lists of what tells about pods are waited for before
	// pods are looked at; what comes later is used from then on.
	syncWait = 30 * time.Second
	// rounds is how often the watches are looked after.
	rounds = 10 * time.Second
	// discoverEvery is how often resources that were not there are looked for.
	discoverEvery = 3 * time.Minute
)

// watcher is the watches of one time in which this collector is the one that
// watches.
type watcher struct {
	*core
	to      clients
	tracker *tracker

	watching sync.WaitGroup
	missing  []resource // optional, and not there so far
	looked   time.Time  // when they were last looked for
	quiet    map[string]bool
}

// watch watches until ctx ends.
func (c *core) watch(ctx context.Context, to clients) {
	store := c.newInventory()
	w := &watcher{core: c, to: to, tracker: newTracker(c, store), quiet: make(map[string]bool)}
	c.tally.leader.Store(1)
	c.logger.Info("watching")
	w.begin(ctx)
	c.store.Store(store) // what half of the lists tell would be no capacity
	for tick := time.NewTicker(rounds); ctx.Err() == nil; {
		select {
		case now := <-tick.C:
			w.lookAfter(ctx, now)
		case <-ctx.Done():
			tick.Stop()
		}
	}
	w.watching.Wait()
	c.tally.leader.Store(0)
	c.store.Store(nil)
	c.health.rest()
}

// begin starts the watches in their order: what is about pods is known before
// pods are, and pods before their events.
func (w *watcher) begin(ctx context.Context) {
	var first, pods, events []cache.InformerSynced
	for _, r := range resources {
		switch {
		case w.config.ignores(r):
		case r.name == podsResource:
			w.waitFor(ctx, first)
			pods = w.start(ctx, r, r.versions[0])
		case r.name == eventsResource:
			w.waitFor(ctx, pods)
			events = w.start(ctx, r, r.versions[0])
		case !r.optional:
			first = append(first, w.start(ctx, r, r.versions[0])...)
		default:
			w.missing = append(w.missing, r)
			first = append(first, w.discover(ctx, r)...)
		}
	}
	w.looked = time.Now()
	w.waitFor(ctx, slices.Concat(pods, events))
	w.tracker.complete(cacheSynced(pods))
}

func (w *watcher) waitFor(ctx context.Context, synced []cache.InformerSynced) {
	ctx, cancel := context.WithTimeout(ctx, syncWait)
	defer cancel()
	cache.WaitForCacheSync(ctx.Done(), synced...)
}

func cacheSynced(synced []cache.InformerSynced) bool {
	return !slices.ContainsFunc(synced, func(is cache.InformerSynced) bool { return !is() })
}

// lookAfter does what is due now and then.
func (w *watcher) lookAfter(ctx context.Context, now time.Time) {
	w.health.check(now)
	if now.Sub(w.looked) >= discoverEvery {
		w.looked = now
		for _, r := range slices.Clone(w.missing) {
			w.discover(ctx, r)
		}
	}
	if err := w.remember(ctx, now); err != nil {
		w.logger.Warn("what was told cannot be stored: after a restart it is told again, marked as replayed", zap.Error(err))
	}
}

// remember stores what was told, unless some of it is still on its way.
func (w *watcher) remember(ctx context.Context, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.outbox.empty() {
		return nil
	}
	return w.keeper.Keep(ctx, now, false)
}

// discover starts the watch of a resource that may not be there, if it is.
func (w *watcher) discover(ctx context.Context, r resource) []cache.InformerSynced {
	for _, version := range r.versions {
		offered, err := w.to.offered.ServerResourcesForGroupVersion(version.String())
		if err != nil {
			if !apierrors.IsNotFound(err) {
				w.health.failed(r.name, err, time.Now())
			}
			continue
		}
		if !slices.ContainsFunc(offered.APIResources, func(is metav1.APIResource) bool { return is.Name == r.name }) {
			continue
		}
		w.missing = slices.DeleteFunc(w.missing, func(is resource) bool { return is.name == r.name })
		return w.start(ctx, r, version)
	}
	return nil
}

// start starts the watch of a resource, in each of the namespaces.
func (w *watcher) start(ctx context.Context, r resource, version schema.GroupVersion) (synced []cache.InformerSynced) {
	namespaces := w.config.Namespaces
	if r.clusterWide || len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		informer, err := w.informer(r, w.to.objects.Resource(version.WithResource(r.name)).Namespace(namespace))
		if err != nil {
			w.logger.Error("a resource cannot be watched", zap.String("resource", r.name), zap.Error(err))
			continue
		}
		synced = append(synced, informer.HasSynced)
		w.watching.Go(func() { informer.RunWithContext(ctx) })
	}
	return synced
}

// informer makes a watch, with what becomes of the objects.
func (w *watcher) informer(r resource, from dynamic.ResourceInterface) (cache.SharedIndexInformer, error) {
	options := cache.SharedIndexInformerOptions{ResyncPeriod: w.config.Resync}
	if r.name == eventsResource {
		options.Indexers = cache.Indexers{byPod: podOfEvent}
	}
	informer := cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(w.listWatch(r, from), w.to.objects), &unstructured.Unstructured{}, options)
	if err := informer.SetTransform(objects.Trim); err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { w.failed(r, err) }); err != nil {
		return nil, err
	}
	if r.name == eventsResource {
		w.tracker.listen(informer.GetIndexer())
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			w.health.hears(r.name, time.Now())
			w.tracker.set(o, initial)
		},
		UpdateFunc: func(before, o any) {
			if versionOf(before) != versionOf(o) { // else it is only looked at again
				w.health.hears(r.name, time.Now())
			}
			w.tracker.replace(before, o)
		},
		DeleteFunc: func(o any) {
			w.health.hears(r.name, time.Now())
			w.tracker.remove(o)
		},
	})
	return informer, err
}

// listWatch is how objects are asked for. A watch that is granted shows that it
// works.
func (w *watcher) listWatch(r resource, from dynamic.ResourceInterface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = r.fields
			return from.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = r.fields
			granted, err := from.Watch(ctx, o)
			if err == nil {
				w.health.works(r.name)
			}
			return granted, err
		},
	}
}

// failed notes that a list or a watch failed; it is tried again for ever. Each
// resource is logged when it begins to.
func (w *watcher) failed(r resource, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		w.logger.Debug("a watch has expired, the resource is listed again", zap.String("resource", r.name))
		return
	}
	w.health.failed(r.name, err, time.Now())
	w.tracker.mu.Lock()
	logged := w.quiet[r.name]
	w.quiet[r.name] = true
	w.tracker.mu.Unlock()
	if !logged {
		w.logger.Warn("a resource cannot be watched, it is tried again", zap.String("resource", r.name), zap.Error(err))
	}
}

func versionOf(o any) string {
	if object, ok := o.(metav1.Object); ok {
		return object.GetResourceVersion()
	}
	return ""
}

// byPod is the index of events by the uid of the pod that they are about.
const byPod = "pod"

func podOfEvent(o any) ([]string, error) {
	if e, ok := o.(*corev1.Event); ok {
		return []string{string(e.InvolvedObject.UID)}, nil
	}
	return nil, nil
}
