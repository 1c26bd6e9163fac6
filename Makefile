# haggle: `make` lists what can be made. Everything works from a fresh clone on Debian and Ubuntu that has Go 1.26.

SHELL     := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
PREFIX  ?= /usr
BUILD   := $(GO) build -trimpath -ldflags '$(LDFLAGS)'

# What is pure Go: haggle, and the payment programs that are looked for beside it.
PURE    := haggle haggle-pay-lab haggle-pay-hand

# Tools are pinned in tools/go.mod and built once a version.
tool_version = $(shell sed -n 's|^\s*$(1) \(v[^ ]*\).*|\1|p' tools/go.mod)
GOFUMPT  := .tools/gofumpt-$(call tool_version,mvdan.cc/gofumpt)
GOLANGCI := .tools/golangci-lint-$(call tool_version,github.com/golangci/golangci-lint/v2)

# Every Go file that git knows or would take: no other folder can hold our source.
GO_FILES = $$(git ls-files --cached --others --exclude-standard '*.go')

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run setup setup-test build build-haggle install units test check smoke hostile clients netns vm netsim bench shots cross fuzz soak fmt clean
.PHONY: format tidy vet lint arrows windows test-fast test-heavy

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

run: ## build, start a market on this machine and open it on the terminal
	@MAKE=$(MAKE) scripts/run.sh

setup: ## install what is missing from Debian's packages (asks once for sudo)
	@scripts/setup.sh

build: build-haggle ## build bin/haggle, bin/haggled and the payment programs beside them
	$(BUILD) -o bin/haggled ./cmd/haggled

build-haggle:
	for name in $(PURE); do CGO_ENABLED=0 $(BUILD) -o bin/$$name ./cmd/$$name; done

# A unit names its program by its path, so it is written anew for another PREFIX.
install: ## copy programs and service units below PREFIX (/usr), within DESTDIR
	install -D -m 0755 -t '$(DESTDIR)$(PREFIX)/bin' $(PURE:%=bin/%) bin/haggled
	install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	for unit in packaging/systemd/*.service; do \
		sed 's|^ExecStart=/usr/|ExecStart=$(PREFIX)/|' $$unit | \
			install -m 0644 /dev/stdin '$(DESTDIR)$(PREFIX)/lib/systemd/system/'$${unit##*/}; \
	done
	install -D -m 0644 -t '$(DESTDIR)$(PREFIX)/lib/sysusers.d' packaging/sysusers.d/haggle.conf
	install -D -m 0644 -t '$(DESTDIR)$(PREFIX)/lib/tmpfiles.d' packaging/tmpfiles.d/haggle.conf
	if [ -z '$(DESTDIR)' ] && [ -d /run/systemd/system ]; then systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload; fi

units: build ## have systemd's checker read the service units
	scripts/units.sh

test: setup setup-test build test-fast test-heavy ## run every test

setup-test:
	@scripts/setup.sh test

test-fast:
	$(GO) test -race -vet=off -shuffle=on -count=1 $$(scripts/packages.sh fast)

# Compiling libp2p, SQLite and containerd with the race detector costs more than it finds.
# One after the other: they look for what others leave behind, and two cores are soon full.
test-heavy:
	E2E_PROGRAMS=$(CURDIR)/bin $(GO) test -vet=off -shuffle=on -count=1 -p 1 -timeout 20m $$(scripts/packages.sh heavy)

check: setup setup-test ## everything that CI runs: format, linters, arrows, builds, tests, smoke
	@scripts/step.sh format $(MAKE) format
	@scripts/step.sh tidy $(MAKE) tidy
	@scripts/step.sh arrows $(MAKE) arrows
	@scripts/step.sh build $(MAKE) build
	@scripts/step.sh units $(MAKE) units
	@scripts/step.sh windows $(MAKE) windows
	@scripts/step.sh vet $(MAKE) vet
	@scripts/step.sh lint $(MAKE) lint
	@scripts/step.sh test-fast $(MAKE) test-fast
	@scripts/step.sh test-heavy $(MAKE) test-heavy
	@scripts/step.sh smoke $(MAKE) smoke

format: $(GOFUMPT)
	@bad=$$($(GOFUMPT) -l $(GO_FILES)); if [ -n "$$bad" ]; then echo "not formatted, run make fmt:"; echo "$$bad"; exit 1; fi

tidy:
	$(GO) mod tidy -diff

arrows:
	$(GO) test -vet=off -count=1 ./internal/arch

windows:
	for name in $(PURE); do GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/$$name; done

vet:
	$(GO) vet ./...

lint: $(GOLANGCI)
	$(GOLANGCI) run

smoke: setup build ## as root: a lab, a job, a bill that anyone can check, and nothing left behind
	scripts/smoke.sh

hostile: setup ## as root: the suite of hostile tenants, from inside real jobs, and each protection left out in turn
	HAGGLE_FULL=1 CI=true $(GO) test -vet=off -count=1 -v -timeout 20m ./internal/hostile ./runtime/containerd

clients: setup build ## as root: ssh, rsync, rclone, sshfs, paramiko, a notebook and a training against leases; NAME=test for one
	@scripts/setup.sh clients
	scripts/clients.sh $(NAME)

netns: setup setup-test build ## as root: rigs and renters behind home routers, in network namespaces; NAME=test for one
	CI=true E2E_PROGRAMS=$(CURDIR)/bin $(GO) test -vet=off -count=1 -v -timeout 20m -run '$(or $(NAME),.)' ./internal/netlab

vm: setup build ## as root: the units, smoke and the hostile suite on a virtual Debian with systemd and cgroup v2 (up to an hour)
	@scripts/setup.sh vm
	scripts/vm.sh

netsim: ## model a market of up to 100 000 rigs, and compare it with real nodes in virtual time (minutes)
	$(GO) run ./internal/netsim/model
	HAGGLE_FAIR=large $(GO) test -vet=off -count=1 -v -timeout 60m -run TestARenterSees ./p2p

bench: setup build ## print our figures beside others'; NAME=figure for one of them
	$(GO) run ./internal/bench $(NAME)

shots: setup build ## draw every screen of the real program into docs/screens
	@scripts/setup.sh shots
	scripts/shots.sh

cross: ## build haggle and the payment programs for all six systems into dist/
	for target in linux darwin windows; do for arch in amd64 arm64; do for program in $(PURE); do \
		name=dist/$$program-$$target-$$arch; if [ $$target = windows ]; then name=$$name.exe; fi; \
		echo "$$name"; GOOS=$$target GOARCH=$$arch CGO_ENABLED=0 $(BUILD) -o $$name ./cmd/$$program; \
	done; done; done

soak: build ## as root: play SEEDS lives (100000) of a lease in the simulator from seed FIRST (1) on, and kill programs KILLS (200) times
	E2E_PROGRAMS=$(CURDIR)/bin $(GO) test -tags soak -vet=off -count=1 -timeout 0 -v -run 'KilledAtAnyMoment|MoneyDoesNotCome' ./internal/e2e -kills $(or $(KILLS),200) -kill-seed $(or $(FIRST),1)
	$(GO) test -vet=off -count=1 -timeout 0 -v -run TestEveryLife ./market/sim -seeds $(or $(SEEDS),100000) -first $(or $(FIRST),1)

fuzz: ## run each fuzz target for 10 s; TIME=1m for longer
	scripts/fuzz.sh $(or $(TIME),10s)

fmt: $(GOFUMPT) ## format the Go source
	$(GOFUMPT) -w $(GO_FILES)

clean: ## remove what was built here
	rm -rf bin dist .tools

$(GOFUMPT): tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../$@ mvdan.cc/gofumpt

$(GOLANGCI): tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
