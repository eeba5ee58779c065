//! Settings of the index: what of the configuration file and the feature gates changes what objects mean.
//!
//! Source: docs/reference/kueue.md §2.7, §2.8, §3.2, §6.4. Defaults are upstream's.

use crds::quantity::Quantity;

/// Whether the input of a transformation is counted itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InputRetention {
    /// It is.
    #[default]
    Retain,
    /// It is not.
    Replace,
}

/// A resource that is counted as others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceTransformation {
    /// The resource.
    pub input: String,
    /// Whether it is counted itself, too.
    pub strategy: InputRetention,
    /// A resource whose amount multiplies the outputs.
    pub multiply_by: Option<String>,
    /// Amounts for one unit of the input.
    pub outputs: Vec<(String, Quantity)>,
}

/// Settings of one index.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "feature gates are independent switches")]
pub struct IndexConfig {
    /// Resources whose names begin so are not counted.
    pub exclude_prefixes: Vec<String>,
    /// Resources counted as others.
    pub transformations: Vec<ResourceTransformation>,
    /// Resources that no quota of the queue names are not counted, instead of keeping the Workload out.
    pub ignore_uncovered_resources: bool,
    /// Workloads evicted for pods that were not ready queue by the time of the eviction, not of their creation.
    pub eviction_timestamp: bool,
    /// Gate PartialAdmission.
    pub partial_admission: bool,
    /// Gate PriorityBoost.
    pub priority_boost: bool,
    /// Gate PrioritySortingWithinCohort. Without it whoever was preempted for a borrower queues behind it.
    pub priority_sorting: bool,
    /// Gate ConcurrentAdmission: Workloads whose variants are tried are not queued themselves.
    pub concurrent_admission: bool,
    /// Gate AdmissionGatedBy.
    pub admission_gated_by: bool,
    /// A worker without queues: every Workload belongs to one that is made up (docs/reference/dispatch.md §4).
    pub agent_mode: bool,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self {
            exclude_prefixes: Vec::new(),
            transformations: Vec::new(),
            ignore_uncovered_resources: false,
            eviction_timestamp: true,
            partial_admission: true,
            priority_boost: false,
            priority_sorting: true,
            concurrent_admission: false,
            admission_gated_by: true,
            agent_mode: false,
        }
    }
}
