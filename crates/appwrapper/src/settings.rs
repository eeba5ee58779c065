//! What an administrator may set for all AppWrappers.
//!
//! Source: docs/reference/appwrapper.md §4, §6.

use std::time::Duration;

/// Settings of the operator. The default is that of the official one, release 1.2.
#[derive(Clone, Debug)]
pub struct WrapperSettings {
    /// The scheduler of pods that name none.
    pub scheduler_name: Option<String>,
    /// The LocalQueue of AppWrappers that name none.
    pub default_queue_name: Option<String>,
    /// Whether the user of an AppWrapper must be allowed to make its components.
    pub user_rbac_check: bool,
    /// Grace periods and retries.
    pub fault_tolerance: FaultTolerance,
    /// Whether pods keep away from nodes that Autopilot marked.
    pub injects_anti_affinities: bool,
    /// Whether pods leave nodes that Autopilot evicts.
    pub monitors_nodes: bool,
    /// Resources of the pods that both is about.
    pub autopilot_resources: Vec<String>,
    /// The weight with which pods avoid nodes with a warning.
    pub autopilot_weight: i64,
}

/// Grace periods and retries, which annotations of an AppWrapper may replace.
#[derive(Clone, Copy, Debug)]
pub struct FaultTolerance {
    /// Time for all pods to exist.
    pub admission_grace: Duration,
    /// Time for all pods to be ready.
    pub warmup_grace: Duration,
    /// Time for a failed pod to be replaced.
    pub failure_grace: Duration,
    /// Time between the removal of objects and their next creation.
    pub reset_pause: Duration,
    /// How often objects are made again.
    pub retry_limit: i32,
    /// Time after which a deletion is forced.
    pub forceful_deletion_grace: Duration,
    /// The most that an annotation can ask for.
    pub grace_ceiling: Duration,
    /// How long objects stay after a success, at most.
    pub success_ttl: Duration,
}

impl Default for WrapperSettings {
    fn default() -> Self {
        Self {
            scheduler_name: None,
            default_queue_name: None,
            user_rbac_check: true,
            fault_tolerance: FaultTolerance::default(),
            injects_anti_affinities: true,
            monitors_nodes: true,
            autopilot_resources: vec!["nvidia.com/gpu".to_owned()],
            autopilot_weight: 50,
        }
    }
}

impl Default for FaultTolerance {
    fn default() -> Self {
        Self {
            admission_grace: Duration::from_secs(60),
            warmup_grace: Duration::from_secs(5 * 60),
            failure_grace: Duration::from_secs(60),
            reset_pause: Duration::from_secs(90),
            retry_limit: 3,
            forceful_deletion_grace: Duration::from_secs(10 * 60),
            grace_ceiling: Duration::from_secs(24 * 3600),
            success_ttl: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
