//! Labels, annotations, finalizers, phases, conditions and reasons of `workload.codeflare.dev`.
//!
//! Source: docs/reference/appwrapper.md §1, §4.

/// The controller that this crate stands in for.
pub const BUILT_IN_CONTROLLER: &str = "workload.codeflare.dev/appwrapper-controller";
/// Label: the AppWrapper of an object or a pod.
pub const WRAPPER_LABEL: &str = "workload.codeflare.dev/appwrapper";
/// Label: the user that made an AppWrapper.
pub const USER_LABEL: &str = "workload.codeflare.dev/user";
/// Label: the id of that user.
pub const USER_ID_LABEL: &str = "workload.codeflare.dev/userid";
/// Label: the LocalQueue.
pub const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Finalizer: objects are removed first.
pub const FINALIZER: &str = "workload.codeflare.dev/finalizer";
/// What annotations begin with.
pub const ANNOTATION_PREFIX: &str = "workload.codeflare.dev.appwrapper/";
/// Label of nodes: the health of their devices.
pub const AUTOPILOT_LABEL: &str = "autopilot.ibm.com/gpuhealth";

/// Phase: nothing is made.
pub const SUSPENDED: &str = "Suspended";
/// Phase: objects are being made.
pub const RESUMING: &str = "Resuming";
/// Phase: objects are made.
pub const RUNNING: &str = "Running";
/// Phase: objects are being removed, and made again afterwards.
pub const RESETTING: &str = "Resetting";
/// Phase: objects are being removed after `spec.suspend`.
pub const SUSPENDING: &str = "Suspending";
/// Phase: all pods succeeded.
pub const SUCCEEDED: &str = "Succeeded";
/// Phase: the AppWrapper failed.
pub const FAILED: &str = "Failed";
/// Phase: the AppWrapper is deleted.
pub const TERMINATING: &str = "Terminating";

/// Condition: resources are in use.
pub const QUOTA_RESERVED: &str = "QuotaReserved";
/// Condition: objects are there.
pub const RESOURCES_DEPLOYED: &str = "ResourcesDeployed";
/// Condition: enough pods run.
pub const PODS_READY: &str = "PodsReady";
/// Condition: something is wrong.
pub const UNHEALTHY: &str = "Unhealthy";
/// Condition: objects are being removed.
pub const DELETING_RESOURCES: &str = "DeletingResources";

/// Reason of a component: it is there.
pub const CREATED: &str = "ComponentCreatedSuccessfully";
/// Reason of a component: it could not be made.
pub const CREATION_ERRORED: &str = "ComponentCreationErrored";
/// Reason of a component: it is gone. The spelling is the API's.
pub const COMPONENT_DELETED: &str = "CompononetDeleted";

/// Reason of an Event of the agent alone: a component that was made cannot be read, and nothing is decided.
pub const COMPONENT_UNREADABLE: &str = "ComponentUnreadable";
