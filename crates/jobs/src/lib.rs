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
//!     │    start, stop   admitted_infos ──> pod_set_info
//!     └─ dispatch        remote_objects ──> clone_assignment
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
//! | What do pods get at a start? | [`admitted_infos`], [`pod_set_info`] |
//! | Which taints do the pods tolerate? | [`pod_tolerations`] |
//! | What is a pod, and a group of pods? | [`pods`] |
//! | What is a set of replicas, each with a Workload? | [`replicas`], [`leader_worker_set`] |
//! | Which domain does a gated pod get? | [`topology_ungater`] |
//! | Which gated pods of an elastic job start? | [`elastic_ungater`] |
//! | Which roles and webhooks do kinds need? | [`manifests`] |
//! | What becomes of a copy when its original is lost? | [`rebuilt`] |
//! | Which kinds are only copied to workers? | [`mirrored`] |
//! | What of the status of a copy is copied? | [`bounded_status`] |
//! | What is created on a worker, and changed there? | [`remote_objects`], [`clone_assignment`], [`set_copies`], [`elastic_copies`] |
//! | What is one job, whatever its kind? | `job_object`, `generic_job` |
//! | Which checks of webhooks has a kind? | `job_checks` |
//! | Which gates and settings do kinds obey? | `job_gates`, `elastic_job_gate` |
//! | How are fields found, kept and read? | `pointer`, `stored_fields`, `nulls` |
//! | How many pods does a pod set have? | `pod_counts`, `group_sizes` |
//! | What else do pod templates hold? | `container_env`, `node_affinity`, `template_metadata` |
//! | Which metadata is for controllers only? | `reserved_keys` |
//! | Does a reservation account for a pod? | `reservation_owners` |
//!
//! Objects are inputs, steps and changed objects are results; the caller reads and writes.

pub mod admitted_infos;
pub mod ancestor_search;
pub mod bounded_status;
pub mod clone_assignment;
pub mod construct_workload;
pub mod container_env;
pub mod declared;
pub mod defaulting;
pub mod elastic_copies;
pub mod elastic_job_gate;
pub mod elastic_ungater;
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
pub mod mirrored;
mod node_affinity;
pub mod nulls;
pub mod pod_counts;
pub mod pod_set_info;
pub mod pod_sets_problem;
pub mod pod_tolerations;
pub mod pods;
pub mod pointer;
pub mod prebuilt;
pub mod rebuilt;
pub mod reconcile;
pub mod remote_objects;
pub mod replicas;
pub mod reservation_owners;
pub mod reserved_keys;
pub mod set_copies;
mod stored_fields;
mod template_metadata;
pub mod topology_request;
pub mod topology_ungater;
pub mod unreadable_status;
pub mod validate;
pub mod workload_name;

use crds::go_parse;

pub use generic_job::{GenericJob, StopWrite};
pub use job::Job;
pub use job_gates::JobGates;
pub use job_object::JobObject;
pub use kind::{Gvk, Kind};
pub use kinds::Kinds;
pub use pods::Pod;
