//! Names in the API: groups, labels, annotations, finalizers, gates, conditions and their reasons.
//!
//! All are Kueue's (docs/reference/kueue.md §2.1, §2.10; docs/reference/multikueue.md §1.2–1.6), except those under
//! `sluice.dev/` (docs/reference/dispatch.md).

/// Declares string constants with their doc.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {$(
        $(#[$doc])*
        pub const $name: &str = $value;
    )*};
}

names! {
    /// Group of Kueue's kinds.
    KUEUE_GROUP = "kueue.x-k8s.io";
    /// Group of the aggregated API of pending Workloads.
    VISIBILITY_GROUP = "visibility.kueue.x-k8s.io";
    /// Group of our kinds.
    SLUICE_GROUP = "sluice.dev";
    /// Group of PriorityClass.
    SCHEDULING_GROUP = "scheduling.k8s.io";
    /// v1beta1's name for a class that is a WorkloadPriorityClass.
    WORKLOAD_PRIORITY_CLASS_SOURCE = "kueue.x-k8s.io/workloadpriorityclass";
    /// v1beta1's name for a class that is a PriorityClass.
    POD_PRIORITY_CLASS_SOURCE = "scheduling.k8s.io/priorityclass";
    /// Finalizer of Workloads, ClusterQueues, ResourceFlavors, AdmissionChecks and Topologies.
    RESOURCE_IN_USE_FINALIZER = "kueue.x-k8s.io/resource-in-use";
    /// Label and finalizer of pods that are managed; the label's value is `true`.
    MANAGED = "kueue.x-k8s.io/managed";
    /// The LocalQueue that is used where none is named.
    DEFAULT_LOCAL_QUEUE = "default";
    /// `controllerName` of the AdmissionCheck that dispatches to workers.
    MULTI_KUEUE_CONTROLLER = "kueue.x-k8s.io/multikueue";
    /// `controllerName` of the AdmissionCheck that creates ProvisioningRequests.
    PROVISIONING_CONTROLLER = "kueue.x-k8s.io/provisioning-request";
    /// Field manager of writes by admission.
    ADMISSION_MANAGER = "kueue-admission";
    /// Field manager of reclaimable pods.
    RECLAIMABLE_PODS_MANAGER = "kueue-reclaimable-pods";
    /// `managedBy` of a Job that Kubernetes itself runs.
    JOB_CONTROLLER = "kubernetes.io/job-controller";
    /// Label of the index of a pod of an Indexed Job; also an annotation.
    JOB_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index";
    /// The WorkloadPriorityClass that is used where none is named.
    DEFAULT_WORKLOAD_PRIORITY_CLASS = "default";
    /// The generated queue, and flavor, of an agent-mode worker.
    THIN_QUEUE = "sluice-thin";
    /// The ConfigMap of the manager's incarnation.
    INCARNATION_CONFIG_MAP = "sluice-incarnation";
    /// Field manager of `sluicectl`, and value of the label `managed-by` of what `sluicectl join` makes.
    SLUICECTL = "sluicectl";
    /// `execution` of a DispatchPolicy, and the annotation of the same meaning on a Workload.
    EXACTLY_ONCE = "ExactlyOnce";
    /// The Lease in which an agent writes beats.
    AGENT_LEASE = "sluice-agent";
    /// Start of the name of the Lease by which a manager grants; its origin follows.
    HUB_LEASE_PREFIX = "sluice-hub-";
    /// The lease of the leader.
    LEADER_LEASE = "c1f6bfd2.kueue.x-k8s.io";
}

/// Reporting controllers of Events (docs/reference/kueue.md §6.3).
pub mod reporters {
    names! {
        /// The scheduler.
        SCHEDULER = "kueue-admission";
        /// The controller of Workloads.
        WORKLOAD_CONTROLLER = "kueue-workload-controller";
        /// The controller of provisioning checks.
        PROVISIONING = "kueue-provisioning-request-controller";
        /// The controller of pods that do not end.
        POD_TERMINATION_CONTROLLER = "kueue-pod-termination-controller";
        /// The controller of concurrent admission.
        CONCURRENT_ADMISSION = "concurrent-admission-controller";
    }

    /// The controller of a kind of jobs, by the name of its integration.
    #[must_use]
    pub fn of_framework(framework: &str) -> String {
        format!("{framework}-kueue-controller")
    }
}

/// Labels.
pub mod labels {
    names! {
        /// Kubernetes' label of a single node.
        HOSTNAME = "kubernetes.io/hostname";
        /// The LocalQueue of a job or pod.
        QUEUE_NAME = "kueue.x-k8s.io/queue-name";
        /// The WorkloadPriorityClass of a job.
        PRIORITY_CLASS = "kueue.x-k8s.io/priority-class";
        /// Longest run time of a job.
        MAX_EXEC_TIME_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds";
        /// The prebuilt Workload of a job; also an annotation.
        PREBUILT_WORKLOAD_NAME = "kueue.x-k8s.io/prebuilt-workload-name";
        /// UID of the owner of a Workload.
        JOB_UID = "kueue.x-k8s.io/job-uid";
        /// The pod set of a pod.
        POD_SET = "kueue.x-k8s.io/podset";
        /// The ClusterQueue of a pod.
        CLUSTER_QUEUE_NAME = "kueue.x-k8s.io/cluster-queue-name";
        /// The LocalQueue of a pod.
        LOCAL_QUEUE_NAME = "kueue.x-k8s.io/local-queue-name";
        /// The group of a pod; also an annotation.
        POD_GROUP_NAME = "kueue.x-k8s.io/pod-group-name";
        /// The rank of a pod in its group.
        POD_GROUP_POD_INDEX = "kueue.x-k8s.io/pod-group-pod-index";
        /// A Workload with variants.
        CONCURRENT_ADMISSION_PARENT = "kueue.x-k8s.io/concurrent-admission-parent";
        /// The manager that an object on a worker belongs to.
        MULTI_KUEUE_ORIGIN = "kueue.x-k8s.io/multikueue-origin";
        /// The tool that manages an object; the value is that of Kubernetes' recommended labels.
        MANAGED_BY = "app.kubernetes.io/managed-by";
        /// `true` on the Leases between managers and agents.
        GRANTS = "sluice.dev/grants";
        /// Pods on a worker that belong to a dispatched Workload.
        MULTI_KUEUE_WORKER_POD = "kueue.x-k8s.io/multikueue-worker-workload-pod";
    }
}

/// States of admission checks.
pub mod check_states {
    names! {
        /// Not decided yet.
        PENDING = "Pending";
        /// Passed.
        READY = "Ready";
        /// Asks for an eviction and another attempt.
        RETRY = "Retry";
        /// Ends the attempts.
        REJECTED = "Rejected";
    }
}

/// Condition types of ProvisioningRequests.
pub mod provisioning {
    names! {
        /// An autoscaler works on the request.
        ACCEPTED = "Accepted";
        /// The room is there.
        PROVISIONED = "Provisioned";
        /// The room could not be provided.
        FAILED = "Failed";
        /// The room is not kept for the pods any more.
        BOOKING_EXPIRED = "BookingExpired";
        /// The room is gone.
        CAPACITY_REVOKED = "CapacityRevoked";
    }
}

/// Annotations.
pub mod annotations {
    names! {
        /// Kind of the owner of a Workload without owner reference.
        JOB_OWNER_GVK = "kueue.x-k8s.io/job-owner-gvk";
        /// Name of the owner of a Workload without owner reference.
        JOB_OWNER_NAME = "kueue.x-k8s.io/job-owner-name";
        /// The Workload that admits a pod.
        WORKLOAD = "kueue.x-k8s.io/workload";
        /// The pod may be deleted by force when its node is unreachable, if it is `true`.
        SAFE_TO_FORCEFULLY_DELETE = "kueue.x-k8s.io/safe-to-forcefully-delete";
        /// The first of a chain of slices.
        WORKLOAD_SLICE_NAME = "kueue.x-k8s.io/workload-slice-name";
        /// The slice that a Workload replaces, as `namespace/name`.
        WORKLOAD_SLICE_REPLACEMENT_FOR = "kueue.x-k8s.io/workload-slice-replacement-for";
        /// Generation of the RayCluster that an elastic RayJob or RayService has its size from; empty without one.
        RAYCLUSTER_GENERATION = "kueue.x-k8s.io/raycluster-generation";
        /// Start of the annotations that are parameters of ProvisioningRequests.
        PROVISIONING_PREFIX = "provreq.kueue.x-k8s.io/";
        /// The ProvisioningRequest that made the room of a pod.
        CONSUME_PROVISIONING_REQUEST = "autoscaling.x-k8s.io/consume-provisioning-request";
        /// The class of that request.
        PROVISIONING_CLASS_NAME = "autoscaling.x-k8s.io/provisioning-class-name";
        /// Opts a job in to slices.
        ELASTIC_JOB = "kueue.x-k8s.io/elastic-job";
        /// Gates that keep a Workload from queueing, comma separated.
        ADMISSION_GATED_BY = "kueue.x-k8s.io/admission-gated-by";
        /// Number added to the priority of a Workload.
        PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost";
        /// Flavors that a variant may use, comma separated.
        ALLOWED_RESOURCE_FLAVORS = "kueue.x-k8s.io/workload-allowed-resource-flavors";
        /// Level that must hold all pods.
        POD_SET_REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology";
        /// Level that should hold all pods.
        POD_SET_PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology";
        /// Any node will do, but the scheduler chooses it.
        POD_SET_UNCONSTRAINED_TOPOLOGY = "kueue.x-k8s.io/podset-unconstrained-topology";
        /// Level that holds a whole slice.
        POD_SET_SLICE_REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-slice-required-topology";
        /// Pods of a slice.
        POD_SET_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size";
        /// Layers of slices, as JSON.
        POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS =
            "kueue.x-k8s.io/podset-slice-required-topology-constraints";
        /// Pod sets of one name share flavors and domain.
        POD_SET_GROUP_NAME = "kueue.x-k8s.io/podset-group-name";
        /// Number of pods of a group.
        POD_GROUP_TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count";
        /// Admits a group before all its pods exist.
        POD_GROUP_FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission";
        /// A group that serves rather than finishes.
        POD_GROUP_SERVING = "kueue.x-k8s.io/pod-group-serving";
        /// Whether a failed pod of a group may be replaced.
        RETRIABLE_IN_GROUP = "kueue.x-k8s.io/retriable-in-group";
        /// The role of a pod in its pod group.
        ROLE_HASH = "kueue.x-k8s.io/role-hash";
        /// Label that holds the rank of a pod.
        POD_GROUP_POD_INDEX_LABEL = "kueue.x-k8s.io/pod-group-pod-index-label";
        /// Offset of the ranks.
        POD_INDEX_OFFSET = "kueue.x-k8s.io/pod-index-offset";
        /// The kind that suspends a pod on Kueue's behalf.
        POD_SUSPENDING_PARENT = "kueue.x-k8s.io/pod-suspending-parent";
        /// A Workload that is a pod group.
        IS_GROUP_WORKLOAD = "kueue.x-k8s.io/is-group-workload";
        /// Index of a Workload among those of one job.
        COMPONENT_WORKLOAD_INDEX = "kueue.x-k8s.io/component-workload-index";
        /// Fewest parallel pods of a Job.
        JOB_MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism";
        /// Completions of a Job follow its parallelism.
        JOB_COMPLETIONS_EQUAL_PARALLELISM = "kueue.x-k8s.io/job-completions-equal-parallelism";
        /// A Job that is being stopped.
        STOPPING = "kueue.x-k8s.io/stopping";
        /// UID of the object on the manager.
        MULTI_KUEUE_ORIGIN_UID = "kueue.x-k8s.io/multikueue-origin-uid";
        /// Fences old copies of a Workload.
        EPOCH = "sluice.dev/epoch";
        /// The incarnation of the manager that created a copy.
        INCARNATION = "sluice.dev/incarnation";
        /// The term of the leader that created a copy, or that took the manager's Workload over.
        TERM = "sluice.dev/term";
        /// The resourceVersion of the manager's Workload when a copy was created.
        HUB_VERSION = "sluice.dev/hub-version";
        /// The uid of the manager's Workload.
        WORKLOAD_UID = "sluice.dev/workload-uid";
        /// The DispatchPolicy of a MultiKueueConfig.
        POLICY = "sluice.dev/policy";
        /// Node labels and tolerations of each pod set on a thin worker.
        ASSIGNMENT = "sluice.dev/assignment";
        /// `confirmed` on a MultiKueueCluster allows the deletion of objects on the worker that the manager does not know.
        CLEANUP = "sluice.dev/cleanup";
        /// The cluster that a MultiKueueCluster leads to, by the uid of its namespace kube-system.
        CLUSTER_UID = "sluice.dev/cluster-uid";
        /// The manager cluster that `sluicectl join` made an object of a worker for, by the uid of its namespace kube-system.
        JOINED_HUB = "sluice.dev/joined-hub";
        /// The MultiKueueConfigs that `sluicectl join` added a MultiKueueCluster to, comma separated.
        JOINED_CONFIGS = "sluice.dev/joined-configs";
        /// When the token in the kubeconfig of a MultiKueueCluster expires.
        TOKEN_EXPIRES = "sluice.dev/token-expires";
        /// The number of the last beat, on the Lease of an agent.
        BEAT = "sluice.dev/beat";
        /// The beat that a manager has seen, as `boot/number`, on its Lease.
        ECHO = "sluice.dev/echo";
        /// The session of the worker, on the Lease of a manager.
        SESSION = "sluice.dev/session";
        /// Session and term under which a copy may run, as `session/term`.
        LEASE_STAMP = "sluice.dev/lease";
        /// Session of the worker and term of the leader, as `session/term`, on a MultiKueueCluster.
        FENCE_RECORD = "sluice.dev/fence-record";
        /// The session of a lost worker of which a person has confirmed that nothing runs, on a MultiKueueCluster.
        FENCE = "sluice.dev/fence";
        /// The guarantee under which a Workload is dispatched, if its worker is lost.
        EXECUTION = "sluice.dev/execution";
        /// Label selector over clusters.
        AFFINITY = "sluice.dev/affinity";
    }
}

/// Scheduling gates of pods, and preemption gates of Workloads.
pub mod gates {
    names! {
        /// Keeps a pod until its Workload is admitted.
        ADMISSION = "kueue.x-k8s.io/admission";
        /// Keeps a pod until it has a domain.
        TOPOLOGY = "kueue.x-k8s.io/topology";
        /// Keeps a pod of an elastic job until its slice is admitted.
        ELASTIC_JOB = "kueue.x-k8s.io/elastic-job";
        /// Keeps a clone from preempting until the manager lets it.
        MULTI_KUEUE = "kueue.x-k8s.io/multikueue";
        /// Keeps a variant from preempting until its turn.
        CONCURRENT_ADMISSION = "kueue.x-k8s.io/concurrent-admission";
    }
}

/// Dispatchers of a manager.
pub mod dispatchers {
    names! {
        /// Every worker at once.
        ALL_AT_ONCE = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once";
        /// A few workers at a time.
        INCREMENTAL = "kueue.x-k8s.io/multikueue-dispatcher-incremental";
        /// The only worker with enough free capacity.
        CAPACITY = "sluice.dev/capacity";
    }
}

/// Types of conditions.
pub mod conditions {
    names! {
        /// Of a pod: its assigned node takes it no more.
        TERMINATED_BY_KUEUE = "TerminatedByKueue";
        /// Of a pod: it was ended on an unreachable node.
        FAILURE_RECOVERY = "KueueFailureRecovery";
        /// Of a ClusterQueue: whether its quota follows its workers.
        MANAGER_QUOTA_AUTOMATION = "MultiKueueManagerQuotaAutomation";
        /// Quota is held.
        QUOTA_RESERVED = "QuotaReserved";
        /// Quota is held and all checks are ready.
        ADMITTED = "Admitted";
        /// All pods are ready, or were.
        PODS_READY = "PodsReady";
        /// The Workload must release its quota.
        EVICTED = "Evicted";
        /// The Workload is preempted.
        PREEMPTED = "Preempted";
        /// The Workload may queue again.
        REQUEUED = "Requeued";
        /// The Workload is about to be deactivated.
        DEACTIVATION_TARGET = "DeactivationTarget";
        /// The Workload is over.
        FINISHED = "Finished";
        /// A group waits for pods that replace failed ones.
        WAITING_FOR_REPLACEMENT_PODS = "WaitingForReplacementPods";
        /// The Workload would preempt if its gates were open.
        BLOCKED_ON_PREEMPTION_GATES = "BlockedOnPreemptionGates";
        /// A queue, check or cluster can be used.
        ACTIVE = "Active";
        /// The client certificate of a MultiKueueCluster expires soon, or has expired.
        CERTIFICATE_EXPIRING = "sluice.dev/CertificateExpiring";
        /// The token of a MultiKueueCluster expires soon, or has expired.
        TOKEN_EXPIRING = "sluice.dev/TokenExpiring";
        /// A worker refuses a remote copy.
        REFUSED = "sluice.dev/Refused";
        /// Pods of a dispatched Workload cannot start.
        PODS_FAILING = "sluice.dev/PodsFailing";
    }
}

/// Reasons of conditions and events.
pub mod reasons {
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
        /// An object that the pod sets of a job need is missing.
        NEEDED_OBJECT_MISSING = "NeededObjectMissing";
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
        /// A worker does not run jobs of this kind.
        KIND_NOT_ALLOWED = "KindNotAllowed";
        /// The grant of a clone has ended: it is stopped and never starts again.
        FENCED = "Fenced";
        /// No node accepts a pod: on pods set by the scheduler, on remote copies the reason of their eviction.
        UNSCHEDULABLE = "Unschedulable";
        /// The API server of a worker refuses pods of a remote copy: the reason of its eviction.
        PODS_REFUSED = "PodsRefused";
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
        /// Of an event: a removed worker still has objects of a Workload.
        LEFT_BEHIND = "LeftBehind";
        /// Of an event: the job has succeeded on a worker in an earlier dispatch.
        RESULT_ADOPTED = "ResultAdopted";
        /// Of an event: a worker does not take the smaller size of an elastic job.
        RESIZE_REFUSED = "ResizeRefused";
        /// Of an event: a dispatched elastic job does not get a larger size before its next start.
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
        /// Of an event: the members of a group make up no Workload.
        ERR_WORKLOAD_COMPOSE = "ErrWorkloadCompose";
        /// Of an event: a Workload with the name of a group is not the group's.
        WORKLOAD_NAME_CONFLICT = "WorkloadNameConflict";
        /// Of an event: a group has more pods than it needs.
        EXCESS_POD_DELETED = "ExcessPodDeleted";
        /// Of an event: a pod joined a group whose Workload exists.
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
        /// A job whose remote copy disappeared was suspended.
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
    }
}
