//! Errors of fields, with the messages of Kubernetes' API machinery.
//!
//! Shared by the webhooks of Kueue's kinds and those of jobs.

mod field_error;
pub mod gated_by;
pub mod labels;
pub mod selector;
pub mod slice_layers;

pub use field_error::{Errors, FieldError, denial, immutable, negative};
