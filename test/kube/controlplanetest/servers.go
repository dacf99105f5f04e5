// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// loopbackHost is where every server listens.
const loopbackHost = "127.0.0.1"

func (cp *ControlPlane) etcd(clientPort, peerPort int) []string {
	client, peer := "http://"+loopback(clientPort), "http://"+loopback(peerPort)
	return []string{
		"--data-dir=" + filepath.Join(cp.dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--unsafe-no-fsync", // the data dies with the test
	}
}

func (cp *ControlPlane) apiServer(t *testing.T, etcdPort, port int) []string {
	t.Helper()
	serving := cp.authority.issueServing(t, "kube-apiserver")
	return []string{
		"--etcd-servers=http://" + loopback(etcdPort),
		"--bind-address=" + loopbackHost,
		"--advertise-address=" + loopbackHost,
		"--secure-port=" + strconv.Itoa(port),
		"--endpoint-reconciler-type=none", // a loopback address may not be an endpoint of service kubernetes
		"--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + serving.cert,
		"--tls-private-key-file=" + serving.key,
		"--client-ca-file=" + cp.authority.file.cert,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + cp.authority.file.key,
		"--service-account-signing-key-file=" + cp.authority.file.key,
		"--authorization-mode=Node,RBAC",
		"--audit-policy-file=" + cp.write(t, "audit-policy.yaml", auditPolicy),
		"--audit-log-path=" + cp.auditLog(),
		"--audit-log-maxsize=10000", // MB: one file, never rotated
	}
}

func (cp *ControlPlane) controllerManager(t *testing.T) []string {
	t.Helper()
	return []string{
		"--kubeconfig=" + cp.clientKubeconfig(t, "system:kube-controller-manager"),
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + cp.authority.file.key,
		"--root-ca-file=" + cp.authority.file.cert,
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func (cp *ControlPlane) scheduler(t *testing.T) []string {
	t.Helper()
	return []string{
		"--kubeconfig=" + cp.clientKubeconfig(t, "system:kube-scheduler"),
		"--leader-elect=false",
		"--secure-port=0",
	}
}

func (cp *ControlPlane) kwok(t *testing.T) []string {
	t.Helper()
	return []string{
		"--kubeconfig=" + cp.clientKubeconfig(t, "kwok", "system:masters"),
		"--config=" + cp.write(t, "stages.yaml", stages),
		"--manage-all-nodes",
		"--node-lease-duration-seconds=40",
	}
}

// freePorts returns different ports of the loopback interface that nobody listens on at the moment.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports, listeners := make([]int, n), make([]net.Listener, n)
	for i := range ports {
		var err error
		listeners[i], err = net.Listen("tcp", loopback(0))
		require.NoError(t, err)
		ports[i] = listeners[i].Addr().(*net.TCPAddr).Port
	}
	for _, listener := range listeners {
		require.NoError(t, listener.Close())
	}
	return ports
}

// loopback is host and port of a port of the loopback interface.
func loopback(port int) string { return net.JoinHostPort(loopbackHost, strconv.Itoa(port)) }
