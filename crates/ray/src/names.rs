//! Labels, annotations, finalizers, conditions and reasons of `ray.io`.
//!
//! Source: docs/reference/ray.md §1, §3, §7.

/// The controller that this crate stands in for.
pub const BUILT_IN_CONTROLLER: &str = "ray.io/kuberay-operator";
/// The value of the label `app.kubernetes.io/created-by`.
pub const CREATED_BY: &str = "kuberay-operator";
/// The value of the label `app.kubernetes.io/name`.
pub const APPLICATION: &str = "kuberay";

/// Label: the name of the application.
pub const APP_NAME_LABEL: &str = "app.kubernetes.io/name";
/// Label: the program that made an object.
pub const CREATED_BY_LABEL: &str = "app.kubernetes.io/created-by";
/// Label: the RayCluster.
pub const CLUSTER_LABEL: &str = "ray.io/cluster";
/// Label: `head`, `worker` or `redis-cleanup`.
pub const NODE_TYPE_LABEL: &str = "ray.io/node-type";
/// Label: the group of a pod.
pub const GROUP_LABEL: &str = "ray.io/group";
/// Label: the cluster and the type of the node.
pub const IDENTIFIER_LABEL: &str = "ray.io/identifier";
/// Label: pods of a cluster.
pub const IS_RAY_NODE_LABEL: &str = "ray.io/is-ray-node";
/// Label: whether a pod serves, or the RayService of a Service.
pub const SERVE_LABEL: &str = "ray.io/serve";
/// Label: the headless Service of a cluster's workers.
pub const HEADLESS_LABEL: &str = "ray.io/headless-worker-svc";
/// Label: the index of a pod's replica in its group.
pub const REPLICA_INDEX_LABEL: &str = "ray.io/worker-group-replica-index";
/// Label: the replica of a pod in a group with several hosts.
pub const REPLICA_NAME_LABEL: &str = "ray.io/worker-group-replica-name";
/// Label: the index of a pod in its replica.
pub const HOST_INDEX_LABEL: &str = "ray.io/replica-host-index";
/// Label: the kind of the object that a cluster was made for.
pub const ORIGIN_KIND_LABEL: &str = "ray.io/originated-from-crd";
/// Label: the object that a cluster was made for.
pub const ORIGIN_NAME_LABEL: &str = "ray.io/originated-from-cr-name";
/// Label: the submission mode of the RayJob of a cluster.
pub const SUBMISSION_MODE_LABEL: &str = "ray.io/job-submission-mode";

/// Annotation: whether the head's state is stored.
pub const FT_ENABLED: &str = "ray.io/ft-enabled";
/// Annotation: the prefix of the keys in the storage.
pub const STORAGE_NAMESPACE: &str = "ray.io/external-storage-namespace";
/// Annotation: seconds until a deleted cluster is let go without a clean-up.
pub const FT_DELETION_TIMEOUT: &str = "ray.io/gcs-ft-deletion-timeout";
/// Annotation: the command of Ray's container is left alone.
pub const OVERWRITE_COMMAND: &str = "ray.io/overwrite-container-cmd";
/// Annotation: the hash of the spec that a head was made from.
pub const RECREATE_HASH: &str = "ray.io/upgrade-strategy-recreate-hash";
/// Annotation: the version of the operator that made a head.
pub const OPERATOR_VERSION: &str = "ray.io/kuberay-version";
/// Annotation: the cluster gets a Service for its Serve applications.
pub const ENABLE_SERVE_SERVICE: &str = "ray.io/enable-serve-service";
/// Annotation: a head that was ready once is not made again.
pub const NO_HEAD_RESTART: &str = "ray.io/disable-provisioned-head-restart";
/// Annotation: the class of an Ingress.
pub const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Finalizer: keys in Redis are removed first.
pub const REDIS_FINALIZER: &str = "ray.io/gcs-ft-redis-cleanup-finalizer";

/// Annotation: the hash of the spec that a cluster of a RayService was made from.
pub const SPEC_HASH: &str = "ray.io/hash-without-replicas-and-workers-to-delete";
/// Annotation: the number of worker groups of that spec.
pub const GROUP_COUNT: &str = "ray.io/num-worker-groups";

/// Finalizer: the clusters of a RayService are removed first.
pub const SERVICE_FINALIZER: &str = "ray.io/rayservice-finalizer";
/// Finalizer: a job that runs in Ray is stopped first.
pub const JOB_FINALIZER: &str = "ray.io/rayjob-finalizer";

/// The type of upgrade that moves traffic step by step.
pub const INCREMENTAL_UPGRADE: &str = "NewClusterWithIncrementalUpgrade";

/// The container that submits a RayJob.
pub const SUBMITTER_CONTAINER: &str = "ray-job-submitter";

/// The container of a worker that waits for the head.
pub const WAIT_CONTAINER: &str = "wait-gcs-ready";

/// The group of the head.
pub const HEAD_GROUP: &str = "headgroup";

/// Condition: whether the head is ready.
pub const HEAD_POD_READY: &str = "HeadPodReady";
/// Condition: whether all pods were ready once.
pub const PROVISIONED: &str = "RayClusterProvisioned";
/// Condition: a pod could not be made or deleted.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";
/// Condition: pods are being removed.
pub const SUSPENDING: &str = "RayClusterSuspending";
/// Condition: pods are removed.
pub const SUSPENDED: &str = "RayClusterSuspended";

/// State: all pods were ready.
pub const STATE_READY: &str = "ready";
/// State: all pods are removed.
pub const STATE_SUSPENDED: &str = "suspended";

/// Annotation: the objects that secure a cluster have names with a hash.
pub const SECURITY_VERSION: &str = "ray.openshift.ai/version";
/// Annotation: what was added to a cluster, as `oauth`, `mtls`, both or `none`.
pub const SECURITY_ADDITIONS: &str = "sluice.dev/ray-security";
/// Label: the RayCluster that an object secures.
pub const SECURED_CLUSTER_LABEL: &str = "ray.openshift.ai/cluster-name";
/// Label: the namespace of the RayCluster that an object without a namespace secures.
pub const SECURED_NAMESPACE_LABEL: &str = "ray.openshift.ai/cluster-namespace";
/// Finalizer: the ClusterRoleBinding of a cluster's proxy is removed first.
pub const OAUTH_FINALIZER: &str = "ray.openshift.ai/oauth-finalizer";
/// The field manager of objects that secure a cluster. Hashes in their names begin with it.
pub const SECURITY_MANAGER: &str = "codeflare-raycluster-controller";

/// The name of the head's Service of a RayCluster, a RayJob or a RayService.
pub(crate) fn head_service_name(of: &str) -> String {
    format!("{of}-head-svc")
}

/// The name of the Gateway of a RayService with incremental upgrades.
pub(crate) fn gateway_name(of: &str) -> String {
    format!("{of}-gateway")
}

/// The name of the HTTPRoute of a RayService with incremental upgrades.
pub(crate) fn route_name(of: &str) -> String {
    format!("{of}-httproute")
}

/// The name of the Service for Serve applications of a RayCluster or a RayService.
pub(crate) fn serve_service_name(of: &str) -> String {
    format!("{of}-serve-svc")
}
