// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// host has the extensions of a collector.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// newFileStorage is the extension file_storage in a folder of its own.
func newFileStorage(t *testing.T) component.Component {
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

// shelf is a storage that holds one value, and can fail.
type shelf struct {
	component.StartFunc
	component.ShutdownFunc
	value            []byte
	get, set, failed error
	sets             atomic.Int64
	closed           bool
}

func (s *shelf) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, s.failed
}

func (s *shelf) Get(context.Context, string) ([]byte, error) { return s.value, s.get }

func (s *shelf) Set(_ context.Context, _ string, value []byte) error {
	s.sets.Add(1)
	if s.set == nil {
		s.value = value
	}
	return s.set
}

func (s *shelf) Delete(context.Context, string) error               { return nil }
func (s *shelf) Batch(context.Context, ...*storage.Operation) error { return nil }

func (s *shelf) Close(context.Context) error {
	s.closed = true
	return nil
}

var storageID = component.MustNewID("file_storage")

// stored is the default configuration with a storage.
func stored() *Config {
	config := createDefaultConfig().(*Config)
	config.Storage = &storageID
	return config
}

func TestStorageThatIsNone(t *testing.T) {
	for _, c := range []struct {
		host component.Host
		want string
	}{
		{host{}, `storage: there is no extension "file_storage": define it under extensions, and list it under service::extensions`},
		{host{storageID: struct{ component.Component }{}}, `storage: extension "file_storage" keeps nothing: use a storage extension, as file_storage`},
		{host{storageID: &shelf{failed: errors.New("no such disk")}}, "storage: no such disk"},
	} {
		p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(componentID.Type()), stored(), consumertest.NewNop())
		require.NoError(t, err)
		require.EqualError(t, p.Start(t.Context(), c.host), c.want)
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, p.Shutdown(t.Context()))
	}
}

// TestWithoutAnAlarmNothingIsKept: the storage is not even asked for.
func TestWithoutAnAlarmNothingIsKept(t *testing.T) {
	config := stored()
	config.Alarm = nil
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(componentID.Type()), config, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), host{}))
	require.NoError(t, p.Shutdown(t.Context()))
}

// TestStoredValueThatCannotBeRead is reported, and evidence is gathered anew.
func TestStoredValueThatCannotBeRead(t *testing.T) {
	for name, s := range map[string]*shelf{
		"damaged": {value: []byte("not what an alarm saves")},
		"short":   {value: []byte{1}},
		"refused": {get: errors.New("no such disk")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zap.WarnLevel)
				settings := processortest.NewNopSettings(componentID.Type())
				settings.Logger = zap.New(core)
				p, err := NewFactory().CreateMetrics(t.Context(), settings, stored(), consumertest.NewNop())
				require.NoError(t, err)
				require.NoError(t, p.Start(t.Context(), host{storageID: s}))
				require.Equal(t, 1, logs.Len())
				assert.Equal(t, "the alarm's evidence cannot be gone on with, and is gathered anew", logs.All()[0].Message)
				assert.NotEmpty(t, logs.All()[0].ContextMap()["error"])
				require.NoError(t, p.ConsumeMetrics(t.Context(), engine("a", time.Now(), 1)))
				require.NoError(t, p.Shutdown(t.Context()))
				assert.True(t, s.closed)

				// What was gathered meanwhile can be read.
				s.get = nil
				p, err = NewFactory().CreateMetrics(t.Context(), settings, stored(), consumertest.NewNop())
				require.NoError(t, err)
				require.NoError(t, p.Start(t.Context(), host{storageID: s}))
				require.NoError(t, p.Shutdown(t.Context()))
				assert.Equal(t, 1, logs.Len())
			})
		})
	}
}

// TestEvidenceIsSavedEveryFiveMinutes, and at the end.
func TestEvidenceIsSavedEveryFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(componentID.Type()), stored(), consumertest.NewNop())
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, p.Start(t.Context(), host{storageID: s}))
		for _, want := range []struct{ minutes, sets int64 }{{4, 0}, {6, 1}, {11, 2}} {
			wait(began.Add(time.Duration(want.minutes) * time.Minute))
			assert.Equal(t, want.sets, s.sets.Load(), "after %d minutes", want.minutes)
		}
		require.NoError(t, p.Shutdown(t.Context()))
		assert.EqualValues(t, 3, s.sets.Load())
	})
}

// TestStorageThatIsFull is reported, and the reports go on.
func TestStorageThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		settings := processortest.NewNopSettings(componentID.Type())
		settings.Logger = zap.New(core)
		s, next := &shelf{set: errors.New("disk is full")}, new(consumertest.MetricsSink)
		p, err := NewFactory().CreateMetrics(t.Context(), settings, stored(), next)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), host{storageID: s}))
		require.NoError(t, p.ConsumeMetrics(t.Context(), engine("a", time.Now(), 1)))
		wait(time.Now().Add(5*time.Minute + 10*time.Second))
		require.Equal(t, 1, logs.Len())
		assert.Equal(t, "disk is full", logs.All()[0].ContextMap()["error"])
		assert.Greater(t, len(next.AllMetrics()), 1)
		require.ErrorContains(t, p.Shutdown(t.Context()), "disk is full")
		assert.True(t, s.closed)
	})
}

// TestShutdownThatIsGivenUpOn leaves an evaluation running: what it works on is
// not saved under its hands.
func TestShutdownThatIsGivenUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := &shelf{}, make(chan struct{})
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			if isDerived(md) {
				<-release
			}
			return nil
		})
		require.NoError(t, err)
		p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(componentID.Type()), stored(), next)
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, p.Start(t.Context(), host{storageID: s}))
		require.NoError(t, p.ConsumeMetrics(t.Context(), engine("a", began, 1)))
		wait(began.Add(40 * time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Shutdown(ctx), context.Canceled)
		assert.Zero(t, s.sets.Load())
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		assert.EqualValues(t, 1, s.sets.Load())
		assert.True(t, s.closed)
	})
}
