# make demo        a Slurm cluster with simulated GPUs, and the hooks at work in it
# make test        unit and end-to-end tests (under 10 minutes on 2 cores)
# make build       the programs, in bin/
# make release     into dist/, for older systems too
# make install     into $(DESTDIR)$(prefix)
# See CONTRIBUTING.md for the rest.

prefix = /usr/local
sbindir = $(prefix)/sbin
libexecdir = $(prefix)/libexec/gpuhooks
mandir = $(prefix)/share/man
docdir = $(prefix)/share/doc/gpuhooks

# The hooks are static. gpu-probe is bound lazily: the real libnvidia-ml.so.1
# may lack a symbol that the binding knows, which must not kill it at start.
STATIC = gpu-prolog gpu-epilog gpu-healthcheck gpu-accounting
# VERSION is for builds without version control; else Go takes the tag.
LDFLAGS = -s -w -X gpuhooks/internal/config.probe=$(libexecdir)/gpu-probe $(if $(VERSION),-X gpuhooks/internal/cli.version=$(VERSION))
CGO_CFLAGS = -O2 -Wno-deprecated-declarations
export CGO_CFLAGS

# The hooks stay small: functions are not copied into their callers, and no gap is
# left between them: a tenth of a hook. In the libraries that costs a prolog two
# milliseconds, so there it is done to our own code only.
SMALL = -gcflags=all=-l
bin/gpu-prolog: SMALL = -gcflags=gpuhooks/...=-l
SMALL_LDFLAGS = -funcalign=1

# The lab starts daemons and makes device nodes: root, or sudo with the same Go.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo env PATH=$(PATH) GOMODCACHE=$(shell go env GOMODCACHE))
# go test asks for a program that runs the tests.
EXEC := $(if $(SUDO),-exec "$(SUDO)")
# Slurm's plugin for AutoDetect=nvml; where it cannot be had, its tests say "skipped".
NVML_PLUGIN = "$$(timeout 120 scripts/slurm-nvml-plugin || :)"

.PHONY: build release demo demo-stop test test-full lint check-link bench detect man install clean deps FORCE
FORCE:

build: $(STATIC:%=bin/%) bin/gpu-probe

# bin/gpu-prolog is built from prolog/, and so on.
$(STATIC:%=bin/%): bin/gpu-%: FORCE
	CGO_ENABLED=0 go build -trimpath $(SMALL) -ldflags "$(LDFLAGS) $(SMALL_LDFLAGS)" -o $@ ./$*

bin/gpu-probe dist/gpu-probe: FORCE
	CGO_ENABLED=1 go build -trimpath -ldflags "$(LDFLAGS) '-extldflags=-Wl,-z,lazy'" -o $@ ./probe

# dist/ runs on any x86-64 Linux of the last years: gpu-probe is linked against an
# old glibc, whose packages are fetched once.
release: $(STATIC:%=bin/%)
	cc=$$(scripts/release-sysroot) && CC="$$cc" $(MAKE) dist/gpu-probe
	install -m 0755 $(STATIC:%=bin/%) scripts/gpu-acceptance dist
	@scripts/check-link dist

bin/gpu-lab: FORCE
	CGO_ENABLED=0 go build -trimpath -o $@ ./internal/lab/demo

deps:
	@scripts/install-deps

demo: deps build bin/gpu-lab
	$(SUDO) bin/gpu-lab $(if $(KEEP),--keep)

demo-stop: bin/gpu-lab
	$(SUDO) bin/gpu-lab stop $(DIR)

test: deps build
	CGO_ENABLED=0 go test $(EXEC) ./...
	CGO_ENABLED=1 go test $(EXEC) -race ./...
	GPUHOOKS_SLURM_PLUGINS=$(NVML_PLUGIN) CGO_ENABLED=0 go test $(EXEC) -tags e2e -count 1 -timeout 8m ./internal/lab/...

test-full: deps build
	GPUHOOKS_SLURM_PLUGINS=$(NVML_PLUGIN) CGO_ENABLED=1 go test $(EXEC) -tags "e2e full" -count 1 -timeout 30m ./...
	@echo "once more with proctrack/cgroup, task/cgroup and ConstrainDevices:"
	$(SUDO) env GPUHOOKS_LAB_FENCE=1 GPUHOOKS_SLURM_PLUGINS=$(NVML_PLUGIN) CGO_ENABLED=0 go test -tags e2e -count 1 -timeout 8m ./internal/lab

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "lint: error: not formatted: run gofmt -w ." >&2; exit 1; }
	CGO_ENABLED=0 go vet -tags "e2e full" ./...
	CGO_ENABLED=1 go vet -tags "e2e full" ./...
	CGO_ENABLED=1 go tool staticcheck -tags "e2e full" ./...

check-link: build
	@scripts/check-link bin

bench: deps build
	$(SUDO) go run ./internal/lab/bench

# docs/detection.md anew: read what has changed before you commit it.
detect: deps build
	CGO_ENABLED=0 go test $(EXEC) -tags e2e -count 1 ./internal/lab/detect -update

# The generator is in no program that is shipped, hence the tag.
man:
	install -d docs/man
	$(foreach p,$(STATIC:gpu-%=%),CGO_ENABLED=0 go run -tags man ./$p man docs/man &&) true

install: build
	install -d $(DESTDIR)$(sbindir) $(DESTDIR)$(libexecdir) $(DESTDIR)$(docdir)/examples $(DESTDIR)$(mandir)/man8
	install -m 0755 $(STATIC:%=bin/%) $(DESTDIR)$(sbindir)
	install -m 0755 bin/gpu-probe $(DESTDIR)$(libexecdir)
	install -m 0644 $(wildcard etc/*.toml etc/*.conf etc/*.logrotate) $(DESTDIR)$(docdir)/examples
	for u in $(notdir $(wildcard etc/systemd/*)); do \
		sed 's|/usr/local/libexec/gpuhooks|$(libexecdir)|; s|/usr/local/sbin|$(sbindir)|' etc/systemd/$$u >$(DESTDIR)$(docdir)/examples/$$u || exit 1; \
	done
	sed -i 's|/usr/libexec/gpuhooks|$(libexecdir)|' $(DESTDIR)$(docdir)/examples/gpuhooks.toml
	$(if $(wildcard docs/man/*.8),install -m 0644 $(wildcard docs/man/*.8) $(DESTDIR)$(mandir)/man8)
	for w in prolog epilog healthcheck; do \
		sed 's|^sbin=.*|sbin=$(sbindir)|' scripts/$$w.sh >$(DESTDIR)$(docdir)/examples/$$w.sh && \
		chmod 0755 $(DESTDIR)$(docdir)/examples/$$w.sh || exit 1; \
	done
	sed 's|/usr/local/sbin|$(sbindir)|' scripts/nhc/gpuhooks.nhc >$(DESTDIR)$(docdir)/examples/gpuhooks.nhc

clean:
	rm -rf bin dist
