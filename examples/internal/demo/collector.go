// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// stopWithin is how long the collector may take to end before it is killed.
	stopWithin = 15 * time.Second
	// tailBytes is how much of its log is kept to explain an early end.
	tailBytes = 8 << 10
)

// Collector is the child process.
type Collector struct {
	// Ended is closed when the process is gone.
	Ended <-chan struct{}

	command *exec.Cmd
	log     tail
	err     error // of the process, once ended
}

// StartCollector starts the binary with a configuration file.
func StartCollector(binary, config string) (*Collector, error) {
	ended := make(chan struct{})
	c := &Collector{Ended: ended, command: exec.Command(binary, "--config", config)}
	c.command.Stdout, c.command.Stderr = &c.log, &c.log
	// A terminal sends Ctrl-C to the whole process group: in one of its own, the
	// collector ends only when it is asked to.
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start the collector: %w (make build makes it)", err)
	}
	go func() {
		c.err = c.command.Wait()
		close(ended)
	}()
	return c, nil
}

// Stop ends the collector and waits. A collector that ended before it was asked
// to is an error, told with the end of its log.
func (c *Collector) Stop() error {
	select {
	case <-c.Ended:
		return fmt.Errorf("the collector ended by itself (%v); the end of its log:\n%s", c.command.ProcessState, c.log.String())
	default:
	}
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the collector: %w", err)
	}
	select {
	case <-c.Ended:
		return c.err
	case <-time.After(stopWithin):
		err := c.command.Process.Kill()
		<-c.Ended
		return errors.Join(fmt.Errorf("the collector did not end within %v and was killed", stopWithin), err)
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
