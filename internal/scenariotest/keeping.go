// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestStorage holds that what a Deriver has learned is kept over a restart, and
// that no fault of a storage stops it from judging. Damaged are stored values that
// cannot be gone on with, and warning is what is logged of each.
func (d *Deriver[C]) TestStorage(t *testing.T, damaged map[string][]byte, warning string) {
	t.Helper()
	t.Run("ThatIsNone", d.storageThatIsNone)
	shelves := map[string]*Shelf{"refused": {ReadError: errors.New("no such disk")}}
	for name, value := range damaged {
		shelves[name] = &Shelf{Value: value}
	}
	for name, storage := range shelves {
		t.Run("ThatCannotBeRead/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { d.storageThatCannotBeRead(t, storage, warning) })
		})
	}
	t.Run("IsWrittenEveryFiveMinutes", func(t *testing.T) { synctest.Test(t, d.storageIsWritten) })
	t.Run("ThatIsFull", func(t *testing.T) { synctest.Test(t, d.storageThatIsFull) })
	t.Run("WhileAnEvaluationRuns", func(t *testing.T) { synctest.Test(t, d.storageWhileEvaluating) })
}

// storageThatIsNone is told of at the start, which fails.
func (d *Deriver[C]) storageThatIsNone(t *testing.T) {
	t.Helper()
	for _, c := range []struct {
		host Host
		want string
	}{
		{Host{}, `storage: there is no extension "file_storage": define it under extensions, and list it under service::extensions`},
		{Host{storageID: struct{ component.Component }{}}, `storage: extension "file_storage" keeps nothing: use a storage extension, as file_storage`},
		{Host{storageID: &Shelf{OpenError: errors.New("no such disk")}}, "storage: no such disk"},
	} {
		p, err := d.Factory.CreateMetrics(t.Context(), processortest.NewNopSettings(d.Factory.Type()), d.Stored(t), consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, p.Start(t.Context(), c.host), c.want)
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, p.Shutdown(t.Context()))
	}
}

// shelved is a stage whose storage is a shelf, and what is logged from some level
// on.
func (d *Deriver[C]) shelved(t *testing.T, storage *Shelf, level zapcore.Level) (*Stage[C], *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(level)
	stage := d.Stage(t, d.Stored(t))
	stage.Host[storageID], stage.Settings.Logger = storage, zap.New(core)
	return stage, logs
}

// storageThatCannotBeRead is reported, and all is learned anew.
func (d *Deriver[C]) storageThatCannotBeRead(t *testing.T, storage *Shelf, warning string) {
	t.Helper()
	stage, logs := d.shelved(t, storage, zap.WarnLevel)
	stage.Raise()
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, warning, logs.All()[0].Message)
	assert.NotEmpty(t, logs.All()[0].ContextMap()["error"])
	stage.show("a")
	stage.Shutdown()
	assert.True(t, storage.Closed)

	// What was learned meanwhile can be read.
	storage.ReadError = nil
	stage.Restart()
	stage.Shutdown()
	assert.Equal(t, 1, logs.Len())
}

// storageIsWritten every five minutes, and at the end.
func (d *Deriver[C]) storageIsWritten(t *testing.T) {
	t.Helper()
	storage := &Shelf{}
	stage, _ := d.shelved(t, storage, zap.InfoLevel)
	stage.Raise()
	for _, want := range []struct{ minutes, sets int64 }{{4, 0}, {6, 1}, {11, 2}} {
		Wait(stage.Began.Add(time.Duration(want.minutes) * time.Minute))
		assert.Equal(t, want.sets, storage.Writes.Load(), "after %d minutes", want.minutes)
	}
	stage.Shutdown()
	assert.EqualValues(t, 3, storage.Writes.Load())
}

// storageThatIsFull is reported, and the reports go on.
func (d *Deriver[C]) storageThatIsFull(t *testing.T) {
	t.Helper()
	storage := &Shelf{WriteError: errors.New("disk is full")}
	stage, logs := d.shelved(t, storage, zap.ErrorLevel)
	stage.Raise()
	stage.show("a")
	Wait(time.Now().Add(d.Common(stage.Config).Pane / 2))
	stage.show("a")
	Wait(time.Now().Add(5*time.Minute + 10*time.Second))
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "disk is full", logs.All()[0].ContextMap()["error"])
	assert.NotEmpty(t, stage.Told(t))
	require.ErrorContains(t, stage.Processor.Shutdown(t.Context()), "disk is full")
	assert.True(t, storage.Closed)
}

// storageWhileEvaluating: a shutdown that is given up on leaves an evaluation
// running, and what that works on is not saved under its hands.
func (d *Deriver[C]) storageWhileEvaluating(t *testing.T) {
	t.Helper()
	storage, release := &Shelf{}, make(chan struct{})
	stage, _ := d.shelved(t, storage, zap.InfoLevel)
	stage.Take = func(context.Context, pmetric.Metrics) error {
		<-release
		return nil
	}
	stage.Raise()
	stage.show("a")
	common := d.Common(stage.Config)
	Wait(stage.Began.Add(common.Pane / 2))
	stage.show("a")
	Wait(stage.Began.Add(common.Pane + common.Lateness))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, stage.Processor.Shutdown(ctx), context.Canceled)
	assert.Zero(t, storage.Writes.Load())
	close(release)
	stage.Shutdown()
	assert.EqualValues(t, 1, storage.Writes.Load())
	assert.True(t, storage.Closed)
}
