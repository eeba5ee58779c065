//! The status of a copy within a limit: what a worker writes becomes a write on the manager, whatever its size is.
//!
//! A status over [`LARGEST`] keeps its small fields, as counts and phases, and its conditions with short messages; if that is still too
//! much, only the conditions. The depth is bounded where objects are decoded.

#[cfg(test)]
mod tests;

use std::io;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crds::decode::from_value;

use crate::JobObject;

/// The largest status that is copied whole, in bytes of JSON. The completed indexes of the largest Job of Kubernetes are less.
pub const LARGEST: usize = 512 * 1024;

/// The largest field that stays in a status that is cut.
const LARGEST_FIELD: usize = 4 * 1024;

/// Conditions that stay, and bytes of each of their texts.
const MOST_CONDITIONS: usize = 32;
const LONGEST_TEXT: usize = 1024;

/// A copy with a status within the limit, if its own is not.
#[must_use]
pub fn bounded_status(copy: &JobObject) -> Option<JobObject> {
    let whole = match copy {
        JobObject::Batch(job) => is_within(&job.status, LARGEST),
        JobObject::Pod(pod) => is_within(&pod.status, LARGEST),
        // A set keeps the status of its own cluster.
        JobObject::LeaderWorkerSet(_) => true,
        JobObject::Declared(job) => is_within(job.stored().get("status"), LARGEST),
    };
    if whole {
        return None;
    }
    let status = cut(copy.status());
    let mut bounded = copy.clone();
    match &mut bounded {
        JobObject::Batch(job) => job.status = from_value(&status).unwrap_or_default(),
        JobObject::Pod(pod) => pod.status = from_value(&status).unwrap_or_default(),
        JobObject::LeaderWorkerSet(_) => {}
        JobObject::Declared(job) => job.set_status(Some(status)),
    }
    Some(bounded)
}

fn cut(status: Value) -> Value {
    let Value::Object(mut fields) = status else { return json!({}) };
    let conditions = fields.remove("conditions").and_then(conditions);
    let with_conditions = |mut fields: Map<String, Value>| {
        fields.extend(conditions.clone().map(|list| ("conditions".to_owned(), list)));
        Value::Object(fields)
    };
    fields.retain(|name, value| name.len() <= LARGEST_FIELD && is_within(&*value, LARGEST_FIELD));
    let small = with_conditions(fields);
    if is_within(&small, LARGEST) { small } else { with_conditions(Map::new()) }
}

/// Conditions with short texts; those that are no objects of texts, times and numbers are left out.
fn conditions(list: Value) -> Option<Value> {
    let Value::Array(list) = list else { return None };
    let short = list.into_iter().filter_map(|condition| {
        let Value::Object(mut fields) = condition else { return None };
        fields.values_mut().for_each(shorten);
        let condition = Value::Object(fields);
        is_within(&condition, LARGEST_FIELD).then_some(condition)
    });
    Some(short.take(MOST_CONDITIONS).collect())
}

fn shorten(value: &mut Value) {
    if let Value::String(text) = value {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    }
}

/// Whether the JSON of a value has at most so many bytes.
fn is_within(value: impl Serialize, limit: usize) -> bool {
    serde_json::to_writer(Allowance(limit), &value).is_ok()
}

/// The bytes that may still be written.
struct Allowance(usize);

impl io::Write for Allowance {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
