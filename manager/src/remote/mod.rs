//! Worker clusters as the manager reaches them (docs/reference/multikueue.md §1.2, §2.8, §2.9).
//!
//! | question | answered by |
//! |---|---|
//! | is this kubeconfig fit to be used | `kubeconfig`, pure |
//! | what is to be done for a MultiKueueCluster | `decide`, pure |
//! | when is a connection tried again, and what is said meanwhile | `retry`, pure |
//! | which of two registrations of one cluster counts | `claims`, pure |
//! | how a request gets there | `client`, behind a `switch` whose credentials can be replaced |
//! | who does it | one `worker` task per MultiKueueCluster, kept by the [`supervisor`] |
//!
//! Invariants: no worker is waited for by anything but its own task; nothing of a credential is ever logged, told or
//! compared but by its hash; a link is told before anything that depends on it, and nothing of a lost connection is told
//! after its loss.

pub(crate) mod claims;
mod client;
mod connection;
mod decide;
mod identity;
mod kubeconfig;
mod limit;
mod load;
mod picture;
mod refused;
mod retry;
mod secret;
pub(crate) mod supervisor;
pub(crate) mod surroundings;
mod switch;
#[cfg(test)]
mod tests;
mod worker;
