// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kubeschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Release is a release of Kubernetes, by the version and the checksum of its Go module.
type Release struct{ Version, Sum string }

// Releases are those that the chart is tested with: the three that are supported upstream, and the one before.
var Releases = []Release{
	{"v1.34.4", "h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk="},
	{"v1.35.4", "h1:o/8dBC/pHVpYoGV4OAIytAlNPZbdYVTXJHoYvXC4qzM="},
	{"v1.36.3", "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o="},
	{"v1.37.2", "h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE="},
}

// customResources are the files with definitions of custom resources that the chart and the examples of autoscaling use.
var customResources = []struct {
	module, version, sum string
	files                []string
}{
	{
		"github.com/prometheus-operator/prometheus-operator", "v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
		[]string{
			"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		},
	},
	{
		"github.com/kedacore/keda/v2", "v2.21.0", "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
		[]string{
			"config/crd/bases/keda.sh_scaledobjects.yaml",
			"config/crd/bases/keda.sh_triggerauthentications.yaml",
		},
	},
}

// moduleFolder fetches a Go module, without what it requires, and returns its folder in the module cache.
func moduleFolder(module, version, sum string) (string, error) {
	outside, err := os.MkdirTemp("", "kubeschema")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(outside)
	var complaint bytes.Buffer
	download := exec.Command("go", "mod", "download", "-json", module+"@"+version)
	// Outside of every module, so that no go.sum grows.
	download.Dir, download.Stderr = outside, &complaint
	answer, failed := download.Output()
	var found struct{ Dir, Sum, Error string }
	if err := errors.Join(failed, json.Unmarshal(answer, &found)); err != nil {
		return "", fmt.Errorf("fetch %s@%s: %w: %s%s", module, version, err, found.Error, complaint.Bytes())
	}
	if found.Sum != sum {
		return "", fmt.Errorf("%s@%s has the checksum %s, want %s", module, version, found.Sum, sum)
	}
	return found.Dir, nil
}
