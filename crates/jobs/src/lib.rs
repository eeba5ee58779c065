//! Kinds of jobs, decided without doing: what their webhooks refuse and default, their pod sets, how they start and stop.
//!
//! One file per kind behind [`JobKind`]; what all kinds have in common stands in files of its own.
//! Objects go in, values come out; the caller reads and writes (docs/reference/kueue.md §5.3, §7).

pub mod ancestors;
pub mod assignment;
pub mod defaulting;
pub mod dispatched;
pub mod elastic_gate;
pub mod environment;
pub mod equivalence;
pub mod frameworks;
pub mod gates;
pub mod go_parse;
pub mod job;
pub mod kind;
pub mod pod_set_info;
pub mod prebuilt;
pub mod reconcile;
pub mod start;
pub mod topology_request;
pub mod validate;
pub mod workload;
pub mod workload_name;

pub use gates::Gates;
pub use job::Job;
pub use kind::{JobKind, StopStep};
