// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// startTimeout is how long a busy machine may take to bring one server up.
const startTimeout = 2 * time.Minute

// stages is what kwok plays; auditPolicy is what the API server writes down.
var (
	//go:embed stages.yaml
	stages []byte
	//go:embed audit.yaml
	auditPolicy []byte
)

// ControlPlane is a Kubernetes control plane under way. Its clients act as cluster administrator and are not throttled.
type ControlPlane struct {
	Config  *rest.Config
	Client  kubernetes.Interface
	Dynamic dynamic.Interface

	dir       string // certificates, configuration and logs
	address   string // https://host:port of the API server
	authority *authority
	servers   []*process
}

// Start runs a control plane until the test ends; if the test fails, the last lines of each server's log are shown. It
// returns once namespace default takes pods. The binaries are read from KUBE_SERVERS, else from .tools/kube of this repository.
func Start(t *testing.T) *ControlPlane {
	t.Helper()
	dir := t.TempDir()
	ports := freePorts(t, 3)
	cp := &ControlPlane{dir: dir, address: "https://" + loopback(ports[2]), authority: newAuthority(t, dir)}

	cp.run(t, "etcd", cp.etcd(ports[0], ports[1]))
	cp.run(t, "kube-apiserver", cp.apiServer(t, ports[0], ports[2]))
	cp.connect(t)
	cp.awaitAPIServer(t)
	cp.run(t, "kube-controller-manager", cp.controllerManager(t))
	cp.run(t, "kube-scheduler", cp.scheduler(t))
	cp.run(t, "kwok", cp.kwok(t))
	cp.await(t, "the service account that pods run as", func() bool {
		_, err := cp.Client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return cp
}

// RestartAPIServer kills the API server and starts it again, at the same address and with what it has stored. All watches
// break. It returns once the server answers.
func (cp *ControlPlane) RestartAPIServer(t *testing.T) {
	t.Helper()
	const name = "kube-apiserver"
	at := slices.IndexFunc(cp.servers, func(p *process) bool { return p.name == name })
	old := cp.servers[at]
	require.NoError(t, old.cmd.Process.Kill())
	<-old.done
	cp.servers[at] = startProcess(t, cp.dir, old.cmd.Path, old.cmd.Args[1:])
	cp.awaitAPIServer(t)
}

// awaitAPIServer waits until the API server takes requests.
func (cp *ControlPlane) awaitAPIServer(t *testing.T) {
	t.Helper()
	cp.await(t, "the API server to be ready", func() bool {
		return cp.Client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error() == nil
	})
}

// connect makes the administrator's clients.
func (cp *ControlPlane) connect(t *testing.T) {
	t.Helper()
	var err error
	cp.Config, err = clientcmd.BuildConfigFromFlags("", cp.clientKubeconfig(t, admin, "system:masters"))
	require.NoError(t, err)
	cp.Config.QPS = -1
	cp.Client, err = kubernetes.NewForConfig(cp.Config)
	require.NoError(t, err)
	cp.Dynamic, err = dynamic.NewForConfig(cp.Config)
	require.NoError(t, err)
}

// await waits for a condition for as long as every server runs.
func (cp *ControlPlane) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, server := range cp.servers {
			if server.ended() {
				t.Errorf("%s ended by itself", server.name)
				return true
			}
		}
		return condition()
	}, startTimeout, 100*time.Millisecond, "waiting for %s", what)
	if t.Failed() {
		t.FailNow()
	}
}

// run starts a server of the control plane.
func (cp *ControlPlane) run(t *testing.T, name string, args []string) {
	t.Helper()
	path := filepath.Join(serversFolder(t), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there is no binary at %s: make it with `make .tools/kube/etcd`, or set KUBE_SERVERS to the folder that has it", path)
	}
	cp.servers = append(cp.servers, startProcess(t, cp.dir, path, args))
}

// serversFolder is where the binaries are: KUBE_SERVERS, else .tools/kube of this repository.
func serversFolder(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("KUBE_SERVERS"); named != "" {
		return named
	}
	return filepath.Join(repository(t), ".tools", "kube")
}

// repository is the root of this repository, which tests of several folders ask for.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	for filepath.Dir(root) != root {
		if _, err := os.Stat(filepath.Join(root, "builder-config.yaml")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	return root
}

// write writes a file into the control plane's folder and returns its path.
func (cp *ControlPlane) write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(cp.dir, name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}
