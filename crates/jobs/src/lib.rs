//! Job kinds, as pure functions of job objects and their Workloads (docs/reference/kueue.md §5.3, §7).
//!
//! ```text
//! kind (data) + job object ──> JobObject : GenericJob (`job` by code, `declared` by data)
//!     │
//!     ├─ webhooks        defaulting, validate, prebuilt
//!     │    facts         integrations ──> ancestor_search
//!     ├─ Workload        construct_workload, workload_name, topology_request
//!     │    match         equivalence
//!     ├─ reconcile       next steps of a job and its Workload; pods_ready
//!     │    start, stop   start: admitted_infos ──> pod_set_info
//!     └─ dispatch        dispatch: remote_objects ──> clone_assignment
//! ```
//!
//! | question | module |
//! |---|---|
//! | Which job kinds exist, which are managed? | [`kinds`], [`integrations`] |
//! | What is a kind, and what does it declare? | [`Kind`], [`declared`] |
//! | What does every job answer? | [`GenericJob`] |
//! | What do webhooks set and refuse? | [`defaulting`], [`validate`] |
//! | Which other objects do pod sets need? | [`lookups`] |
//! | How is a Workload built and named? | [`construct_workload`], [`workload_name`] |
//! | Does a Workload match its job? | [`equivalence`] |
//! | What is the next step? | [`reconcile`] |
//! | Which fields have a wrong type? | [`expected_type`], [`unreadable_status`] |
//! | Which pod sets can no Workload have? | [`pod_sets_problem`] |
//! | What do pods get at a start, and what do they tolerate? | [`start`] |
//! | What is a pod, and a group of pods? | [`pods`] |
//! | What is a set of replicas, each with a Workload? | [`replicas`], [`leader_worker_set`] |
//! | Which domain does a gated pod get? | [`topology_ungater`] |
//! | What size does an elastic job have, and which of its pods start? | [`elastic`] |
//! | Which roles and webhooks do kinds need? | [`manifests`] |
//! | What is created on a worker, and changed there? | [`dispatch`] |
//! | What is one job, whatever its kind? | `job_object`, `generic_job` |
//! | Which checks of the webhook does a kind have? | `job_checks` |
//! | Which gates and settings do kinds obey? | `job_gates` |
//! | How are fields found, kept and read? | `pointer`, `stored_fields`, `nulls` |
//! | How many pods does a pod set have? | `pod_counts`, `group_sizes` |
//! | What else do pod templates hold? | `container_env`, `template_metadata` |
//! | Which metadata is for controllers only? | `reserved_keys` |
//! | Does a reservation account for a pod? | `reservation_owners` |
//!
//! Objects are inputs, steps and changed objects are results; the caller reads and writes.

pub mod ancestor_search;
pub mod construct_workload;
pub mod container_env;
pub mod declared;
pub mod defaulting;
pub mod dispatch;
pub mod elastic;
pub mod equivalence;
pub mod expected_type;
pub mod generic_job;
pub mod group_sizes;
pub mod integrations;
pub mod job;
pub mod job_checks;
pub mod job_gates;
mod job_object;
pub mod kind;
pub mod kinds;
pub mod leader_worker_set;
pub mod lookups;
pub mod manifests;
pub mod nulls;
pub mod pod_counts;
pub mod pod_sets_problem;
pub mod pods;
pub mod pointer;
pub mod prebuilt;
pub mod reconcile;
pub mod replicas;
pub mod reservation_owners;
pub mod reserved_keys;
pub mod start;
mod stored_fields;
mod template_metadata;
pub mod topology_request;
pub mod topology_ungater;
pub mod unreadable_status;
pub mod validate;
pub mod workload_name;

use crds::go_parse;

pub use dispatch::{
    bounded_status, clone_assignment, mirrored, rebuilt, remote_objects, set_copies,
};
pub use elastic::{elastic_copies, elastic_ungater};
pub use generic_job::{GenericJob, StopWrite};
pub use job::Job;
pub use job_gates::JobGates;
pub use job_object::JobObject;
pub use kind::{Gvk, Kind};
pub use kinds::Kinds;
pub use pods::Pod;
pub use start::{admitted_infos, pod_set_info, pod_tolerations};
