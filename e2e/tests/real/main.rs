//! Jobs in containers: every worker has a real node, and kwok simulates none.
//!
//! The tests need root and Linux's namespaces and control groups, so `cargo test` alone ignores them: `make test-real` runs them
//! where `sluice-lab preflight` finds nothing missing.

mod containers;
mod evictions;
mod fixture;
mod ledger;
mod lifecycle;
mod node_faults;
mod shared_installation;
