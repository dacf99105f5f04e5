// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBusyPortsAreNamedInOneLine(t *testing.T) {
	var ports []int
	for range 2 {
		busy, err := net.Listen("tcp", Host+":0")
		require.NoError(t, err)
		t.Cleanup(func() { busy.Close() })
		ports = append(ports, busy.Addr().(*net.TCPAddr).Port)
	}
	err := CheckPorts(append(ports, 0))
	require.ErrorContains(t, err, "ports "+ranges(ports)+" of 127.0.0.1 are busy: is another demo or fleetsim running?")
	assert.NotContains(t, err.Error(), "\n")
	require.ErrorContains(t, CheckPorts(ports[:1]), fmt.Sprintf("port %d of 127.0.0.1 is busy", ports[0]))
	require.NoError(t, CheckPorts([]int{0}))
	require.ErrorContains(t, CheckPorts([]int{70000}), "open port 70000")
}

func TestNeighbouringPortsAreOneRange(t *testing.T) {
	assert.Equal(t, "9464, 18100-18102, 18888", ranges([]int{18888, 18100, 9464, 18102, 18101}))
	x := Example{FirstPort: 18100, Ports: []int{9464, 18888}}
	assert.Equal(t, []int{9464, 18888, 18100, 18101}, x.usedPorts(2))
}
