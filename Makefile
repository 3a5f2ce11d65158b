# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The module is built by kbuild, everything else by CMake; both write into build/ only. 'make help' lists the targets.

PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   := build
jobs    := $(shell nproc)

# The default kernel is the newest Debian package of the 6.12 series.
default_kernel := 6.12
kernel   = $(or $(KERNEL),$(default_kernel))
run      = selftests/vm/run --kernel $(kernel) $(if $(TIMEOUT),--timeout $(TIMEOUT)) $(RUN_OPTIONS)
require := packaging/require
# Only the targets that the README promises this of install packages; the others name what is missing.
install_missing := DAPX_INSTALL=yes $(require) --install

.PHONY: all
all: module programs ## module for the default kernel, library, tools and tests (KDIR=... for another kernel)

.PHONY: help
help: ## this list
	@echo 'Targets (variables in brackets):'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | \
		while IFS="$$(printf '\t')" read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

# --- building ---------------------------------------------------------------------------------------------------

.PHONY: packages
packages:
	@$(require) build

# The release that 'make install' installs is the one last built here.
.PHONY: module
module: packages
	@mkdir -p $(BUILD)/kmod
	@kdir='$(KDIR)'; \
	if [ -z "$$kdir" ]; then kdir=$$(selftests/vm/kernel $(kernel))/build || exit 1; fi; \
	packaging/build-kmod "$$kdir" $(BUILD)/kmod >$(BUILD)/kmod/.release.new && \
		mv $(BUILD)/kmod/.release.new $(BUILD)/kmod/release

.PHONY: programs
programs: packages
	@packaging/build-programs $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX)

.PHONY: install
install: ## put what 'make' built in place [DESTDIR, PREFIX]
	@packaging/install $(BUILD) '$(DESTDIR)' '$(PREFIX)'

.PHONY: uninstall
uninstall: ## remove what 'make install' put in place [DESTDIR, PREFIX]
	@packaging/uninstall '$(DESTDIR)' '$(PREFIX)'

.PHONY: deb
deb: ## Debian packages in build/deb, source and binary
	@$(install_missing) build deb
	@packaging/build-deb $(BUILD)/deb

.PHONY: rpm
rpm: ## RPM packages in build/rpm
	@$(install_missing) build rpm
	@packaging/build-rpm $(BUILD)/rpm

.PHONY: clean
clean: ## remove build/ (the kernels in the cache stay)
	rm -rf $(BUILD)

# kernel-doc is in the headers that the module is built against.
.PHONY: html
html: ## these documents, the ABI's reference and the manual pages as HTML, in build/html
	@$(install_missing) docs
	@kdir='$(KDIR)'; \
	if [ -z "$$kdir" ]; then kdir=$$(DAPX_INSTALL=yes selftests/vm/kernel $(kernel))/build || exit 1; fi; \
	packaging/build-html "$$kdir" $(BUILD)

# --- trying it out ----------------------------------------------------------------------------------------------

.PHONY: demo
demo: ## a file, a window and an XRC domain between two RDMA hosts in the virtual machine
	@$(install_missing) build fast run
	@DAPX_INSTALL=yes $(MAKE) --no-print-directory module
	@packaging/build-programs $(BUILD) -- dapxctl dapx-ping dapx-perf dapx-example-window dapx-example-xrc
	@$(run) selftests/demo.sh

.PHONY: vm
vm: all ## run CMD='...' as root in the virtual machine [KERNEL=6.1|6.12|debug|kcsan|rt, MACHINES=2, TIMEOUT]
	@$(require) run
	@test -n "$$DAPX_VM_CMD" || { echo "usage: make vm CMD='...' [KERNEL=6.1|6.12|debug|kcsan|rt] [MACHINES=2]" >&2; exit 2; }
	@$(run) $(if $(MACHINES),--machines $(MACHINES)) -- "$$DAPX_VM_CMD"

.PHONY: vm-shell
vm-shell: all ## a shell in the virtual machine [KERNEL]
	@$(require) run
	@$(run) --shell

# --- checking ---------------------------------------------------------------------------------------------------

.PHONY: check
check: ## host unit tests, then everything else on both stock kernels [KERNEL=6.1|6.12|debug|kcsan|rt, TESTS='name ...', V=1]
	@$(install_missing) build fast run applications check $(if $(filter debug kcsan rt,$(KERNEL)),debug)
	@selftests/check $(or $(KERNEL),6.1 6.12)

.PHONY: check-debug
check-debug: ## part of it, on a kernel with KASAN, lockdep, kmemleak, fault injection (built on first use) [ALL=1, PART=N|always]
	@$(install_missing) build fast run check debug
	@selftests/check debug

.PHONY: check-full
check-full: packages-for-check ## the same on all kernels with unscaled counts, then the mutants: hours
	@$(install_missing) build fast run applications mpi check debug
	@DAPX_SCALE=full selftests/check 6.1 6.12 debug
	@selftests/check kcsan
	@selftests/check rt
	@$(MAKE) --no-print-directory mutants

# The later version differs in the changelog only.
later := 0.2.0-1
.PHONY: packages-for-check
packages-for-check:
	@$(install_missing) build run check deb rpm
	@packaging/build-deb $(BUILD)/deb
	@packaging/build-deb $(BUILD)/deb $(later)
	@packaging/build-rpm $(BUILD)/rpm
	@selftests/dkms.sh $(BUILD)/deb 6.1 6.12
	@selftests/rpm.sh $(BUILD)/deb $(BUILD)/rpm

.PHONY: check-packages
check-packages: packages-for-check ## build the packages; install, upgrade, remove Debian's on both stock kernels
	@selftests/vm/run --kernel 6.1 --no-module selftests/module/packages.sh
	@selftests/vm/run --kernel 6.12 --no-module selftests/module/packages.sh

.PHONY: mutants
mutants: ## take one guarantee after the other out of the code: the test named for it must fail [NAME='mutant ...']
	@$(install_missing) build fast run check debug
	@selftests/mutants/run $(if $(filter command,$(origin NAME)),$(NAME))

.PHONY: bench
bench: ## compare with libibverbs; table, and build/bench.json [KERNEL; COUNT=1: instructions, not time; CURVES=1]
	@$(install_missing) build fast run $(if $(CURVES),curves)
	@DAPX_INSTALL=yes $(MAKE) --no-print-directory all
ifdef COUNT
	@rm -f $(BUILD)/vm/out/counts.json
	@$(run) --time virtual --timeout 900 selftests/bench/count
	@cp $(BUILD)/vm/out/counts.json $(BUILD)/counts.json
	@selftests/bench/compare-counts selftests/bench/expected.json $(BUILD)/counts.json
else ifdef CURVES
	@rm -f $(BUILD)/vm/out/curves.json
	@DAPX_BENCH_ONLY=curves $(run) --timeout 1800 selftests/bench/run
	@mkdir -p $(BUILD)/curves
	@cp $(BUILD)/vm/out/curves.json $(BUILD)/curves/curves.json
	@selftests/bench/plot $(BUILD)/curves/curves.json $(BUILD)/curves
else
	@rm -f $(BUILD)/vm/out/bench.json
	@$(run) --timeout 1800 selftests/bench/run
	@cp $(BUILD)/vm/out/bench.json $(BUILD)/bench.json
	@selftests/bench-table $(BUILD)/bench.json
endif

.PHONY: lint
lint: ## checkpatch, sparse, W=1, clang-format, clang-tidy, shellcheck, mandoc, Sphinx, abidiff
	@$(install_missing) build fast run check lint docs
	@selftests/lint

# The command is the guest's shell's to expand, so its $ must not be make's.
export DAPX_VM_CMD := $(value CMD)
unexport CMD
export V TESTS ALL PART
