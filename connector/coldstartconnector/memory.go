// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"bytes"
	"encoding/gob"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/window"
)

// memoryVersion changes with what kept means.
const memoryVersion = 1

// kept is what outlives a restart: the starts that are open and those that were
// told, and the traces that wait to be taken, as OTLP.
type kept struct {
	Version int
	Book    []byte
	Waiting []byte
}

// save returns what is to be kept.
func (c *core) save() []byte {
	k := kept{Version: memoryVersion}
	c.mu.Lock()
	k.Book = c.book.Save()
	c.mu.Unlock()
	waiting, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(c.outbox.all())
	if err == nil {
		k.Waiting = waiting
	}
	var data bytes.Buffer
	_ = gob.NewEncoder(&data).Encode(k) // to memory
	return data.Bytes()
}

// load goes on with what was kept.
func (c *core) load(data []byte, now window.Instant) error {
	var k kept
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&k); err != nil {
		return err
	}
	if k.Version != memoryVersion {
		return fmt.Errorf("it is of version %d, not %d", k.Version, memoryVersion)
	}
	waiting, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(k.Waiting)
	if err != nil {
		return err
	}
	if err := c.book.Load(k.Book, now); err != nil {
		return err
	}
	c.outbox.put(waiting)
	return nil
}
