//! An installation with manager and agents in pods, on real nodes of every cluster.
//!
//! Its lab does not run beside that of `tests/real`: together they have ten nodes, which with their clusters use more than the 128
//! inotify instances that the kernel allows a user by default. As there, `make test-real` runs it, where real nodes can run.
//! `make test-clusters` runs it on the clusters that `SLUICE_E2E_KUBECONFIGS` names, which need no real nodes of a lab.

mod cases;
mod clusters;
mod deleted_programs;
mod installation;
mod samples;
