//! Leases between an agent and the managers of its cluster, and fencing by them.
//!
//! ```text
//!  agent                      API server of the worker                manager
//!    | beat (boot, n) --------> Lease sluice-agent --------------------> |
//!    |                                                                   | attempt
//!    | <----------------- Lease sluice-hub-<origin> <-- echo (boot, n) --+
//!    | grant: from sent(n)                                               | fence: from the attempt
//! ```
//! A *grant* lets an agent run ExactlyOnce work. It begins when the agent sent beat `n`, not when it saw the echo, so that
//! a delay on the way shortens it. [`GrantHolder`] is the agent's half. [`GrantIssuer`] is the manager's: it counts from
//! its last attempt to echo, and so from a time that is not before `sent(n)`. No time is compared with the time of
//! another machine.
//!
//! Each hub Lease and each copy carry two numbers:
//! * the *term* of the leader. A copy of a lower term that was never admitted may be a late create of a former leader;
//!   it does not start.
//! * the *session* of the worker. It ends when the worker is fenced; its copies never run again.
//!
//! Source: docs/reference/dispatch.md §7-8. The model check of both halves is `tests/lease_model`.

mod grant_holder;
mod grant_issuer;

pub use grant_holder::{CopyVerdict, GrantHolder, LeasedCopy};
pub use grant_issuer::{GrantIssuer, IssuerStep, WorkerLeases};

/// What the agent writes into its Lease: a sign of life with a number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentBeat {
    /// Differs for each process that acts as the agent.
    pub boot: Box<str>,
    /// Grows with each beat of the process.
    pub sequence: u64,
}

/// What the manager writes into its Lease on the worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HubGrant {
    /// Term of the leader that wrote it.
    pub term: u64,
    /// Session of the worker.
    pub session: u64,
    /// `leaseDuration`, in nanoseconds.
    pub duration: i64,
    /// The newest beat that the manager saw.
    pub echo: Option<AgentBeat>,
}

/// What clone and job carry under ExactlyOnce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LeaseStamp {
    /// Session of the worker at the create.
    pub session: u64,
    /// Term of the leader that created it, or that adopted it before its admission.
    pub term: u64,
}

/// The manager's record about a worker in its own cluster: which leader writes there, in which session, and for how long it grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FenceRecord {
    /// Term of the leader.
    pub term: u64,
    /// The session; grows each time that the worker is fenced.
    pub session: u64,
    /// The longest `leaseDuration` of a grant that may last, in nanoseconds; 0 if it is unknown.
    pub longest: i64,
}

/// What proves that the work of a lost worker has stopped (`fencing` of a DispatchPolicy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fencing {
    /// Its absence was seen on the worker, or a person has confirmed it.
    #[default]
    Confirmed,
    /// Also the time in which a living agent has stopped it.
    Timed,
}

/// Times that follow from `leaseDuration`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GrantTiming {
    /// `leaseDuration`.
    pub duration: i64,
}

/// Time that an agent takes at most to stop work at the end of a grant: five seconds of grace, and as much for
/// the writes, the controllers and the kubelet.
pub const STOP_TIME: i64 = 10_000_000_000;

/// Distance between the latest stop and a start elsewhere.
pub const FENCE_MARGIN: i64 = 5_000_000_000;

impl GrantTiming {
    /// Length of a grant: two thirds of the duration. The rest belongs to an agent that restarts and does not know when
    /// the grants of its predecessor end.
    #[must_use]
    pub fn grant(self) -> i64 {
        self.duration - self.restart_allowance()
    }

    /// Time in which an agent that restarts keeps work running without a grant of its own.
    #[must_use]
    pub fn restart_allowance(self) -> i64 {
        self.duration / 3
    }

    /// Time between two beats, which leaves three more before the grant ends.
    #[must_use]
    pub fn beat_interval(self) -> i64 {
        self.grant() / 4
    }

    /// Time after the last attempt to echo at which nothing runs on the worker: 1.01 times the duration, for clocks
    /// of different rates, the time to stop and a margin.
    #[must_use]
    pub fn fenced_after(self) -> i64 {
        let drift = self.duration.saturating_add(99) / 100;
        let stopped = self.duration.saturating_add(drift).saturating_add(STOP_TIME);
        stopped.saturating_add(FENCE_MARGIN)
    }
}

#[cfg(test)]
mod tests;
