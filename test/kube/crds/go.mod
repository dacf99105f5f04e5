module github.com/llmfleet/llmfleet/test/kube/crds

go 1.26.0

// Read for the definitions of custom resources that they hold. No package of theirs is built, so go mod tidy would drop them.
require (
	github.com/prometheus-operator/prometheus-operator v0.92.1
	sigs.k8s.io/gateway-api-inference-extension v1.3.0
	sigs.k8s.io/karpenter v1.14.0
	sigs.k8s.io/lws v0.9.0
)
