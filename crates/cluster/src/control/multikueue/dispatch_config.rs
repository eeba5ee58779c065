//! What dispatch is configured with.

use std::time::Duration;

use dispatch::{Dispatcher, workload::DispatchTimeouts};
use variants::preemption_gate::PREEMPTION_TIMEOUT;

use crate::control::time::nanos;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct DispatchConfig {
    /// Written on every copy.
    pub(crate) origin: String,
    /// The manager's namespace, which has the record of the incarnation.
    pub(crate) namespace: String,
    /// After this time without a connection a worker's Workloads may start elsewhere.
    pub(crate) lost_after: Duration,
    /// How often workers are compared with the hub; never if unset.
    pub(crate) gc_interval: Option<Duration>,
    /// How long a nominated worker may take to admit a clone.
    pub(crate) admit_within: Duration,
    /// How clusters are nominated.
    pub(crate) dispatcher: Dispatcher,
    /// Whether one clone of a Workload at a time may preempt (gate MultiKueueOrchestratedPreemption).
    pub(crate) orders_preemption: bool,
}

impl DispatchConfig {
    /// The timeouts of a Workload's dispatch. `lost_after` is that of its policy, in nanoseconds.
    pub(super) fn timeouts(&self, lost_after: Option<i64>) -> DispatchTimeouts {
        DispatchTimeouts {
            worker_lost_timeout: lost_after.unwrap_or(nanos(self.lost_after)),
            admission_timeout: nanos(self.admit_within),
            start_timeout: nanos(self.admit_within),
            preemption_timeout: self.preemption_timeout(),
        }
    }

    /// Time between two openings, in nanoseconds: as between variants. 0 without the gate, which opens what is closed.
    fn preemption_timeout(&self) -> i64 {
        if self.orders_preemption { nanos(PREEMPTION_TIMEOUT) } else { 0 }
    }
}
