// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// saveEvery is how often what was learned is saved while nothing turns: so much of
// it is lost if the collector ends without being asked to.
const saveEvery = 5 * time.Minute

// Keeper keeps over a restart what a component has learned. It keeps nothing
// without a storage, and before it is opened. Not safe for concurrent use.
type Keeper struct {
	// Storage is the extension that the key `storage` names; nil: there is none.
	Storage *component.ID
	// Kind and Component are whose it is, and Key what it is called in the storage.
	Kind      component.Kind
	Component component.ID
	Key       string
	// Save returns what was learned.
	Save func() []byte

	client storage.Client // nil: nothing is kept
	saved  time.Time
}

// Open opens the storage, and has load go on with what it holds. Unread is why
// that cannot be gone on with: then it is for the component to learn anew, as
// nothing known is better than what is wrong.
func (k *Keeper) Open(ctx context.Context, host component.Host, now time.Time, load func(data []byte) error) (unread, err error) {
	if k.Storage == nil {
		return nil, nil
	}
	client, err := Storage(ctx, host, k.Storage, k.Kind, k.Component)
	if err != nil {
		return nil, err
	}
	k.client, k.saved = client, now
	data, unread := client.Get(ctx, k.Key)
	if unread == nil && data != nil {
		unread = load(data)
	}
	return unread, nil
}

// Keep saves what was learned by the end of a pane in which something turned, and
// every five minutes.
func (k *Keeper) Keep(ctx context.Context, end time.Time, turned bool) error {
	if k.client == nil || !turned && end.Sub(k.saved) < saveEvery {
		return nil
	}
	k.saved = end
	return k.client.Set(ctx, k.Key, k.Save())
}

// Close saves what was learned for the next start.
func (k *Keeper) Close(ctx context.Context) error {
	if k.client == nil {
		return nil
	}
	client := k.client
	k.client = nil
	return errors.Join(client.Set(ctx, k.Key, k.Save()), client.Close(ctx))
}
