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

// collector is the child process.
type collector struct {
	command *exec.Cmd
	log     tail
	ended   chan struct{} // closed when the process is gone
	err     error         // of the process, once ended
}

func startCollector(binary, config string) (*collector, error) {
	c := &collector{command: exec.Command(binary, "--config", config), ended: make(chan struct{})}
	c.command.Stdout, c.command.Stderr = &c.log, &c.log
	// A terminal sends Ctrl-C to the whole process group: in one of its own, the
	// collector ends only when it is asked to.
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start the collector: %w (make build makes it)", err)
	}
	go func() {
		c.err = c.command.Wait()
		close(c.ended)
	}()
	return c, nil
}

// stop ends the collector and waits. A collector that ended before it was asked
// to is an error, told with the end of its log.
func (c *collector) stop() error {
	select {
	case <-c.ended:
		return fmt.Errorf("the collector ended by itself (%v); the end of its log:\n%s", c.command.ProcessState, c.log.String())
	default:
	}
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the collector: %w", err)
	}
	select {
	case <-c.ended:
		return c.err
	case <-time.After(stopWithin):
		err := c.command.Process.Kill()
		<-c.ended
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
