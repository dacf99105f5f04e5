# llmfleet's commands: the same for a person, for CI and for a newcomer. `make help` lists them.
# A fresh machine needs Go, git, make, bash and a C compiler (for the race detector); what else a target needs it builds into .tools/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# One source gives one binary, inside or outside of a checkout; a go.work of a parent folder has no say.
export GOFLAGS += -buildvcs=false
export GOWORK := off

BINARY := dist/llmfleet
OCB := .tools/builder --config=builder-config.yaml --skip-strict-versioning=false

# Every hand-written module; dist/ is generated, so it is compiled but neither linted nor tested by itself.
MODULES := . test test/kube

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(CURDIR)/.tools/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint

# The servers that the end-to-end tests put beside the collector; test/go.mod and test/jaeger/go.mod have their versions.
PROMETHEUS := .tools/prometheus
JAEGER := .tools/jaeger

# What checks rules and alerts (test/go.mod), and what renders the chart and checks it, kubeconform beside helm
# (test/chart/tools/go.mod).
PROMTOOL := .tools/promtool
HELM := .tools/helm

# The servers of a Kubernetes control plane, etcd standing for all; test/kube/servers/go.mod has their versions.
KUBE := .tools/kube/etcd

##@ For everyone

.PHONY: run
run: build ## Run the demo: a simulated fleet with one slow replica, and the collector that finds it
	@go build -o .tools/quickstart ./examples/quickstart
	@exec .tools/quickstart

.PHONY: run-tenants
run-tenants: build ## Run the demo of tenants: one of many slows everyone, and is named
	@go build -o .tools/tenants ./examples/tenants
	@exec .tools/tenants

.PHONY: run-canary
run-canary: build ## Run the demo of a rollout: a new revision is slower, and fails
	@go build -o .tools/canary ./examples/canary
	@exec .tools/canary

.PHONY: run-coldstart
run-coldstart: build ## Run the demo of a cold start: what a pod's first minutes went into, as a waterfall
	@go build -o .tools/coldstart ./examples/coldstart
	@exec .tools/coldstart

.PHONY: test
test: lint drift licenses build unit race oracle names rules chart image e2e ## Run every check that needs nothing but this tree

.PHONY: test-captures
test-captures: ## Run the real pages of CAPTURES=DIR through intake, the oracle and the built binary
	@[[ -d "$(CAPTURES)" ]] || \
		{ echo 'make test-captures: no folder "$(CAPTURES)"; name the one with the captured pages: make test-captures CAPTURES=DIR' >&2; exit 2; }
	@$(MAKE) --no-print-directory build
	cd test && CAPTURES="$(abspath $(CAPTURES))" go test -count=1 -v -tags=captures ./captures/...
	CAPTURES="$(abspath $(CAPTURES))" go test -count=1 -v -tags=captures ./receiver/k8sfleetreceiver/internal/facts

.PHONY: test-kube
test-kube: build $(KUBE) $(HELM) ## Run the Kubernetes part on a real control plane
	cd test/kube && go test -count=1 ./...

SCORECARD = go run ./internal/score/scorecard $(if $(SEED),-seed $(SEED)) $(if $(DATA),-data "$(abspath $(DATA))")

.PHONY: score
score: ## Score the judgements on a simulated fleet-day, some minutes; SEED= for other draws, DATA=DIR for real traces
	@$(SCORECARD)

.PHONY: score-full
score-full: ## The same on a fleet-week
	@$(SCORECARD) -full

.PHONY: bench
bench: build ## Measure speed and size; each line is `name value unit target pass|fail`
	@cd test && go run ./bench -collector ../$(BINARY)

FUZZ ?= 20s
.PHONY: fuzz
fuzz: ## Fuzz each target of the tree for 20 s, or as long as FUZZ= says
	@grep -rHo --include='*_test.go' --exclude-dir=.tools '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*:func | |' | sort | \
	while read -r package target; do \
		echo "fuzz $$package $$target"; \
		go -C "$$package" test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZ) -fuzzminimizetime=0 . </dev/null; \
	done

.PHONY: vuln
vuln: ## Look for known vulnerabilities in the collector; asks the Go vulnerability database
	@go tool -modfile=tools.mod govulncheck -C dist -tags="$$(sed -n 's/^  build_tags: //p' builder-config.yaml)" .

.PHONY: build
build: .tools/builder ## Build the collector, dist/llmfleet
	@echo 'building $(BINARY); from scratch this takes some minutes'
	@mkdir -p .tools
	@$(OCB) --skip-generate --skip-get-modules >.tools/build.log 2>&1 || { cat .tools/build.log >&2; exit 1; }

.PHONY: generate
generate: .tools/builder ## Write all generated code and docs anew: mdatagen, docs, dashboards, dist/
	go generate ./...
	$(OCB) --skip-compilation
	cd test && go run ./licenses

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the code
	@for module in $(MODULES); do (cd $$module && $(GOLANGCI_LINT) fmt); done

.PHONY: help
help: ## Show this table
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ The parts of make test

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Check formatting and code style
	@for module in $(MODULES); do echo "lint $$module"; (cd $$module && $(GOLANGCI_LINT) run); done

# Generation runs in a copy, so that work of yours that is not yet committed is neither touched nor in the way.
.PHONY: drift
drift: ## Check that go.mod is tidy and generated files are what `make generate` writes
	@for module in $(MODULES); do (cd $$module && go mod tidy -diff); done
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; mkdir "$$work/here"; \
	git ls-files --cached --others --exclude-standard --deduplicate -z | \
		while IFS= read -r -d '' file; do [[ ! -e $$file ]] || printf '%s\0' "$$file"; done | \
		tar --null --files-from=- -cf - | tar -xf - -C "$$work/here"; \
	cp -R "$$work/here" "$$work/generated"; \
	$(MAKE) --no-print-directory -C "$$work/generated" generate; \
	cd "$$work" && diff -ruN --exclude=.tools here generated || \
		{ echo 'make drift: these files are not what their sources generate: run `make generate` and commit' >&2; exit 1; }

.PHONY: unit
unit: ## Run unit and scenario tests
	go test ./...
	cd test && go test ./bench/... ./distribution/... ./drawntest/... ./spellings/...

.PHONY: race
race: ## Run unit and scenario tests under the race detector
	CGO_ENABLED=1 go test -race ./...

.PHONY: oracle
oracle: ## Compare with Prometheus, query by query
	cd test && go test ./oracle/...

# The binary is no input that go test knows of: -count=1 keeps an old result from standing for a new binary.
.PHONY: e2e
e2e: build $(PROMETHEUS) $(JAEGER) ## Run the built collector end to end
	cd test && go test -count=1 -p=1 -timeout=30m ./e2e/... ./deploy/...

.PHONY: licenses
licenses: build ## Check the license of every module in the collector
	cd test && go test -count=1 ./licenses/...

.PHONY: names
names: ## Print which metric names changed since the last release, and fail where one was promised to stay
	@go run ./internal/emit/metricsdoc -since-release

.PHONY: rules
rules: $(PROMTOOL) ## Check and unit-test recording rules and alerts
	$(PROMTOOL) check rules deploy/prometheus/*.yaml
	$(PROMTOOL) test rules deploy/prometheus/tests/*.yaml

.PHONY: chart
chart: build $(HELM) ## Render the chart, and check it against Kubernetes' schemas and the built collector
	cd test && go test -count=1 ./chart/...

.PHONY: image
image: build ## Build the root file system of the image, and run the collector in it
	cd test && go test -count=1 ./image/...

$(GOLANGCI_LINT):
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

# A tool runs on this machine, whatever GOOS and GOARCH say the collector is built for.
.tools/builder: tools.mod tools.sum
	GOOS= GOARCH= go build -modfile=tools.mod -o $@ go.opentelemetry.io/collector/cmd/builder
	@touch $@

$(PROMETHEUS): test/go.mod
	go build -C test -o ../$@ github.com/prometheus/prometheus/cmd/prometheus
	@touch $@

$(PROMTOOL): test/go.mod
	go build -C test -o ../$@ github.com/prometheus/prometheus/cmd/promtool
	@touch $@

$(HELM): test/chart/tools/go.mod test/chart/tools/go.sum
	go build -C test/chart/tools -o ../../../$(@D)/ tool
	@touch $@

# A module of its own, because it and Prometheus require different versions of what both use. It has no code, so it is not
# among MODULES: this build checks its go.mod, and go mod tidy would fetch what only the tests of its dependencies need.
$(JAEGER): test/jaeger/go.mod test/jaeger/go.sum
	@echo 'building $@; from scratch this takes some minutes'
	go build -C test/jaeger -o ../../$@ github.com/jaegertracing/jaeger/cmd/jaeger
	@touch $@

# Code-less as Jaeger's module is. The compiler writes no debug information and does not inline: each saves time that is
# spent once a machine, and these servers have little to do. The linker says which release they are.
$(KUBE): test/kube/servers/go.mod test/kube/servers/go.sum
	@echo 'building the servers of a Kubernetes control plane; from scratch this takes some minutes'
	@release=$$(cd test/kube/servers && go list -m -f '{{.Version}}' k8s.io/kubernetes); \
	go build -C test/kube/servers -gcflags='all=-dwarf=false -l' \
		-ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$$release" -o ../../../$(@D)/ tool
	@mv $(@D)/server $@
	@touch $@
