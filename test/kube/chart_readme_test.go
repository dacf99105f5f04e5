// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// block is one of a Markdown page: its language and its lines.
var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)\n```$")

// valuesFile is the first line of a block that is to be saved.
var valuesFile = regexp.MustCompile(`^# ([\w-]+\.yaml)\n`)

// inNotes is a command that helm says after an installation; those that read logs need a kubelet.
var inNotes = regexp.MustCompile(`(?m)^ +kubectl .+$`)

// Whoever does what deploy/README.md says, from the top to the bottom, sees a fleet, and in the end has nothing left.
// No container engine builds the image here: the pod's container is the file system that the Dockerfile describes.
func testREADME(t *testing.T, cp *controlplanetest.ControlPlane) {
	t.Helper()
	n, k := newNewcomer(t, cp), newKubelet(t, cp)
	t.Cleanup(func() { n.does(t, "helm uninstall llmfleet --namespace llmfleet --ignore-not-found --wait") })
	before := everything(t, cp)
	page, err := os.ReadFile("../../deploy/README.md")
	require.NoError(t, err)

	looked, notes := false, []string(nil)
	for _, b := range block.FindAllStringSubmatch(string(page), -1) {
		language, text := b[1], b[2]
		switch file := valuesFile.FindStringSubmatch(text); {
		case language == "yaml" && file != nil:
			if file[1] == "my-values.yaml" { // the one that each command is given
				text += quickValues(machineAddress(t))
			}
			require.NoError(t, os.WriteFile(filepath.Join(n.clone, file[1]), []byte(text), 0o600)) //nolint:gosec // a name without a folder
		case language == "sh" && strings.HasPrefix(text, "docker build "):
		case language == "sh":
			if strings.Contains(text, "/proxy/metrics") && !looked {
				looked = true
				k.awaitFleet(t)
				require.NotEmpty(t, notes)
				for _, command := range notes {
					n.does(t, command)
				}
			}
			said := n.does(t, text)
			if strings.HasPrefix(text, "helm install ") {
				notes = inNotes.FindAllString(said, -1)
			}
		}
	}
	require.True(t, looked)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.ElementsMatch(c, []string{
			"namespaces /llmfleet", "secrets llmfleet/tenant-key", "serviceaccounts llmfleet/default",
			"configmaps llmfleet/kube-root-ca.crt",
		}, added(before, everything(t, cp)))
	}, patience, tick)
}

// awaitFleet runs the gateway's pod until its page tells of replicas.
func (k *kubelet) awaitFleet(t *testing.T) {
	t.Helper()
	pod := gatewayPod(t, k.cp)
	k.start(t, pod)
	require.Eventually(t, func() bool {
		return sum(scrape(pod.Status.PodIP+":9464"), "llmfleet_fleet_replicas", `state="judged"`) > 0
	}, patience, tick)
}

// machineAddress is one of this machine that the API server connects to, as it does not to the loopback interface.
func machineAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	t.Fatal("this machine has no address besides that of the loopback interface")
	return ""
}
