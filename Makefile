# `make help` lists what there is. Every target installs what it needs, through
# apt and the Go toolchain.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO        ?= go
TOOL      := $(GO) tool -modfile=deploy/tools.mod
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X main.version=$(VERSION)
PREFIX    ?= /usr/local
PKGS      := ./...
FUZZTIME  ?= 20s
DEMO_FIRMWARE ?= uefi
DEMO_KEEP     ?= 1
ASSETS_ARCH   ?= amd64,arm64
export CGO_ENABLED ?= 0
export RACKSTRAP_CACHE ?= $(HOME)/.cache/rackstrap

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: deps-build
deps-build:
	@deploy/install-packages worker/bootimage/packages.txt

.PHONY: deps-lab
deps-lab: deps-build
	@deploy/install-packages deploy/lab/packages.txt

.PHONY: assets
assets: deps-build ## boot files from Debian packages into ipxe/embedded; ASSETS_ARCH=amd64 leaves arm64 out
	@$(GO) run ./worker/bootimage/cmd/mkassets -arch '$(ASSETS_ARCH)'

.PHONY: web
web: ## the web UI into web/dist, from web/ui and the packages of its lock file
	@web/ui/build

.PHONY: build
build: assets web ## the one binary, bin/rackstrap, with the boot files and the web UI inside
	@$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/rackstrap ./cmd/rackstrap
	@ls -l bin/rackstrap | awk '{printf "bin/rackstrap, %.0f MB\n", $$5/1e6}'

.PHONY: install
install: build ## bin/rackstrap and a systemd unit; does not start it
	install -D -m 0755 bin/rackstrap $(DESTDIR)$(PREFIX)/bin/rackstrap
	install -D -m 0644 deploy/systemd/rackstrap.service $(DESTDIR)/etc/systemd/system/rackstrap.service
	@test -e $(DESTDIR)/etc/rackstrap/rackstrap.yaml || bin/rackstrap init --config $(DESTDIR)/etc/rackstrap/rackstrap.yaml
	@if test -z '$(DESTDIR)' && test -d /run/systemd/system; then systemctl daemon-reload; fi
	@echo 'next: name your LAN interface in /etc/rackstrap/rackstrap.yaml, then: systemctl enable --now rackstrap'

.PHONY: demo
demo: deps-lab build ## install a real OS on an empty virtual machine; DEMO_FIRMWARE=bios|uefi|secureboot|http|arm64, DEMO_KEEP=0 tears down
	@$(GO) run ./deploy/lab/cmd/demo -firmware $(DEMO_FIRMWARE) -keep=$(if $(filter 0,$(DEMO_KEEP)),false,true) -rackstrap bin/rackstrap

.PHONY: demo-down
demo-down: ## remove everything that make demo left
	@$(GO) run ./deploy/lab/cmd/demo -down

.PHONY: test
test: deps-lab build capi-env lint ## everything a submission must pass
	@echo 'tests: unit, race, golden packets, namespaces, QEMU'
	@CGO_ENABLED=1 RACKSTRAP_TEST_NOSKIP=1 $(GO) test -race -shuffle=on -timeout 20m -p 2 $$($(GO) list $(PKGS) | grep -v /deploy/lab/e2e)
	@echo 'tests: full installs over UEFI and BIOS, with faults; a machine that nobody registered; some of the netboots of make lab'
	@RACKSTRAP_TEST_NOSKIP=1 RACKSTRAP_BIN=$(CURDIR)/bin/rackstrap $(GO) test -count=1 -timeout 20m ./deploy/lab/e2e
	@echo 'tests: the web UI in a real browser'
	@RACKSTRAP_TEST_NOSKIP=1 RACKSTRAP_BIN=$(CURDIR)/bin/rackstrap $(GO) test -count=1 -timeout 25m -parallel 2 -skip TestGuest ./deploy/lab/e2e/web

# What test-web runs of deploy/lab/e2e/web; WEB=TestRack/signin runs one file.
WEB ?= .

.PHONY: test-web
test-web: deps-lab build ## the web UI in a real Chromium: on simulated machines, and a virtual one that is installed; bin/web.txt has the times
	@rm -f bin/web.txt
	@RACKSTRAP_TEST_NOSKIP=1 RACKSTRAP_BIN=$(CURDIR)/bin/rackstrap RACKSTRAP_WEB_TABLE=$(CURDIR)/bin/web.txt \
		$(GO) test -count=1 -timeout 30m -run '$(WEB)' ./deploy/lab/e2e/web || failed=$$?; cat bin/web.txt 2>/dev/null || true; exit $${failed:-0}

# What `make lab` runs of deploy/lab/e2e; LAB=TestNetboot/uefi/proxy runs one cell.
LAB ?= ^Test(Netboot|EveryFirmwareInstalls|UnknownMachineIsInstalled|SlowLinks|UEFIInstall.*|BIOSInstall.*)$$

.PHONY: lab
lab: deps-lab build ## every firmware on every network, to the worker and to an installed system; bin/lab.txt has the times
	@rm -f bin/lab.txt bin/lab.json
	@test -n '$(filter command line,$(origin LAB))' || RACKSTRAP_TEST_NOSKIP=1 $(GO) test -count=1 -timeout 20m -tags lab_image -run Image ./deploy/lab
	@RACKSTRAP_TEST_NOSKIP=1 RACKSTRAP_BIN=$(CURDIR)/bin/rackstrap RACKSTRAP_LAB_TABLE=$(CURDIR)/bin/lab \
		$(GO) test -count=1 -timeout 60m -parallel 2 -run '$(LAB)' ./deploy/lab/e2e || failed=$$?; cat bin/lab.txt 2>/dev/null || true; exit $${failed:-0}

.PHONY: bench
bench: deps-lab build ## side by side with the peers, as ratios
	@deploy/bench/run

.PHONY: lint
lint: ## gofumpt, go vet, staticcheck with every check; the OpenAPI document; the types of the web UI
	@out=$$($(TOOL) gofumpt -l $$(git ls-files '*.go' | grep -v '\.pb\.go$$')); test -z "$$out" || { echo "not gofumpt'ed:"; echo "$$out"; exit 1; }
	@$(GO) vet $(PKGS)
	@$(TOOL) staticcheck -checks all,-ST1000 $(PKGS)
	@cd api/capi && $(GO) vet $(PKGS) && $(GO) tool -modfile=$(CURDIR)/deploy/tools.mod staticcheck -checks all,-ST1000 $(PKGS)
	@deploy/openapi/lint
	@web/ui/build check

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each
	@deploy/fuzz $(FUZZTIME)

.PHONY: screenshots
screenshots: deps-lab build ## the main pages of the web UI in both themes, into deploy/docs/images
	@$(GO) run ./deploy/lab/cmd/ui -rackstrap bin/rackstrap node web/ui/test/screenshots.mjs deploy/docs/images

.PHONY: proto
proto: ## generate api/workerpb from worker.proto
	@mkdir -p bin/tools
	@$(GO) build -modfile=deploy/tools.mod -o bin/tools/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
	@PATH=$(CURDIR)/bin/tools:$$PATH protoc --go_out=. --go_opt=module=github.com/rackstrap/rackstrap --go-grpc_out=. --go-grpc_opt=module=github.com/rackstrap/rackstrap api/workerpb/worker.proto

.PHONY: capi-generate
capi-generate: ## CRDs and deep copies from the types of api/capi
	@deploy/capi/generate

CAPI_VERSION ?= v0.1.0

.PHONY: capi-release
capi-release: ## what clusterctl fetches of the provider, in dist/capi/infrastructure-rackstrap: components, metadata, templates
	@deploy/capi/release $(CAPI_VERSION) dist/capi/infrastructure-rackstrap

CAPI_IMAGE ?= ghcr.io/rackstrap/rackstrap-capi:$(CAPI_VERSION)

.PHONY: capi-image
capi-image: ## a container image of the provider, amd64 and arm64, as an OCI archive: dist/capi/rackstrap-capi.tar
	@mkdir -p dist/capi
	@for a in amd64 arm64; do GOARCH=$$a $(GO) build -C api/capi -trimpath -ldflags '-s -w -X main.version=$(CAPI_VERSION)' -o $(CURDIR)/dist/capi/rackstrap-capi-$$a ./cmd/rackstrap-capi; done
	@$(GO) run ./deploy/capi/image -name $(CAPI_IMAGE) -o dist/capi/rackstrap-capi.tar amd64=dist/capi/rackstrap-capi-amd64 arm64=dist/capi/rackstrap-capi-arm64
	@echo 'dist/capi/rackstrap-capi.tar has $(CAPI_IMAGE): podman load -i, ctr -n k8s.io images import, or skopeo copy oci-archive:FILE docker://$(CAPI_IMAGE)'

.PHONY: capi-env
capi-env: ## the real parts of the Cluster API suites, built once into the cache
	@deploy/capi/env/build

# What test-capi-real does: all, small (one control plane and one worker), 0 (nothing).
CAPI_REAL ?= all

.PHONY: test-capi-real
test-capi-real: deps-lab build ## clusters of virtual machines that netboot, are installed and join by kubeadm; bin/capi.txt has the times
	@test '$(CAPI_REAL)' = 0 || { rm -f bin/capi.txt; CAPI_REAL='$(CAPI_REAL)' RACKSTRAP_TEST_NOSKIP=1 RACKSTRAP_BIN=$(CURDIR)/bin/rackstrap \
		RACKSTRAP_CAPI_TABLE=$(CURDIR)/bin/capi.txt $(GO) test -count=1 -timeout 170m ./deploy/lab/e2e/capi || failed=$$?; cat bin/capi.txt 2>/dev/null || true; exit $${failed:-0}; }

# What `make test-capi` runs of upstream's specs; UPSTREAM=QuickStart runs one.
UPSTREAM ?=

.PHONY: test-capi
test-capi: deps-lab build capi-env ## the Cluster API provider: real API server, core and kubeadm providers, and upstream's specs, on simulated machines
	@cd api/capi && RACKSTRAP_TEST_NOSKIP=1 RACKSTRAP_BIN=$(CURDIR)/bin/rackstrap $(GO) test -shuffle=on -timeout 30m -p 1 -parallel 2 ./...
	@cd api/capi/suite/upstream && RACKSTRAP_TEST_NOSKIP=1 RACKSTRAP_BIN=$(CURDIR)/bin/rackstrap RACKSTRAP_UPSTREAM_FOCUS='$(UPSTREAM)' $(GO) test -count=1 -timeout 40m ./...
	@$(MAKE) --no-print-directory test-capi-real

.PHONY: clean
clean: ## build outputs; the cache in $(RACKSTRAP_CACHE) stays
	rm -rf bin dist
	find ipxe/embedded -type f ! -name README.md -delete
