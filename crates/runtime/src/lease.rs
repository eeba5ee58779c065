//! Leader election: of all processes with the same Lease (`coordination.k8s.io/v1`) at most one leads.
//!
//! * [`decide`] is the rule, pure: the observed Lease and the time in, the next [`ElectionStep`] out.
//! * [`Elector`] is the task: it reads and writes the Lease, each write with the resourceVersion that was read, and publishes
//!   the role through [`Leadership`].
//! * [`LeaseRecord`] is the content of the Lease, in the fields that Kubernetes controllers write, so that processes of
//!   different implementations can follow each other.
//!
//! Invariant: a leader stops before any other process may take its Lease, whatever happens to its requests. The leader's time
//! starts when it *sent* its last answered write, that of the followers when they *saw* that write. A component that acts as
//! leader calls [`Leadership::leads`] before each action. It compares with the clock, so a process that was suspended notices
//! before it acts, even if its elector has not run since.
//!
//! Limit: a deleted Lease protects its holder only from processes that had seen it. A process that starts at this moment
//! takes the Lease, and the holder notices with its next renewal. Only an administrator deletes Leases.

mod candidate;
mod decide;
mod elector;
mod identity;
mod leadership;
mod record;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use decide::{ElectionStep, LeaseTiming, LeaseTimingError, ObservedLease, decide};
pub use elector::{ElectionEnd, Elector, LeaseName};
pub use identity::{IdentityError, identity};
#[cfg(test)]
pub(crate) use leadership::leading_for;
pub use leadership::{LeaderRole, Leadership};
pub use record::LeaseRecord;
