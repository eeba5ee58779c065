//! What is refused when an object of `ray.io` is created or changed: its name, groups of the same name, and a bad timeout. All other rules
//! are those of the controllers.
//!
//! Source: docs/reference/ray.md §5 "Admission webhooks".

use std::collections::BTreeSet;

use crds::validation::{Errors, FieldError};
use serde_json::Value;

use crate::{
    cluster::{LONGEST_NAME, check_name},
    json::{items, name, text},
    service::check_timeout,
};

/// The most characters of the names of RayJobs and RayServices: names of their clusters are longer.
const LONGEST_OWNER_NAME: usize = 47;

/// What is wrong with an object. Kinds without a webhook have no errors.
#[must_use]
pub fn validate(object: &Value) -> Errors {
    let kind = text(&object["kind"]);
    let mut errors = Errors::new();
    let mut refuse = |detail: String| {
        errors.push(FieldError::invalid("metadata.name", name(object), detail));
    };
    match kind {
        "RayCluster" => {
            if let Err(why) = check_name(kind, name(object), LONGEST_NAME) {
                refuse(why);
            }
            errors.extend(duplicate_group(object));
        }
        "RayJob" | "RayService" => {
            // As recorded, groups of the same name pass here; the controllers refuse them.
            let why = check_name(kind, name(object), LONGEST_OWNER_NAME)
                .and_then(|()| if kind == "RayService" { check_timeout(object) } else { Ok(()) });
            if let Err(why) = why {
                refuse(format!("The {kind} metadata is invalid: {why}"));
            }
        }
        _ => {}
    }
    errors
}

/// The first group with the name of another one.
fn duplicate_group(object: &Value) -> Option<FieldError> {
    let mut seen = BTreeSet::new();
    let groups = items(&object["spec"]["workerGroupSpecs"]);
    let index = groups.iter().position(|group| !seen.insert(text(&group["groupName"])))?;
    let field = format!("spec.workerGroupSpecs[{index}]");
    let group = groups.get(index).map(|group| &group["groupName"]);
    Some(FieldError::invalid(field, group, "worker group names must be unique"))
}
