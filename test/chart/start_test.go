// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// TestConfigsStart: what validates also runs, as the kubelet would run it, until it is asked to end. The examples that read
// from an API server run in test/kube, which has one.
func TestConfigsStart(t *testing.T) {
	t.Parallel()
	for _, installed := range exampleInstallations(t) {
		for _, w := range workloads(t, installed.render(t)) {
			if asksAPIServer(t, w) || w.mountsSecrets() {
				continue
			}
			t.Run(installed.name+" "+w.name, func(t *testing.T) {
				config, health := w.onFreePorts(t)
				args := slices.Concat([]string{"-i"}, w.environment(t), []string{binarytest.Collector(t), "--config=" + writeFile(t, "config.yaml", config)})
				collector := binarytest.Start(t, "env", args...)
				// It says yes a moment before it heeds signals, by which it is asked to end.
				const inARow = 3
				ready := 0
				require.Eventually(t, func() bool {
					response, err := http.Get("http://" + health + w.container(t).ReadinessProbe.HTTPGet.Path)
					if err != nil || response.Body.Close() != nil || response.StatusCode != http.StatusOK {
						ready = 0
						return false
					}
					ready++
					return ready == inARow
				}, time.Minute, 100*time.Millisecond, "it does not become ready, or does not stay so")
				assert.True(t, collector.Running())
			})
		}
	}
}

func (w workload) mountsSecrets() bool {
	for _, volume := range w.pod.Spec.Volumes {
		if volume.Secret != nil || volume.Projected != nil {
			return true
		}
	}
	return false
}

// onFreePorts returns the configuration with ports that nobody else on this machine listens on, and where its health check is.
func (w workload) onFreePorts(t *testing.T) (config, health string) {
	t.Helper()
	config = w.local(t)
	for who, port := range listening(t, w.parsed(t)) {
		free := binarytest.FreePort(t)
		config = regexp.MustCompile(`\b`+strconv.Itoa(int(port))+`\b`).ReplaceAllString(config, strconv.Itoa(free))
		if who == "health_check" {
			health = binarytest.LoopbackAddress(free)
		}
	}
	require.NotEmpty(t, health)
	return config, health
}
