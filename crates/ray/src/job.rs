//! RayJob: what its controller refuses, and the objects that it needs. The phases are not built yet.
//!
//! Source: docs/reference/ray.md §5, §8.

mod children;
mod submission;
mod validate;
mod validate_deletion;

pub use children::JobAttempt;
pub(crate) use validate::check_job_spec;
pub use validate::{InvalidJob, check_job};
