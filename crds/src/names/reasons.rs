//! Reasons of conditions and events.

names! {
    /// Quota was reserved.
    QUOTA_RESERVED = "QuotaReserved";
    /// The Workload was admitted.
    ADMITTED = "Admitted";
    /// Before UnadmittedWorkloadsObservability: no quota is reserved.
    PENDING = "Pending";
    /// Before UnadmittedWorkloadsObservability: no cycle may evaluate the Workload.
    INADMISSIBLE = "Inadmissible";
    /// Before UnadmittedWorkloadsObservability: other Workloads come first.
    WAITING = "Waiting";
    /// Before UnadmittedWorkloadsObservability: checks are not ready.
    UNSATISFIED_CHECKS = "UnsatisfiedChecks";
    /// No flavor suits the pods.
    NO_MATCHING_FLAVOR = "NoMatchingFlavor";
    /// The request exceeds the total capacity.
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota";
    /// Others use the quota.
    WAITING_FOR_QUOTA = "WaitingForQuota";
    /// No domain has enough free capacity.
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed";
    /// Preempted Workloads are still stopping.
    WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads";
    /// Something in the objects is wrong.
    MISCONFIGURED = "Misconfigured";
    /// The queue is stopped.
    SUSPENDED = "Suspended";
    /// Not considered yet.
    PENDING_EVALUATION = "PendingEvaluation";
    /// Another Workload's pods must be ready first.
    WAITING_FOR_PODS_READY = "WaitingForPodsReady";
    /// An admission gate is set.
    ADMISSION_GATED = "AdmissionGated";
    /// The job is on hold.
    ON_HOLD = "OnHold";
    /// The Workload is not active.
    DEACTIVATED = "Deactivated";
    /// A worker does not run Workloads of this namespace.
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed";
    /// Integrations are enabled that this version does not have.
    INTEGRATION_GATE_OFF = "IntegrationGateOff";
    /// Of an event: jobs of an enabled kind cannot be observed.
    INTEGRATION_UNAVAILABLE = "IntegrationUnavailable";
    /// Of an event: jobs of an enabled kind can be observed again.
    INTEGRATION_AVAILABLE = "IntegrationAvailable";
    /// An object that the pod sets of a job need is missing.
    NEEDED_OBJECT_MISSING = "NeededObjectMissing";
    /// Of an event: no pod of a Workload gets a domain, because the offset of the ranks of one is no number.
    INVALID_POD_INDEX_OFFSET = "InvalidPodIndexOffset";
    /// Of an event: a job that runs without a Workload is stopped.
    RAN_WITHOUT_WORKLOAD = "RanWithoutWorkload";
    /// Of an event: the CRD of a job lacks a field that a start needs.
    CRD_OUTDATED = "CRDOutdated";
    /// Of an event: the API server stores what a start writes in another way.
    START_NOT_STORED = "StartNotStored";
    /// A worker has an object of another owner under the name of a copy.
    NAME_TAKEN = "NameTaken";
    /// Another manager uses a worker with the same origin.
    ORIGIN_SHARED = "OriginShared";
    /// A client certificate expires within a week.
    CERTIFICATE_EXPIRING = "CertificateExpiring";
    /// A client certificate has expired.
    CERTIFICATE_EXPIRED = "CertificateExpired";
    /// A token is in the last part of its lifetime.
    TOKEN_EXPIRING = "TokenExpiring";
    /// A token has expired.
    TOKEN_EXPIRED = "TokenExpired";
    /// The annotations of a MultiKueueCluster about its drain have no meaning.
    INVALID_DRAIN = "InvalidDrain";
    /// A worker does not run jobs of this kind.
    KIND_NOT_ALLOWED = "KindNotAllowed";
    /// The grant of a clone has ended: it is stopped and never starts again.
    FENCED = "Fenced";
    /// No node accepts a pod: on pods set by the scheduler, on remote copies the reason of their eviction.
    UNSCHEDULABLE = "Unschedulable";
    /// The API server of a worker refuses pods of a remote copy: the reason of its eviction.
    PODS_REFUSED = "PodsRefused";
    /// The autoscaler of a worker does not provide the nodes of a remote copy, or takes them back: the reason of its refusal and of
    /// its eviction.
    PROVISIONING_FAILED = "ProvisioningFailed";
    /// Of an event: pods of a dispatched Workload cannot start.
    PODS_FAILING = "PodsFailing";
    /// Of a waiting container: its image could not be pulled.
    ERR_IMAGE_PULL = "ErrImagePull";
    /// Of a waiting container: its image could not be pulled, and the kubelet waits before it tries again.
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff";
    /// Of a waiting container: its image is not on the node and must not be pulled.
    ERR_IMAGE_NEVER_PULL = "ErrImageNeverPull";
    /// Of a waiting container: the name of its image cannot be parsed.
    INVALID_IMAGE_NAME = "InvalidImageName";
    /// Of a waiting container: an object that its configuration names is missing.
    CREATE_CONTAINER_CONFIG_ERROR = "CreateContainerConfigError";
    /// Of a waiting container: the runtime could not create it.
    CREATE_CONTAINER_ERROR = "CreateContainerError";
    /// Of an event: a Rejected check deactivates a Workload.
    ADMISSION_CHECK_REJECTED = "AdmissionCheckRejected";
    /// Of an event: no admission gate is left.
    ADMISSION_GATE_CLEARED = "AdmissionGateCleared";
    /// Of an event: a worker has admitted a Workload.
    MULTI_KUEUE = "MultiKueue";
    /// Of an event: a Workload has preempted another one.
    PREEMPTED_WORKLOAD = "PreemptedWorkload";
    /// Of an event: a Workload or a job was deleted at the end of its retention.
    DELETED = "Deleted";
    /// Of an event: the status of a copy is not copied whole.
    STATUS_TOO_LARGE = "StatusTooLarge";
    /// Of an event: the API server refuses the status of a copy.
    STATUS_REFUSED = "StatusRefused";
    /// Of an event: a removed worker still has objects of a Workload.
    LEFT_BEHIND = "LeftBehind";
    /// Of an event: the worker cluster that was chosen, and the run time that was assumed.
    CLUSTER_CHOSEN = "ClusterChosen";
    /// Of an event: the job has succeeded on a worker in an earlier dispatch.
    RESULT_ADOPTED = "ResultAdopted";
    /// Of an event: the Workload of a job has finished on a worker that has no copy of the job.
    JOB_END_UNKNOWN = "JobEndUnknown";
    /// Of an event: a worker cluster got room for a Workload that waits for the queues of others.
    REBALANCED = "Rebalanced";
    /// Of an event: a worker does not take the size of an elastic job.
    RESIZE_REFUSED = "ResizeRefused";
    /// Of an event: an elastic job under ExactlyOnce does not get a larger size before its next start.
    SIZE_KEPT = "SizeKept";
    /// No quota is reserved.
    NO_RESERVATION = "NoReservation";
    /// Checks are not ready.
    UNSATISFIED_ADMISSION_CHECKS = "UnsatisfiedAdmissionChecks";
    /// The topology is still to be chosen.
    PENDING_DELAYED_TOPOLOGY_REQUESTS = "PendingDelayedTopologyRequests";
    /// Evicted for a more important Workload.
    PREEMPTED = "Preempted";
    /// Pods were not ready in time.
    PODS_READY_TIMEOUT = "PodsReadyTimeout";
    /// An admission check requested it.
    ADMISSION_CHECK = "AdmissionCheck";
    /// The ClusterQueue was stopped.
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped";
    /// The LocalQueue was stopped.
    LOCAL_QUEUE_STOPPED = "LocalQueueStopped";
    /// Nodes failed.
    NODE_FAILURES = "NodeFailures";
    /// A pod waits for a node that takes it no more.
    UNSCHEDULABLE_ON_ASSIGNED_NODE = "UnschedulableOnAssignedNode";
    /// Such a pod was ended.
    POD_TERMINATED_BY_KUEUE = "PodTerminatedByKueue";
    /// A pod on an unreachable node was ended.
    FORCEFULLY_DELETED = "KueueForcefullyDeleted";
    /// A second pass has found no topology assignment, or no replacement of a node.
    SECOND_PASS_FAILED = "SecondPassFailed";
    /// A better flavor became free.
    FLAVOR_MIGRATION = "FlavorMigration";
    /// The variant that a Workload runs as was evicted.
    VARIANT_EVICTED = "VariantEvicted";
    /// No variant of a Workload is admitted any more.
    CONCURRENT_ADMISSION = "ConcurrentAdmission";
    /// Of an event: a Workload got a variant.
    CREATED_VARIANT = "CreatedVariant";
    /// Of an event: a variant was deleted.
    DELETED_VARIANT = "DeletedVariant";
    /// Of an event: a variant competes again.
    ACTIVATED_VARIANT = "ActivatedVariant";
    /// Of an event: a variant competes no longer.
    DEACTIVATED_VARIANT = "DeactivatedVariant";
    /// Of an event: a variant may preempt.
    PREEMPTION_UNGATED_VARIANT = "PreemptionUngatedVariant";
    /// Evicted on the manager.
    EVICTED_ON_MANAGER_CLUSTER = "EvictedOnManagerCluster";
    /// A larger slice replaced it.
    WORKLOAD_SLICE_REPLACED = "WorkloadSliceReplaced";
    /// Preempted by a Workload of the same queue.
    IN_CLUSTER_QUEUE = "InClusterQueue";
    /// Preempted to get lent quota back.
    IN_COHORT_RECLAMATION = "InCohortReclamation";
    /// Preempted for a fairer share.
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing";
    /// Preempted by a Workload that borrows.
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing";
    /// Activated again.
    REACTIVATED = "Reactivated";
    /// The wait is over.
    BACKOFF_FINISHED = "BackoffFinished";
    /// The ClusterQueue admits again.
    CLUSTER_QUEUE_RESTARTED = "ClusterQueueRestarted";
    /// The LocalQueue admits again.
    LOCAL_QUEUE_RESTARTED = "LocalQueueRestarted";
    /// Evicted too often.
    REQUEUING_LIMIT_EXCEEDED = "RequeuingLimitExceeded";
    /// Ran too long.
    MAXIMUM_EXECUTION_TIME_EXCEEDED = "MaximumExecutionTimeExceeded";
    /// The job succeeded.
    SUCCEEDED = "Succeeded";
    /// The job failed.
    FAILED = "Failed";
    /// The job no longer matches its Workload.
    OUT_OF_SYNC = "OutOfSync";
    /// The job was deleted.
    OWNER_NOT_FOUND = "OwnerNotFound";
    /// The job cannot be started.
    FAILED_TO_START = "FailedToStart";
    /// Pods of a group failed.
    PODS_FAILED = "PodsFailed";
    /// No pod of a group is missing any more.
    PODS_READY = "PodsReady";
    /// Of an event: the members of a group, or the pod sets of a job, make up no Workload.
    ERR_WORKLOAD_COMPOSE = "ErrWorkloadCompose";
    /// A job has got a Workload.
    CREATED_WORKLOAD = "CreatedWorkload";
    /// Of an event: the API server refuses the Workload of a job. Sluice's own.
    FAILED_TO_CREATE_WORKLOAD = "FailedToCreateWorkload";
    /// Of an event: a field of the status of a job has another type than its kind expects. Sluice's own.
    UNREADABLE_STATUS = "UnreadableStatus";
    /// Of an event: a Workload with the name of a group is not the group's.
    WORKLOAD_NAME_CONFLICT = "WorkloadNameConflict";
    /// Of an event: a group has more pods than it needs.
    EXCESS_POD_DELETED = "ExcessPodDeleted";
    /// Of an event: a pod of a group requests more than its role has quota for.
    POD_EXCEEDS_ROLE_REQUESTS = "PodExceedsRoleRequests";
    /// Of an event: a pod joined a group that has a Workload.
    OWNER_REFERENCES_ADDED = "OwnerReferencesAdded";
    /// Pods became ready.
    STARTED = "Started";
    /// Pods became ready again.
    RECOVERED = "Recovered";
    /// Pods are not ready yet.
    WAIT_FOR_START = "WaitForStart";
    /// Pods are no longer ready.
    WAIT_FOR_RECOVERY = "WaitForRecovery";
    /// A preemption gate is closed.
    PREEMPTION_GATED = "PreemptionGated";
    /// Everything is in order.
    READY = "Ready";
    /// The object is being deleted.
    TERMINATING = "Terminating";
    /// The queue is stopped.
    STOPPED = "Stopped";
    /// A flavor is missing.
    FLAVOR_NOT_FOUND = "FlavorNotFound";
    /// A check is missing.
    ADMISSION_CHECK_NOT_FOUND = "AdmissionCheckNotFound";
    /// A check is not active.
    ADMISSION_CHECK_INACTIVE = "AdmissionCheckInactive";
    /// A topology is missing.
    TOPOLOGY_NOT_FOUND = "TopologyNotFound";
    /// More than one check dispatches.
    MULTIPLE_MULTI_KUEUE_ADMISSION_CHECKS = "MultipleMultiKueueAdmissionChecks";
    /// A dispatching check is bound to flavors.
    MULTI_KUEUE_ADMISSION_CHECK_APPLIED_PER_FLAVOR = "MultiKueueAdmissionCheckAppliedPerFlavor";
    /// Dispatching and provisioning checks on one queue.
    MULTI_KUEUE_WITH_PROVISIONING_REQUEST = "MultiKueueWithProvisioningRequest";
    /// The ClusterQueue of a LocalQueue is missing.
    CLUSTER_QUEUE_DOES_NOT_EXIST = "ClusterQueueDoesNotExist";
    /// The ClusterQueue of a LocalQueue is not active.
    CLUSTER_QUEUE_IS_INACTIVE = "ClusterQueueIsInactive";
    /// The worker is connected, or the check usable.
    ACTIVE = "Active";
    /// The kubeconfig cannot be loaded.
    BAD_KUBE_CONFIG = "BadKubeConfig";
    /// The kubeconfig is not safe to use.
    INSECURE_KUBE_CONFIG = "InsecureKubeConfig";
    /// The ClusterProfile cannot be used.
    BAD_CLUSTER_PROFILE = "BadClusterProfile";
    /// What the ClusterProfile's plugin gave is not safe to use.
    BAD_REST_CONFIG = "BadRestConfig";
    /// The quota of a ClusterQueue is the sum of its workers'.
    QUOTA_AUTOMATED = "QuotaAutomated";
    /// The MultiKueueConfig of a ClusterQueue does not ask for it.
    NOT_REQUESTED = "NotRequested";
    /// The quota of a ClusterQueue cannot be the sum of its workers'.
    UNSUPPORTED_CONFIGURATION = "UnsupportedConfiguration";
    /// ClusterProfiles are switched off.
    CLUSTER_PROFILE_DISABLED = "MultiKueueClusterProfileFeatureDisabled";
    /// The worker cannot be reached.
    CLIENT_CONNECTION_FAILED = "ClientConnectionFailed";
    /// The cluster is registered under another name, too.
    CLUSTER_ALREADY_REGISTERED = "ClusterAlreadyRegistered";
    /// Another cluster answers than the one that work is recorded on.
    CLUSTER_CHANGED = "ClusterChanged";
    /// Some workers of a check are not active.
    SOME_ACTIVE_CLUSTERS = "SomeActiveClusters";
    /// No worker of a check is active.
    NO_USABLE_CLUSTERS = "NoUsableClusters";
    /// A job was suspended because its remote copy has disappeared.
    MULTI_KUEUE_ADAPTER = "MultiKueueAdapter";
    /// The parameters of a check cannot be loaded.
    BAD_CONFIG = "BadConfig";
    /// The parameters of a provisioning check name no config that exists.
    BAD_PARAMETERS_REF = "BadParametersRef";
    /// The cluster does not serve ProvisioningRequests, or forbids them.
    PROVISIONING_REQUESTS_UNAVAILABLE = "ProvisioningRequestsUnavailable";
    /// Of an event: a Workload asks for room.
    PROVISIONING_REQUEST_CREATED = "ProvisioningRequestCreated";
    /// Of an event: a request, or the template of its pods, cannot be created.
    FAILED_CREATE = "FailedCreate";
    /// Of an event: a check has another state.
    ADMISSION_CHECK_UPDATED = "AdmissionCheckUpdated";
    /// Of an event: what would make a pending Workload admissible.
    ADMISSION_EXPLAINED = "AdmissionExplained";
    /// Of a metric: an eviction for a reason that is not in [`EVICTIONS`].
    OTHER = "Other";
}

/// Reasons of evictions, with the causes of a deactivation.
pub const EVICTIONS: [&str; 16] = [
    PREEMPTED,
    PODS_READY_TIMEOUT,
    ADMISSION_CHECK,
    CLUSTER_QUEUE_STOPPED,
    LOCAL_QUEUE_STOPPED,
    NODE_FAILURES,
    DEACTIVATED,
    FLAVOR_MIGRATION,
    VARIANT_EVICTED,
    EVICTED_ON_MANAGER_CLUSTER,
    FENCED,
    UNSCHEDULABLE,
    PODS_REFUSED,
    PROVISIONING_FAILED,
    REQUEUING_LIMIT_EXCEEDED,
    MAXIMUM_EXECUTION_TIME_EXCEEDED,
];
