//! RayJob: a cluster, and a program that runs in it.
//!
//! | module | concept |
//! |---|---|
//! | `decide` | the order of the steps; the first and the last one |
//! | `phase`, `status` | the phases, and the status while a pass changes it |
//! | `initializing`, `running`, `stopping`, `cleanup` | what each phase needs |
//! | `submitter`, `submission` | what became of the submitter; its container and its command |
//! | `children`, `head_service` | the objects of an attempt |
//! | `named_objects` | which of them are looked up by name |
//! | `validate`, `validate_deletion` | what the controller refuses |
//!
//! Source: docs/reference/ray.md §5, §8.

mod children;
mod cleanup;
mod context;
mod decide;
mod head_service;
mod initializing;
mod named_objects;
mod phase;
mod running;
mod status;
mod stopping;
mod submission;
mod submitter;
mod validate;
mod validate_deletion;

pub use children::JobAttempt;
pub use decide::decide;
pub use named_objects::{named_objects, reads};
pub(crate) use validate::check_job_spec;
pub use validate::{InvalidJob, check_job};
