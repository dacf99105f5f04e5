// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// shownLog is how many bytes of a server's log a failed test shows.
const shownLog = 8 << 10

// process is a server under way.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the server has ended
}

// startProcess runs a program, its log in dir, until the test ends. It is killed then, for nothing of it is needed any
// more, and where the system can do so it is also killed when the test binary dies without a cleanup.
func startProcess(t *testing.T, dir, path string, args []string) *process {
	t.Helper()
	cmd := exec.Command(path, args...)
	p := &process{name: filepath.Base(path), cmd: cmd, done: make(chan struct{})}
	log, err := os.Create(filepath.Join(dir, p.name+".log"))
	require.NoError(t, err)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), "HOME="+dir)
	dieWithParent(p.cmd)

	started := make(chan error)
	go func() {
		defer close(p.done)
		// The parent whose death is watched is the thread that starts the process, so this one must outlive it.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is killed, which Wait reports as an error
		}
	}()
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails only where the server has ended already
		<-p.done
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", p.name, tail(t, log.Name()))
		}
		require.NoError(t, log.Close())
	})
	return p
}

// ended reports whether the server runs no more.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// tail returns the last lines of a log.
func tail(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	if len(content) <= shownLog {
		return content
	}
	content = content[len(content)-shownLog:]
	return content[bytes.IndexByte(content, '\n')+1:]
}
