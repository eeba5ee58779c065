# Commands of the workspace. CI runs `make test`, then `make test-real` (.ci/run).

CARGO ?= cargo

# A command fails if one of its pipe does.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# The target directory of cargo.
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: test test-real test-real-nodes test-real-images test-real-ray test-real-kind test-real-dockerd test-real-clusters kind-short test-clusters kind-up kind-register kind-test kind-down lint build unit crash operator-matrix crash-and-counts others lab-lane-1 lab-lane-2 crate-suites counts recount demo bench images programs generate

test: lint build unit

# The command that lints; empty where the compiler of every build lints (.ci/run).
CLIPPY ?= $(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Formatting, lints and the order of the workspace (e2e/tidy).
lint:
	$(CARGO) fmt --all --check
	$(CLIPPY)
	$(CARGO) test --quiet --locked -p tidy

# The programs: tests on the lab start them.
build:
	$(CARGO) build --workspace --bins --locked

# Unit, property and lab tests, and counts. The crash test has the machine to itself: its scenarios interrupt pods that run
# for seconds. The first run builds the lab's control planes with Go, which takes some minutes.
unit:
	$(CARGO) test --workspace --all-targets --locked --no-run
	$(MAKE) --no-print-directory others
	$(MAKE) --no-print-directory crash-and-counts

# Ends manager and agents before and after every write.
crash:
	$(CARGO) test --workspace --locked --test crash

# Every fault of a write of the operators with everything that may happen beside it: half an hour. `make unit` takes one of each write.
operator-matrix:
	OPERATOR_MATRIX=all $(CARGO) test --locked -p worker-agent --bins -- crash_tests

crash-and-counts: crash
	$(MAKE) --no-print-directory counts

# Suites on control planes, except the crash test, in two lanes of about the same length.
LAB_LANE_1 := api dispatch lab replicas sluicectl
LAB_LANE_2 := $(filter-out crash $(LAB_LANE_1),$(notdir $(wildcard e2e/tests/*)))

# Suites of the crates. Tidy checks that no package has suites elsewhere.
CRATE_SUITES := $(basename $(notdir $(wildcard crates/*/tests/*.rs crds/tests/*.rs e2e/*/tests/*.rs))) \
  $(notdir $(patsubst %/,%,$(dir $(wildcard crates/*/tests/*/main.rs crds/tests/*/main.rs e2e/*/tests/*/main.rs))))

# All other tests. Lab tests wait more than they compute, so two lanes of them share the cores with the tests that only compute. The
# output of a lane comes as a whole. The failures of all lanes are repeated at the end, where they are found.
others:
	@rm -f $(LANE_LOGS)
	@$(MAKE) --no-print-directory --keep-going -j3 --output-sync=target $(LANES); \
	  made=$$?; [ $$made = 0 ] || e2e/failures.sh $(LANE_LOGS); exit $$made

$(TARGET):
	@mkdir -p $@

# What each lane prints is kept.
LANES := lab-lane-1 lab-lane-2 crate-suites
LANE_LOGS := $(LANES:%=$(TARGET)/%.log)

# More threads than cores, and few enough that labs do not start all at once. Errors of lab tests say where they waited for what; a
# stack says no more.
LAB_TEST := RUST_TEST_THREADS=6 RUST_LIB_BACKTRACE=0 $(CARGO) test --workspace --locked --no-fail-fast

lab-lane-1: | $(TARGET)
	$(LAB_TEST) $(LAB_LANE_1:%=--test=%) 2>&1 | tee $(TARGET)/$@.log

lab-lane-2: | $(TARGET)
	$(LAB_TEST) $(LAB_LANE_2:%=--test=%) 2>&1 | tee $(TARGET)/$@.log

# At low priority: control planes that answer late would fail the lab's tests.
crate-suites: | $(TARGET)
	nice -n 19 $(CARGO) test --workspace --locked --no-fail-fast --lib --bins $(sort $(CRATE_SUITES:%=--test=%)) 2>&1 | tee $(TARGET)/$@.log
	nice -n 19 $(CARGO) test --workspace --locked --doc 2>&1 | tee -a $(TARGET)/$@.log

# Clippy optimizes less than the compiler.
COUNTS := env -u RUSTC_WORKSPACE_WRAPPER $(CARGO) bench --quiet --locked --profile counts -p engine --bench engine -- counts

# Instructions and allocations of the engine for fixed work, against crates/engine/benches/counts.txt.
counts:
	$(COUNTS)

# Records the counts after an intended change; the commit says why.
recount:
	RECOUNT=1 $(COUNTS)

# Jobs in containers, on nodes with a kubelet, the real Ray, and clusters of kind. A part that the machine cannot run is skipped: an exit code
# of its own says so (77), and any other failure is one. The summary at the end names the parts, their seconds and the reasons.
test-real: build
	@rm -f $(REAL_PARTS)
	@$(MAKE) --no-print-directory -j1 --keep-going test-real-nodes test-real-images test-real-ray test-real-kind; \
	  made=$$?; e2e/part.sh $(REAL_PARTS) summary && exit $$made

# The ends of the parts, and what runs one of them.
REAL_PARTS := $(TARGET)/real-parts.tsv
PART := @e2e/part.sh $(REAL_PARTS) run

# At most two labs of three clusters, one with six nodes and one with two, run at once.
test-real-nodes: build
	$(PART) "real nodes" sh -c '$(TARGET)/debug/sluice-lab preflight --clusters 6 --nodes 8 && \
	  $(CARGO) test --workspace --locked --test real -- --ignored'

# The installation in pods on real nodes, with images as they are published, static and without failpoints, but built in minutes.
# `SLUICE_IMAGES=target/images` takes those of `make images`.
QUICK_IMAGES := $(abspath $(TARGET))/images/quick

test-real-images: build
	$(PART) "release images" sh -c '$(TARGET)/debug/sluice-lab preflight --clusters 3 --nodes 4 && \
	  $(if $(SLUICE_IMAGES),,$(TARGET)/debug/sluice-images --quick --out $(QUICK_IMAGES) &&) \
	  SLUICE_IMAGES=$(or $(SLUICE_IMAGES),$(QUICK_IMAGES)) $(CARGO) test --workspace --locked --test real_pods -- --ignored'

# The real Ray on real nodes, about four minutes with the image of Ray, which is made once. `RAY=no` leaves it out.
RAY ?= yes

# The start of a part that a variable leaves out.
UNLESS_NO = if [ "$($(1))" = no ]; then echo "SKIPPED: $(1)=no"; exit 77; fi;

# One test after the other: two Ray clusters at once are too much for two cores.
test-real-ray: build
	$(PART) "real Ray" sh -c '$(call UNLESS_NO,RAY) \
	  $(TARGET)/debug/sluice-lab preflight --clusters 3 --nodes 2 --memory 4 --ray && $(TARGET)/debug/sluice-images ray && \
	  RUST_LIB_BACKTRACE=0 $(CARGO) test --workspace --locked --test real_ray -- --ignored --test-threads=1'

# The installation in pods on clusters of kind, with the Docker that answers or a daemon that is started for it, and the tests of that
# daemon: less than four minutes with the image of the nodes, which is made once. `KIND=no` leaves it out.
test-real-kind: test-real-dockerd test-real-clusters

KIND ?= yes

# A client with this address finds no Docker. Two daemons at once count each other's inotify instances.
NO_DOCKER := DOCKER_HOST=unix:///absent

test-real-dockerd: build
	$(PART) "Docker daemon of its own" sh -c '$(call UNLESS_NO,KIND) \
	  $(NO_DOCKER) $(TARGET)/debug/sluice-kind with-docker -- true && \
	  $(CARGO) test --workspace --locked --test kind -- --ignored --test-threads=1'

# A daemon of its own has no way out, so the test is compiled before.
test-real-clusters: build
	$(PART) "clusters of kind" sh -c '$(call UNLESS_NO,KIND) \
	  $(CARGO) test --workspace --locked --test real_pods --no-run && \
	  $(TARGET)/debug/sluice-kind with-docker --own-node-image -- $(MAKE) --no-print-directory kind-short'

# What `test-real-clusters` runs with a Docker: one that ends meanwhile is a failure. The clusters are deleted after a failed test as well. The test
# installs, and registers the workers by `sluice-kind register`, as `kind-test` does.
kind-short:
	@$(TARGET)/debug/sluice-kind up --own-node-image --few-nodes
	@$(TARGET)/debug/sluice-kind load --debug && $(TARGET)/debug/sluice-kind test; \
	  tested=$$?; $(TARGET)/debug/sluice-kind down && exit $$tested

# The installation in pods, the samples and the cases of `make test` that need no lab, on the three clusters that SLUICE_E2E_KUBECONFIGS names by their kubeconfigs. kind/README.md says more.
test-clusters:
	@test -n "$(SLUICE_E2E_KUBECONFIGS)" || { echo "SLUICE_E2E_KUBECONFIGS is not set: manager:worker-1:worker-2"; exit 1; }
	$(CARGO) test --workspace --locked --test real_pods -- --ignored

# Three clusters of kind, made, tested and deleted. Where Docker does not run, each says SKIPPED and does nothing.
# `KIND_UP=--own-node-image` makes the image of the nodes instead of pulling it, and `KIND_LOAD=--debug` loads the programs of `make build`
# instead of the images of `make images`.
OR_SKIPPED := || [ $$? = 77 ]

kind-up: build
	@$(TARGET)/debug/sluice-kind up $(KIND_UP) $(OR_SKIPPED)

# The workers at the manager, both installed before.
kind-register: build
	@$(TARGET)/debug/sluice-kind register $(OR_SKIPPED)

kind-test: build
	@$(TARGET)/debug/sluice-kind load $(KIND_LOAD) $(OR_SKIPPED)
	@$(TARGET)/debug/sluice-kind test $(OR_SKIPPED)

kind-down: build
	@$(TARGET)/debug/sluice-kind down $(OR_SKIPPED)

# Jobs over two worker clusters, on control planes of this machine. After the builds it takes about a minute.
demo: programs
	$(TARGET)/debug/sluice-demo

# Runs of each balance scenario.
BALANCE_RUNS ?= 5

# States per exploration of the model check of leases in `make bench`.
LEASE_MODEL_STATES ?= 300000

# The engine alone, the model check of leases, then release programs on the lab; the figures go to target/bench. The balance scenarios take 22 minutes per run.
bench: programs
	$(CARGO) bench -p engine
	LEASE_MODEL_STATES=$(LEASE_MODEL_STATES) $(CARGO) test --quiet --locked -p dispatch --test lease_model
	$(CARGO) build --release --locked -p manager -p worker-agent
	$(TARGET)/debug/sluice-bench dispatch --programs $(TARGET)/release --out $(TARGET)/bench
	$(TARGET)/debug/sluice-bench cluster --programs $(TARGET)/release --out $(TARGET)/bench
	$(TARGET)/debug/sluice-bench pods --programs $(TARGET)/release --out $(TARGET)/bench
	$(TARGET)/debug/sluice-bench operators --programs $(TARGET)/release --out $(TARGET)/bench
	$(TARGET)/debug/sluice-bench fleet --programs $(TARGET)/release --out $(TARGET)/bench
	$(TARGET)/debug/sluice-bench faults --programs $(TARGET)/release --out $(TARGET)/bench
	$(TARGET)/debug/sluice-bench matrix
	$(TARGET)/debug/sluice-bench balance --programs $(TARGET)/release --out $(TARGET)/bench --runs $(BALANCE_RUNS)

# The images of manager and agent with their bills of materials, in target/images. About a quarter of an hour on two cores, once.
images:
	$(CARGO) run --quiet --locked -p images

# The programs of demo and bench. Built with all members, so that features equal those of every other build.
programs:
	@echo "building Sluice with cargo; minutes on a cold machine, once"
	$(CARGO) build --workspace --bins --locked

# Generates the files that are committed.
generate:
	cd e2e/lab && go run ./cmd/pod-template-schema > ../../crds/src/pod_template.json
	cd e2e/lab && go run ./cmd/quantity-table > ../../crds/src/quantity/table.tsv
	$(CARGO) run -p crds --bin crdgen
	$(CARGO) run -p ray --bin ray-crdgen
	$(CARGO) run -p appwrapper --bin appwrapper-crdgen
	$(CARGO) run -p jobs --bin kindgen
	$(CARGO) run -p chart --bin chartgen
