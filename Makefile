# Commands of the house. `make test` is everything CI runs.

CARGO ?= cargo

.PHONY: test lint build unit bench generate clean-lab

test: lint build unit

# Formatting, lints and the order of the house.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --quiet --locked -p tidy

# The programs: tests on the lab start them.
build:
	$(CARGO) build --workspace --bins --locked

# Unit, property and lab tests. The first run builds the lab's control planes with Go, which takes some minutes.
unit:
	$(CARGO) test --workspace --locked

bench:
	$(CARGO) bench -p engine

# What is generated and committed.
generate:
	cd e2e/lab && go run ./cmd/pod-template-schema > ../../crds/src/pod_template.json
	cd e2e/lab && go run ./cmd/quantity-table > ../../crds/src/quantity/table.tsv
	$(CARGO) run -p crds --bin crdgen
