// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmfleet/llmfleet/test/binarytest"
	"github.com/llmfleet/llmfleet/test/imagetest"
	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// accountFolder is where a pod has what its service account needs.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// kubelet runs pods of the chart in root file systems of the image, as those of a node would. What answers in them
// answers at the pods' addresses, which have to be of the loopback interface.
type kubelet struct {
	cp     *controlplanetest.ControlPlane
	rootfs string
	env    []string // of each pod, besides its own
}

func newKubelet(t *testing.T, cp *controlplanetest.ControlPlane, env ...string) *kubelet {
	t.Helper()
	return &kubelet{cp: cp, rootfs: imagetest.RootFS(t), env: env}
}

// start runs the container of a pod until the test ends.
func (k *kubelet) start(t *testing.T, pod *corev1.Pod) *binarytest.Process {
	t.Helper()
	require.Len(t, pod.Spec.Containers, 1)
	container := pod.Spec.Containers[0]
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name == mount.Name {
				k.mount(t, pod.Namespace, volume, mount)
			}
		}
	}
	server, err := url.Parse(k.cp.Config.Host)
	require.NoError(t, err)
	env := append([]string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}, k.env...)
	for _, variable := range container.Env {
		env = append(env, variable.Name+"="+valueOf(t, pod, variable))
	}
	return imagetest.Start(t, k.rootfs, env, container.Args...)
}

// mount puts a volume into the file system. A claimed one is the image's own folder of state.
func (k *kubelet) mount(t *testing.T, namespace string, volume corev1.Volume, at corev1.VolumeMount) {
	t.Helper()
	switch source := volume.VolumeSource; {
	case source.ConfigMap != nil:
		object, err := k.cp.Client.CoreV1().ConfigMaps(namespace).Get(t.Context(), source.ConfigMap.Name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Contains(t, object.Data, at.SubPath)
		imagetest.Mount(t, k.rootfs, path.Dir(at.MountPath), map[string]string{path.Base(at.MountPath): object.Data[at.SubPath]})
	case source.Projected != nil && at.MountPath == accountFolder:
		imagetest.Mount(t, k.rootfs, at.MountPath, k.serviceAccount(t, namespace, source.Projected))
	case source.PersistentVolumeClaim != nil:
		require.Equal(t, imagetest.Read(t).State, at.MountPath)
	default:
		t.Fatalf("a kind of volume that is not known here: %+v", volume)
	}
}

// serviceAccount is what the API server has a pod find of its account.
func (k *kubelet) serviceAccount(t *testing.T, namespace string, from *corev1.ProjectedVolumeSource) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, source := range from.Sources {
		switch {
		case source.ServiceAccountToken != nil:
			files[source.ServiceAccountToken.Path] = k.cp.Token(t, namespace, release)
		case source.ConfigMap != nil:
			object, err := k.cp.Client.CoreV1().ConfigMaps(namespace).Get(t.Context(), source.ConfigMap.Name, metav1.GetOptions{})
			require.NoError(t, err)
			for _, item := range source.ConfigMap.Items {
				files[item.Path] = object.Data[item.Key]
			}
		case source.DownwardAPI != nil:
			files["namespace"] = namespace
		}
	}
	return files
}

// valueOf is what a pod's environment has for a variable.
func valueOf(t *testing.T, pod *corev1.Pod, variable corev1.EnvVar) string {
	t.Helper()
	if variable.ValueFrom == nil {
		return variable.Value
	}
	require.NotNil(t, variable.ValueFrom.FieldRef, variable.Name)
	switch field := variable.ValueFrom.FieldRef.FieldPath; field {
	case "status.podIP":
		return pod.Status.PodIP
	case "metadata.namespace":
		return pod.Namespace
	case "metadata.name":
		return pod.Name
	default:
		label, found := strings.CutPrefix(field, "metadata.labels['")
		require.True(t, found, field)
		return pod.Labels[strings.TrimSuffix(label, "']")]
	}
}
