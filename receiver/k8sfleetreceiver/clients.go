// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Ways to prove who one is, spelled as other receivers do.
const (
	authServiceAccount = "serviceAccount"
	authKubeConfig     = "kubeConfig"
	authNone           = "none"
)

// clients are the ways to talk to an API server.
type clients struct {
	objects dynamic.Interface
	offered discovery.ServerResourcesInterface
	leases  coordinationv1.LeasesGetter
}

// dial makes the clients of a configuration.
type dial func(*Config) (clients, error)

// Requests that may be made at once, and in a second: a watch is one request, and
// there are a few for each resource when it begins.
const (
	requestRate  = 20
	requestBurst = 100
)

// connect makes clients; it does not talk to the server yet.
func connect(config *Config) (clients, error) {
	r, err := restConfig(config)
	if err != nil {
		return clients{}, err
	}
	r.QPS, r.Burst = requestRate, requestBurst
	objects, err := dynamic.NewForConfig(r)
	if err != nil {
		return clients{}, err
	}
	// What is asked here is short; watches are not.
	short := rest.CopyConfig(r)
	short.Timeout = 30 * time.Second
	k, err := kubernetes.NewForConfig(short)
	if err != nil {
		return clients{}, err
	}
	return clients{objects: objects, offered: k.Discovery(), leases: k.CoordinationV1()}, nil
}

func restConfig(config *Config) (*rest.Config, error) {
	switch config.AuthType {
	case authKubeConfig:
		r, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: config.Context},
		).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("auth_type: no kubeconfig that can be used: set KUBECONFIG to its path, or use auth_type: %s in a pod: %w", authServiceAccount, err)
		}
		return r, nil
	case authNone:
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("auth_type: none needs the API server's address: set KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT")
		}
		return &rest.Config{Host: "https://" + net.JoinHostPort(host, port), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, nil
	}
	r, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("auth_type: no service account: run in a pod that has one, or use auth_type: %s: %w", authKubeConfig, err)
	}
	return r, nil
}
