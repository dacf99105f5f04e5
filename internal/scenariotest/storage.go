// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Host has the extensions of a collector.
type Host map[component.ID]component.Component

// GetExtensions returns them.
func (h Host) GetExtensions() map[component.ID]component.Component { return h }

// FileStorage is the extension file_storage in a folder of its own.
func FileStorage(t *testing.T) component.Component {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory = t.TempDir()
	e, err := factory.Create(t.Context(), extension.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e
}

// Shelf is a storage that holds one value, and can fail.
type Shelf struct {
	component.StartFunc
	component.ShutdownFunc
	Value                            []byte
	OpenError, ReadError, WriteError error
	Writes                           atomic.Int64
	Closed                           bool
}

// GetClient returns the shelf itself.
func (s *Shelf) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, s.OpenError
}

// Get returns the value, whatever the key.
func (s *Shelf) Get(context.Context, string) ([]byte, error) { return s.Value, s.ReadError }

// Set replaces the value.
func (s *Shelf) Set(_ context.Context, _ string, value []byte) error {
	s.Writes.Add(1)
	if s.WriteError == nil {
		s.Value = value
	}
	return s.WriteError
}

// Delete does nothing.
func (s *Shelf) Delete(context.Context, string) error { return nil }

// Batch does nothing.
func (s *Shelf) Batch(context.Context, ...*storage.Operation) error { return nil }

// Close notes that it was called.
func (s *Shelf) Close(context.Context) error {
	s.Closed = true
	return nil
}
