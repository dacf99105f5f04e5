// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Storage opens the storage extension that the key `storage` names, for the
// component of that kind and id; a client that keeps nothing if it names none.
func Storage(ctx context.Context, host component.Host, extension *component.ID, kind component.Kind, id component.ID) (storage.Client, error) {
	if extension == nil {
		return storage.NewNopClient(), nil
	}
	found, ok := host.GetExtensions()[*extension]
	if !ok {
		return nil, fmt.Errorf("storage: there is no extension %q: define it under extensions, and list it under service::extensions", extension)
	}
	store, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: extension %q keeps nothing: use a storage extension, as file_storage", extension)
	}
	client, err := store.GetClient(ctx, kind, id, "")
	if err != nil {
		return nil, fmt.Errorf("storage: %w: if it is in use, then by another pipeline: a component that keeps something is of one, so give each a name of its own, as in %s/two", err, id.Type())
	}
	return client, nil
}
