// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// collector is a running collector.
type collector struct {
	process *exec.Cmd
	log     bytes.Buffer
	metrics string // URL of its own metrics
}

// startCollector runs the binary with a configuration, which is given the
// port for the collector's own metrics, and waits until it answers there.
func startCollector(ctx context.Context, binary, folder string, config func(metricsPort int) string) (*collector, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, strconv.Itoa(port)+".yaml")
	if err := os.WriteFile(file, []byte(config(port)), 0o600); err != nil {
		return nil, err
	}
	c := &collector{
		process: exec.CommandContext(ctx, binary, "--config", file),
		metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", port),
	}
	c.process.Stderr = &c.log
	c.process.Cancel = func() error { return c.process.Process.Signal(syscall.SIGTERM) }
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	if err := c.waitReady(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *collector) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if _, err := c.ownMetrics(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the collector does not answer at %s:\n%s", c.metrics, &c.log)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ownMetrics is the page on which the collector tells of itself.
func (c *collector) ownMetrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	return string(page), err
}

// total sums the samples of one metric of the collector's own over its labels.
func (c *collector) total(ctx context.Context, metric string) (float64, error) {
	page, err := c.ownMetrics(ctx)
	if err != nil {
		return 0, err
	}
	var total float64
	found := false
	for line := range strings.Lines(page) {
		if end := strings.IndexAny(line, "{ "); end < 0 || line[:end] != metric {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", metric, err)
		}
		total += value
		found = true
	}
	if !found {
		return 0, fmt.Errorf("the collector tells nothing of %s", metric)
	}
	return total, nil
}

// cpu is the processor time in seconds that the collector has used so far.
func (c *collector) cpu(ctx context.Context) (float64, error) {
	return c.total(ctx, "otelcol_process_cpu_seconds")
}

// stop ends the collector and waits for it.
func (c *collector) stop() error {
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := c.process.Wait(); err != nil {
		return fmt.Errorf("collector: %w:\n%s", err, &c.log)
	}
	return nil
}

func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
