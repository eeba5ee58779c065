//! Everything that managers and agents write, by what it is for.
//!
//! The names are those of the metric `sluice_writes_total` and of the places where tests end a process
//! ([`runtime::failpoint`]). One status of a Workload may carry several news; it is called after the first of them.

use std::fmt;

macro_rules! purposes {
    ($($(#[$doc:meta])+ $purpose:ident = $name:literal;)+) => {
        /// What a write is for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Purpose {
            $($(#[$doc])+ $purpose,)+
        }

        impl Purpose {
            /// All there are.
            pub const ALL: &'static [Self] = &[$(Self::$purpose,)+];

            /// Its name in metrics, logs and places.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$purpose => $name,)+
                }
            }
        }
    };
}

purposes! {
    /// A Workload is made for a job.
    WorkloadCreate = "workload-create";
    /// A Workload that holds nothing follows its job.
    WorkloadUpdate = "workload-update";
    /// A Workload is not its job's any more.
    WorkloadDelete = "workload-delete";
    /// A Workload follows its job to another queue.
    Move = "move";
    /// The priority of a Workload's class is another.
    Priority = "priority";
    /// A Workload is switched off for good.
    Deactivate = "deactivate";
    /// Nobody needs to keep a Workload any more.
    Unfinalize = "unfinalize";
    /// The next copy of a Workload shall be another.
    RaiseEpoch = "raise-epoch";
    /// Pods that will never run again need no quota.
    Reclaim = "reclaim";

    /// Quota is reserved, and a worker nominated.
    Reserve = "reserve";
    /// Why a Workload waits.
    Pending = "pending";
    /// A worker took it: its check is ready.
    Dispatched = "dispatched";
    /// Quota and all checks: it is admitted.
    Admit = "admit";
    /// Its check says: not now.
    Retry = "retry";
    /// Its check says: never.
    Reject = "reject";
    /// It loses its quota as soon as nothing of it runs.
    Evict = "evict";
    /// Nothing of it runs: the quota is back.
    Release = "release";
    /// No worker took it: the quota is back.
    Unplace = "unplace";
    /// Its queue stopped before it was admitted: the quota is back.
    Suspend = "suspend";
    /// It may queue again.
    Requeue = "requeue";
    /// Its pods are ready, or not any more.
    PodsReady = "pods-ready";
    /// It shall be switched off: a limit is reached.
    DeactivationTarget = "deactivation-target";
    /// Its job is over.
    Finish = "finish";
    /// The clone may not run here.
    Refuse = "refuse";

    /// A job may run.
    Start = "start";
    /// A job is held back.
    Stop = "stop";
    /// What a job that is held back still says of its run.
    StopStatus = "stop-status";
    /// What the copy of a job says of itself.
    SyncStatus = "sync-status";
    /// Nothing of an evicted job runs on a worker.
    Idle = "idle";

    /// A clone of a Workload on a worker.
    CloneCreate = "clone-create";
    /// A copy of a job on a worker.
    JobCreate = "job-create";
    /// The copy of a job goes.
    JobDelete = "job-delete";
    /// The clone of a Workload goes.
    CloneDelete = "clone-delete";
    /// The node labels that a worker shall report by.
    LabelKeys = "label-keys";

    /// An agent's report is made.
    CapacityCreate = "capacity-create";
    /// An agent reports.
    Capacity = "capacity";
    /// A report is shown on the hub for the first time.
    CapacityCopyCreate = "capacity-copy-create";
    /// A report is shown on the hub.
    CapacityCopy = "capacity-copy";

    /// Which cluster a registration is of.
    ClusterUid = "cluster-uid";
    /// Whether a worker can be used.
    ClusterCondition = "cluster-condition";
    /// Whether a check can be used.
    CheckCondition = "check-condition";
    /// What is in a ClusterQueue.
    ClusterQueueStatus = "cluster-queue-status";
    /// What is in a LocalQueue.
    LocalQueueStatus = "local-queue-status";
    /// Nobody uses a queue or flavor that is going.
    ReleaseUnused = "release-unused";
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
