// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package binarytest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Collector returns the path of the collector under test: LLMFLEET_BINARY, else dist/llmfleet of this repository.
func Collector(t *testing.T) string {
	t.Helper()
	return find(t, "LLMFLEET_BINARY", "../../dist/llmfleet", "`make build`")
}

// Prometheus returns the path of a Prometheus server: PROMETHEUS_BINARY, else .tools/prometheus of this repository.
func Prometheus(t *testing.T) string {
	t.Helper()
	return find(t, "PROMETHEUS_BINARY", "../../.tools/prometheus",
		"`go build -C test -o ../.tools/prometheus github.com/prometheus/prometheus/cmd/prometheus`")
}

// Jaeger returns the path of a Jaeger server: JAEGER_BINARY, else .tools/jaeger of this repository.
func Jaeger(t *testing.T) string {
	t.Helper()
	return find(t, "JAEGER_BINARY", "../../.tools/jaeger", "`make .tools/jaeger`")
}

// find looks for a binary where the environment says, else at a path relative to the package under test.
func find(t *testing.T, variable, path, remedy string) string {
	t.Helper()
	if named := os.Getenv(variable); named != "" {
		path = named
	}
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil { //nolint:gosec // whoever runs the test names the binary
		t.Fatalf("there is no binary at %s: make one with %s, or set %s", path, remedy, variable)
	}
	return path
}

// Process is a program under way.
type Process struct {
	name   string
	cmd    *exec.Cmd
	output lockedBuffer
	done   chan struct{}
	err    error // of the program's end, once done is closed
}

// Start runs a program until the test ends. What it wrote is shown if the test fails.
func Start(t *testing.T, path string, args ...string) *Process {
	t.Helper()
	return StartCommand(t, filepath.Base(path), exec.Command(path, args...))
}

// StartCommand is Start for a program that is started in a way of its own. The name is what a report calls it.
func StartCommand(t *testing.T, name string, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{name: name, cmd: cmd, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Stop(t)
		if t.Failed() {
			t.Logf("%s wrote:\n%s", p.name, p.output.String())
		}
	})
	return p
}

// Running reports whether the program has not ended by itself.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Stop ends the program as an orchestrator would, and fails the test if it does not end well. Stopping twice is fine.
func (p *Process) Stop(t *testing.T) {
	t.Helper()
	if p.Running() {
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	}
	select {
	case <-p.done:
		if p.err != nil {
			t.Errorf("%s ended with: %v", p.name, p.err)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("%s did not end within 30s of a SIGTERM", p.name)
		require.NoError(t, p.cmd.Process.Kill())
		<-p.done
	}
}

// Kill ends the program at once, as a node that dies would.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	require.True(t, p.Running(), "%s ended by itself", p.name)
	require.NoError(t, p.cmd.Process.Kill())
	<-p.done
	p.err = nil // it could not end well
}

// Freeze stops the program for a while, as a node does that gives it no processor.
func (p *Process) Freeze(t *testing.T, while time.Duration) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(while)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
}

// Output is what the program wrote so far.
func (p *Process) Output() string { return p.output.String() }

// FreePort returns a port of the loopback interface that nobody listens on at the moment.
func FreePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// LoopbackAddress is host and port of a port of the loopback interface.
func LoopbackAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// WriteFile writes a file into a folder of the test's own and returns its path.
func WriteFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// lockedBuffer collects the output of a process while others read it.
type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.String()
}
