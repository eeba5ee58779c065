//! What can be wrong with fields, in the API machinery's words.
//!
//! Shared by everything that judges objects: the webhooks of Kueue's own kinds and those of jobs.

mod field_error;
pub mod gated_by;
pub mod labels;
pub mod selector;

pub use field_error::{Errors, FieldError, denial, immutable, negative};
