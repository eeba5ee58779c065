//! Purposes of everything that managers and agents write.
//!
//! The names are those of the metric `sluice_writes_total` and of the places where tests end a process
//! ([`runtime::failpoint`]). A status of a Workload may carry several transitions; the first one names it.

use std::fmt;

macro_rules! purposes {
    ($($(#[$doc:meta])+ $purpose:ident = $name:literal;)+) => {
        /// Why something is written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Purpose {
            $($(#[$doc])+ $purpose,)+
        }

        impl Purpose {
            /// Every purpose.
            pub const ALL: &'static [Self] = &[$(Self::$purpose,)+];

            /// Its name in metrics, logs and failpoints.
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
    /// Creates the Workload of a job.
    WorkloadCreate = "workload-create";
    /// Updates a Workload without quota to the spec of its job.
    WorkloadUpdate = "workload-update";
    /// Changes the size of a slice of an elastic job.
    Resize = "resize";
    /// Deletes a Workload that does not match its job, or at the end of its retention.
    WorkloadDelete = "workload-delete";
    /// Moves a Workload to the queue of its job.
    Move = "move";
    /// Writes the value of a WorkloadPriorityClass into a Workload.
    Priority = "priority";
    /// Sets `spec.active` to false.
    Deactivate = "deactivate";
    /// Sets `spec.active` of a variant to true.
    Activate = "activate";
    /// Marks a Workload that has variants.
    MarkParent = "mark-parent";
    /// Creates a variant.
    VariantCreate = "variant-create";
    /// Removes the finalizer `resource-in-use` from a Workload.
    Unfinalize = "unfinalize";
    /// Adds pods that joined a group to the owners of its Workload.
    AddOwners = "add-owners";
    /// Raises the epoch, which voids copies of the present one.
    RaiseEpoch = "raise-epoch";
    /// Writes the term of a leader that takes a Workload over, before it creates copies of it.
    ConfirmVersion = "confirm-version";
    /// Writes `reclaimablePods`.
    Reclaim = "reclaim";

    /// Reserves quota, and nominates a worker cluster.
    Reserve = "reserve";
    /// Explains why a Workload is pending.
    Pending = "pending";
    /// Records the worker cluster that admitted a Workload and sets its MultiKueue check to Ready.
    Dispatched = "dispatched";
    /// Admits a Workload that holds quota and whose checks are Ready.
    Admit = "admit";
    /// Admits a parent as its variant.
    AdmitParent = "admit-parent";
    /// Opens the preemption gate of a variant.
    OpenGate = "open-gate";
    /// Writes topology assignments of a Workload with quota: of a second pass, or in place of a failed node.
    AssignTopology = "assign-topology";
    /// Writes the nodes that failed under a Workload.
    UnhealthyNodes = "unhealthy-nodes";
    /// Sets the MultiKueue check to Retry.
    Retry = "retry";
    /// Sets the MultiKueue check to Rejected.
    Reject = "reject";
    /// Writes the state of a provisioning check.
    ProvisioningCheck = "provisioning-check";
    /// Evicts a Workload.
    Evict = "evict";
    /// Releases the quota of an evicted Workload.
    Release = "release";
    /// Releases the quota of a Workload that no worker took.
    Unplace = "unplace";
    /// Releases quota before admission: a queue is stopped, or gone.
    Suspend = "suspend";
    /// Takes a Workload out of its queue while its job is on hold, or puts it back.
    Hold = "hold";
    /// Requeues an evicted Workload.
    Requeue = "requeue";
    /// Writes what is known of the pods: the conditions PodsReady and `sluice.dev/PodsFailing`.
    PodsReady = "pods-ready";
    /// Writes the condition WaitingForReplacementPods.
    Replacement = "replacement";
    /// Marks a Workload for deactivation: a limit is reached.
    DeactivationTarget = "deactivation-target";
    /// Finishes a Workload.
    Finish = "finish";
    /// Refuses a clone on an agent's cluster.
    Refuse = "refuse";

    /// Makes a pod of a set of replicas a member of its group.
    Adopt = "adopt";
    /// Writes the generation of a RayCluster to the elastic job that has its size.
    JobAnnotate = "job-annotate";
    /// Starts a job.
    Start = "start";
    /// Suspends a job, deletes a pod, or deletes a job at the end of its retention.
    Stop = "stop";
    /// Gives a pod its topology domain and takes the gate of the topology off.
    UngateTopology = "ungate-topology";
    /// Takes the gate of elastic jobs off a pod.
    UngateElastic = "ungate-elastic";
    /// Ends a pod that waits for a failed node.
    TerminatePod = "terminate-pod";
    /// Ends a pod on an unreachable node.
    ForcefullyEnd = "forcefully-end";
    /// Deletes such a pod without a grace period.
    ForcefullyDelete = "forcefully-delete";
    /// Removes the finalizer of a pod that its Workload has counted.
    JobUnfinalize = "job-unfinalize";
    /// Resets the status of a stopped job, or marks a pod as terminated.
    StopStatus = "stop-status";
    /// Copies the status of a worker's job to the hub.
    SyncStatus = "sync-status";
    /// Sets the active pods of an evicted job to 0.
    Idle = "idle";

    /// Creates the clone of a Workload on a worker.
    CloneCreate = "clone-create";
    /// Creates the copy of a job on a worker.
    JobCreate = "job-create";
    /// Opens the preemption gate of a clone.
    OpenCloneGate = "open-clone-gate";
    /// Writes the size of a Workload or a job to its copy.
    ResizeCopy = "resize-copy";
    /// Deletes the copy of a job.
    JobDelete = "job-delete";
    /// Deletes the clone of a Workload.
    CloneDelete = "clone-delete";
    /// Reads a copy whose create is not settled. No write.
    Settle = "settle";
    /// Reads an object that was refused pods, for its controller; or a set that is not observed. No write.
    Owner = "owner";
    /// Reads an owner of a job that is not observed, for its ancestor. No write.
    Ancestor = "ancestor";
    /// Asks a worker to report by node labels.
    LabelKeys = "label-keys";

    /// Creates the Lease by which a manager grants.
    GrantCreate = "grant-create";
    /// Echoes a beat, with term and session.
    Grant = "grant";
    /// Records term and session of a worker, and ends a session.
    FenceRecord = "fence-record";
    /// Gives the clone of a former leader the stamp of the present one.
    Stamp = "stamp";

    /// Creates the Lease of an agent.
    BeatCreate = "beat-create";
    /// Writes a beat of an agent.
    Beat = "beat";
    /// Deletes a pod of a clone at the end of its grant.
    FencePod = "fence-pod";

    /// Creates the ClusterCapacity of an agent.
    CapacityCreate = "capacity-create";
    /// Writes a capacity report.
    Capacity = "capacity";
    /// Creates the copy of a report on the hub.
    CapacityCopyCreate = "capacity-copy-create";
    /// Updates the copy of a report on the hub.
    CapacityCopy = "capacity-copy";

    /// Creates the template of pods that a Workload asks room for.
    ProvisioningTemplateCreate = "provisioning-template-create";
    /// Creates the ProvisioningRequest of a Workload.
    ProvisioningRequestCreate = "provisioning-request-create";
    /// Gives a template to its request.
    ProvisioningTemplateOwner = "provisioning-template-owner";
    /// Deletes a ProvisioningRequest that its Workload has no use for.
    ProvisioningRequestDelete = "provisioning-request-delete";
    /// Deletes a template that no request uses.
    ProvisioningTemplateDelete = "provisioning-template-delete";

    /// Records the term of a leader, or the next incarnation.
    Incarnation = "incarnation";
    /// Records the identity of a worker cluster.
    ClusterUid = "cluster-uid";
    /// Writes the condition of a MultiKueueCluster, or removes a confirmation that is over.
    ClusterCondition = "cluster-condition";
    /// Writes the condition of an AdmissionCheck.
    CheckCondition = "check-condition";
    /// Writes the status of a ClusterQueue or Cohort.
    ClusterQueueStatus = "cluster-queue-status";
    /// Writes the quota of a ClusterQueue, the sum of its workers'.
    ManagerQuota = "manager-quota";
    /// Writes the status of a LocalQueue.
    LocalQueueStatus = "local-queue-status";
    /// Removes the finalizer of a queue, flavor, check or topology that nothing uses; adds it to a check or topology.
    ReleaseUnused = "release-unused";
}

impl Purpose {
    /// Whether it creates a copy on a worker.
    pub(crate) fn is_create(self) -> bool {
        matches!(self, Self::CloneCreate | Self::JobCreate)
    }

    /// Whether a write that is done has changed its object. A version may be confirmed again by the same leader.
    pub(crate) fn changes_its_object(self) -> bool {
        self != Self::ConfirmVersion
    }

    /// Whether nothing is written.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Settle | Self::Owner | Self::Ancestor)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
