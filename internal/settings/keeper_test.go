// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

var disk = component.MustNewID("file_storage")

// keeper keeps what it is told under the name of the shelf.
func keeper(learned *string) Keeper {
	return Keeper{Storage: &disk, Key: "learned", Save: func() []byte { return []byte(*learned) }}
}

func TestKeeperGoesOnWithWhatWasSaved(t *testing.T) {
	learned, now := "much", time.Unix(0, 0)
	shelf := &scenariotest.Shelf{}
	host := scenariotest.Host{disk: shelf}
	first := keeper(&learned)
	unread, err := first.Open(t.Context(), host, now, func([]byte) error { return errors.New("there is nothing") })
	require.NoError(t, err)
	require.NoError(t, unread)
	require.NoError(t, first.Close(t.Context()))
	require.NoError(t, first.Close(t.Context()), "it is closed")
	assert.EqualValues(t, 1, shelf.Writes.Load())
	assert.True(t, shelf.Closed)

	second := keeper(&learned)
	unread, err = second.Open(t.Context(), host, now, func(data []byte) error {
		assert.Equal(t, "much", string(data))
		return errors.New("of another version")
	})
	require.NoError(t, err)
	require.EqualError(t, unread, "of another version")
}

func TestKeeperSavesWhatTurnsAtOnce(t *testing.T) {
	learned, now := "", time.Unix(0, 0)
	shelf := &scenariotest.Shelf{}
	k := keeper(&learned)
	_, err := k.Open(t.Context(), scenariotest.Host{disk: shelf}, now, nil)
	require.NoError(t, err)
	for _, pane := range []struct {
		minute int
		turned bool
		kept   string
	}{
		{1, false, ""},
		{2, true, "2m0s"},
		{6, false, "2m0s"},
		{7, false, "7m0s"}, // five minutes after the last time
		{8, false, "7m0s"},
	} {
		at := time.Duration(pane.minute) * time.Minute
		learned = at.String()
		require.NoError(t, k.Keep(t.Context(), now.Add(at), pane.turned))
		assert.Equal(t, pane.kept, string(shelf.Value), "after %s", at)
	}
	shelf.WriteError = errors.New("disk is full")
	require.EqualError(t, k.Keep(t.Context(), now.Add(time.Hour), false), "disk is full")
	require.EqualError(t, k.Close(t.Context()), "disk is full")
	assert.True(t, shelf.Closed, "whatever becomes of what was learned")
}

func TestKeeperWithoutAStorage(t *testing.T) {
	k := Keeper{}
	unread, err := k.Open(t.Context(), scenariotest.Host{}, time.Time{}, nil)
	require.NoError(t, err)
	require.NoError(t, unread)
	require.NoError(t, k.Keep(t.Context(), time.Unix(0, 0), true))
	require.NoError(t, k.Close(t.Context()))
}
