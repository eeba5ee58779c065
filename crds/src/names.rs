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
    /// API group of the pods and logs of Workloads.
    SLUICE_VISIBILITY_GROUP = "visibility.sluice.dev";
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
    /// The generated check of a clone for which an agent asks an autoscaler.
    AGENT_PROVISIONING_CHECK = "sluice-provisioning";
    /// The ConfigMap of the manager's incarnation.
    INCARNATION_CONFIG_MAP = "sluice-incarnation";
    /// Field manager of `sluicectl`, and value of the label `managed-by` of what `sluicectl join` makes.
    SLUICECTL = "sluicectl";
    /// `execution` of a DispatchPolicy, and the annotation of the same meaning on a Workload.
    EXACTLY_ONCE = "ExactlyOnce";
    /// The other value of both.
    KEEP_RUNNING = "KeepRunning";
    /// The cluster with the checkpoint of a job: it is not considered,
    CHECKPOINT_ANYWHERE = "anywhere";
    /// it is taken before others with room,
    CHECKPOINT_PREFERRED = "preferred";
    /// or no other one is taken.
    CHECKPOINT_REQUIRED = "required";
    /// The Lease in which an agent writes beats.
    AGENT_LEASE = "sluice-agent";
    /// Start of the name of the Lease by which a manager grants; its origin follows.
    HUB_LEASE_PREFIX = "sluice-hub-";
    /// Value of a metric label that comes from a Workload, in place of every value that is not tracked.
    UNTRACKED_METRIC_VALUE = "kueue.x-k8s.io/_UNTRACKED_VALUE_";
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
        /// How the names of the controllers of jobs end.
        OF_JOBS = "-kueue-controller";
    }

    /// The controller of a kind of jobs, by the name of its integration.
    #[must_use]
    pub fn of_framework(framework: &str) -> String {
        format!("{framework}{OF_JOBS}")
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
        /// On pods with a topology assignment, from versions of Kueue before v0.14.
        TAS = "kueue.x-k8s.io/tas";
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

/// Keys of the ConfigMap [`INCARNATION_CONFIG_MAP`] (docs/reference/dispatch.md §6).
pub mod incarnation {
    names! {
        /// The number of the incarnation.
        NUMBER = "incarnation";
        /// The term of the leader.
        TERM = "term";
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
        /// The message of a check without a usable config.
        CHECK_INACTIVE = "the check is not active";
        /// The message of a check of pods that need no request.
        NO_REQUEST_NEEDED = "the provisioning request is not needed";
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
        /// Sizes of the groups of a RayCluster, which other versions of Kueue write to Workloads.
        RAYCLUSTER_PODSET_REPLICA_SIZES = "kueue.x-k8s.io/raycluster-podset-replica-sizes";
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
        /// `true` on a MultiKueueCluster: it is drained (docs/reference/dispatch.md §3).
        DRAIN = "sluice.dev/drain";
        /// From when until when such a drain holds, as `FROM/UNTIL`.
        DRAIN_WINDOW = "sluice.dev/drain-window";
        /// When such a drain withdraws running work: a time, or a duration from the beginning of the window.
        DRAIN_DEADLINE = "sluice.dev/drain-deadline";
        /// The cluster that a MultiKueueCluster leads to, by the uid of its namespace kube-system.
        CLUSTER_UID = "sluice.dev/cluster-uid";
        /// The manager cluster that `sluicectl join` made an object of a worker for, by the uid of its namespace kube-system.
        JOINED_HUB = "sluice.dev/joined-hub";
        /// The MultiKueueConfigs that `sluicectl join` added a MultiKueueCluster to, comma separated.
        JOINED_CONFIGS = "sluice.dev/joined-configs";
        /// The MultiKueueCluster of a Secret that `sluicectl leave` is about to remove, on that Secret.
        LEAVING_CLUSTER = "sluice.dev/leaving-cluster";
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
        /// The guarantee under which a Workload is dispatched, if its worker is lost. On a job what its Workload gets.
        EXECUTION = "sluice.dev/execution";
        /// Label selector over clusters.
        AFFINITY = "sluice.dev/affinity";
        /// Label selector over clusters that are taken before others with room.
        PREFERRED_AFFINITY = "sluice.dev/preferred-affinity";
        /// The MultiKueueClusters that a ResourceFlavor is bound to, with commas between their names.
        CLUSTERS = "sluice.dev/clusters";
        /// Whether a job that is placed again goes to the cluster with its checkpoint: `anywhere`, `preferred` or `required`.
        CHECKPOINT = "sluice.dev/checkpoint";
        /// The cluster that a Workload was last withdrawn from, where the checkpoint of its job is.
        LAST_CLUSTER = "sluice.dev/last-cluster";
        /// The uid of the clone from which a job and its Workload are being rebuilt; the manager decides nothing about either.
        REBUILD = "sluice.dev/rebuild";
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
        /// The annotations of a MultiKueueCluster about its drain have no meaning.
        DRAIN_INVALID = "sluice.dev/DrainInvalid";
        /// A worker refuses a remote copy.
        REFUSED = "sluice.dev/Refused";
        /// Pods of a dispatched Workload cannot start.
        PODS_FAILING = "sluice.dev/PodsFailing";
    }
}

pub mod reasons;
