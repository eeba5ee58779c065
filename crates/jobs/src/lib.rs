//! Kinds of jobs, decided without doing: what their webhooks refuse and default, their pod sets, how they start and stop.
//!
//! One file per kind behind [`GenericJob`]; what all kinds have in common stands in files of its own.
//! Objects go in, values come out; the caller reads and writes (docs/reference/kueue.md §5.3, §7).

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
