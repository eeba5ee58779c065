//! Jobs in containers: every worker has real nodes, and kwok simulates none, except for one test.
//!
//! The tests need root and Linux's namespaces and control groups, so `cargo test` alone ignores them: `make test-real` runs them
//! where `sluice-lab preflight` finds nothing missing.

mod containers;
mod evictions;
mod fixture;
mod ledger;
mod lifecycle;
mod mixed_nodes;
mod node_faults;
mod shared_installation;
