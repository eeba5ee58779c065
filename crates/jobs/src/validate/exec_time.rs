//! Maximum execution time.

use crds::{
    names::labels::MAX_EXEC_TIME_SECONDS,
    validation::{Errors, FieldError, immutable},
};

use crate::{GenericJob, go_parse};

fn field() -> String {
    format!("metadata.labels[{MAX_EXEC_TIME_SECONDS}]")
}

/// The label is a positive number.
pub(super) fn check<J: GenericJob>(job: &J) -> Errors {
    let Some(text) = job.label(MAX_EXEC_TIME_SECONDS) else { return vec![] };
    match go_parse::integer(text) {
        Ok(seconds) if seconds > 0 => vec![],
        Ok(seconds) => vec![FieldError::invalid(field(), seconds, "should be greater than 0")],
        Err(problem) => vec![FieldError::invalid(field(), text, problem)],
    }
}

/// The label is immutable unless the job is suspended before and after.
pub(super) fn check_change<J: GenericJob>(new: &J, old: &J) -> Errors {
    let now = new.label(MAX_EXEC_TIME_SECONDS).unwrap_or_default();
    let before = old.label(MAX_EXEC_TIME_SECONDS).unwrap_or_default();
    if (new.spec_suspended() && old.spec_suspended()) || now == before {
        return vec![];
    }
    vec![immutable(field(), now)]
}
