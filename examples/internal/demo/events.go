// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"go.opentelemetry.io/collector/pdata/plog"
)

// events is the file in which the collector tells onsets and clears, and how far
// it was read.
type events struct {
	path string
	read int64 // bytes
}

// forget removes what an earlier run has told.
func (e *events) forget() error {
	if err := os.Remove(e.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e.read = 0
	return nil
}

// next returns the sentences that were written since it was called last.
func (e *events) next() ([]string, error) {
	file, err := os.Open(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the collector is not up yet
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, e.read, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may still be in the making
	e.read += int64(len(text))
	var sentences []string
	for line := range bytes.Lines(text) {
		logs, err := new(plog.JSONUnmarshaler).UnmarshalLogs(line)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		for _, rl := range logs.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					sentences = append(sentences, record.Body().Str())
				}
			}
		}
	}
	return sentences, nil
}
