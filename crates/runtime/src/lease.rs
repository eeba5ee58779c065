//! Leader election: of all processes with the same lease (`coordination.k8s.io/v1`) at most one leads.
//!
//! * [`decide`] is the rule: what is known of the lease and the time in, the next step out.
//! * [`Elector`] does it: reads, writes on the condition of the resourceVersion, and tells others through [`Leadership`].
//! * [`LeaseRecord`] is the wire: the fields that controllers of Kubernetes write, so that one can take over from another.
//!
//! What must stay true: a leader stops before anybody else may take its lease, whatever happens to its requests. It counts
//! from when it sent its last answered write, the others from when they saw that write. Who acts as leader asks
//! [`Leadership::leads`] before each action: it looks at the clock, so that a process that was suspended finds out before
//! it does harm, even if its elector has not run since.
//!
//! A lease that is deleted protects its holder only from those who had seen it: a process that starts at this moment takes
//! it, and the holder finds out with its next renewal. Nobody but an administrator deletes leases.

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
pub use leadership::{LeaderRole, Leadership};
pub use record::LeaseRecord;
