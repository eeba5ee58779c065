//! What the leases of a worker allow, as dispatch and the condition of the worker use it.

use dispatch::{LeaseStamp, workload::RemoteLease};
use engine::Time;

use crate::control::time::timestamp;

/// What dispatch knows of the leases of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeaseState {
    /// Whether copies may be created, and whether the lost worker is fenced.
    pub(crate) lease: RemoteLease,
    /// The hub Lease has the term of this leader: what is read after that proves that a copy is absent.
    pub(crate) writes: bool,
    /// What copies carry that are created or adopted now.
    pub(crate) stamp: LeaseStamp,
    /// It is lost and not fenced.
    pub(crate) awaits_fence: bool,
    /// When time alone fences it.
    pub(crate) fenced_at: Option<Time>,
}

/// The reason why work under ExactlyOnce of a lost worker does not start elsewhere. A message that contains it waits.
pub(crate) const WAITING_FOR_FENCE: &str = "WaitingForFence";

/// The message of the condition of a worker, with what its work under ExactlyOnce waits for.
pub(crate) fn with_fence(message: String, name: &str, leases: &LeaseState) -> String {
    match awaited_fence(name, leases) {
        Some(reason) => format!("{message}; {reason}"),
        None => message,
    }
}

/// What work under ExactlyOnce waits for; `None` if the worker is reached or fenced.
pub(crate) fn awaited_fence(name: &str, leases: &LeaseState) -> Option<String> {
    let until = match leases.fenced_at {
        Some(at) => format!("at {}, or ", timestamp(at)),
        None => String::new(),
    };
    leases.awaits_fence.then(|| {
        format!(
            "{WAITING_FOR_FENCE}: work under ExactlyOnce starts elsewhere {until}when a person confirms that nothing runs there \
             (sluicectl fence {name})"
        )
    })
}
