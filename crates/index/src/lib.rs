//! Conversion of API objects to inputs of the engine and of dispatch, and of decisions to statuses.
//!
//! * [`Index`] takes objects: one method per kind, which returns the engine's events. It is composed of tables, each of which
//!   owns the fields of its kinds that later objects are read against (flavors, checks, queues, LimitRanges), and answers
//!   questions about queues.
//! * [`status`] takes decisions: each transition of a Workload is a function from one status to the next.
//! * [`gauges`] are the numbers of queues and Cohorts for metrics.
//! * [`local_queue_usage`] reads and writes what LocalQueues consumed under admission fair sharing.
//! * [`queue_status`] counts the Workloads of queues, [`capacity_report`] reads the report of a worker.
//!
//! Strings and options end here: the engine gets ids and integers. Nothing here reads a clock, waits or writes, and
//! no hash order decides an outcome.

mod active_condition;
mod admission_check;
mod agent_mode_queue;
mod amount;
mod capacity_report;
mod cluster_affinity;
mod cluster_queue;
mod config;
mod entered_objects;
mod epoch;
mod exceeded_requests;
mod flavor_info;
pub mod gauges;
mod inactive_queue;
mod index;
mod indexed_objects;
mod local_queue;
pub mod local_queue_usage;
mod manager_quota;
mod metric_labels;
mod namespace;
mod node;
mod node_capacity;
mod questions;
pub mod queue_status;
mod quota_report;
mod report_names;
mod requests;
mod resource_flavor;
mod resource_groups;
mod selectors;
pub mod status;
mod time;
mod variant_rules;
mod workload;

pub use crate::active_condition::QueueActiveCondition;
pub use crate::capacity_report::{OversizedReport, capacity_report, job_gvk};
pub use crate::cluster_queue::has_usage_based_admission;
pub use crate::config::{AdmissionMode, IndexConfig, InputRetention, ResourceTransformation};
pub use crate::epoch::epoch;
pub use crate::flavor_info::{FlavorInfo, assigned_pod_set};
pub use crate::inactive_queue::GATED_BY;
pub use crate::index::Index;
pub use crate::manager_quota::{
    ResourceTotals, UnsupportedQuota, WorkerQuota, manager_quota, node_totals, nominal_totals,
    only_flavor, sum_totals,
};
pub use crate::metric_labels::{MetadataKey, WorkloadLabelRule, WorkloadLabelRules};
pub use crate::namespace::AffectedWorkloads;
pub use crate::node::NodeWithUsage;
pub use crate::node_capacity::{
    allocatable_amount, pod_requests, quantity, selects, taints, tolerates,
};
pub use crate::quota_report::quota_report;
pub use crate::report_names::AddedNames;
pub use crate::resource_flavor::bound_clusters;
pub use crate::variant_rules::VariantRules;
pub use crate::workload::{FinishedRun, finished_run, job_kind, pending_order, run_time_group};
