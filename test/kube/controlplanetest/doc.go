// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest runs a real Kubernetes control plane for a test: etcd, kube-apiserver with RBAC and an audit log,
// kube-controller-manager and kube-scheduler, on loopback ports and with certificates of their own. Nodes and what their
// kubelets do are played by kwok: stages.yaml is the script, annotations of a pod say how long its acts last.
// What happened when is told by AnswerKey, which reads the API server's audit log.
package controlplanetest
