//! Job kinds, as pure functions of job objects and their Workloads (docs/reference/kueue.md §5.3, §7).
//!
//! ```text
//! job object ──> GenericJob (one file per kind: `job`)
//!     │
//!     ├─ webhooks        defaulting, validate, prebuilt
//!     │    facts         integrations ──> ancestor_search
//!     ├─ Workload        construct_workload, workload_name, topology_request
//!     │    match         equivalence
//!     ├─ reconcile       next steps of a job and its Workload; pods_ready
//!     │    start, stop   pod_sets_info ──> pod_set_info
//!     └─ dispatch        remote_objects ──> clone_assignment
//! ```
//!
//! | question | module |
//! |---|---|
//! | Which job kinds exist, which are managed? | [`integrations`] |
//! | What does a kind implement? | [`GenericJob`] |
//! | What do webhooks set and refuse? | [`defaulting`], [`validate`] |
//! | How is a Workload built and named? | [`construct_workload`], [`workload_name`] |
//! | Does a Workload match its job? | [`equivalence`] |
//! | What is the next step? | [`reconcile`] |
//! | What do pods get at a start? | [`pod_sets_info`], [`pod_set_info`] |
//! | What is created on a worker? | [`remote_objects`], [`clone_assignment`] |
//!
//! Objects are inputs, steps and changed objects are results; the caller reads and writes.

pub mod ancestor_search;
pub mod clone_assignment;
pub mod construct_workload;
pub mod container_env;
pub mod defaulting;
pub mod elastic_job_gate;
pub mod equivalence;
pub mod generic_job;
pub mod go_parse;
pub mod integrations;
pub mod job;
pub mod job_gates;
pub mod pod_set_info;
pub mod pod_sets_info;
pub mod prebuilt;
pub mod reconcile;
pub mod remote_objects;
pub mod topology_request;
pub mod validate;
pub mod workload_name;

pub use generic_job::{GenericJob, StopWrite};
pub use job::Job;
pub use job_gates::JobGates;
