//! The status of a copy within a limit: what a worker writes becomes a write on the manager, whatever its size is.
//!
//! A status over [`LARGEST`] gets conditions with short messages, and loses its largest fields until it is within the limit. Small
//! fields, as counts and phases, go last, and all at once. Of many conditions those stay that the kind reads, and then the last ones,
//! since controllers add to the end. The depth is bounded where objects are decoded.

#[cfg(test)]
mod tests;

use std::io;

use serde::Serialize;
use serde_json::{Value, json};

use crds::decode::from_value;

use crate::JobObject;

/// The largest status that is copied whole, in bytes of JSON. The completed indexes of the largest Job of Kubernetes are less.
pub const LARGEST: usize = 512 * 1024;

/// The largest field that counts as small.
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
    let status = cut(copy.status(), &read_conditions(copy));
    let mut bounded = copy.clone();
    match &mut bounded {
        JobObject::Batch(job) => job.status = from_value(&status).unwrap_or_default(),
        JobObject::Pod(pod) => pod.status = from_value(&status).unwrap_or_default(),
        JobObject::LeaderWorkerSet(_) => {}
        JobObject::Declared(job) => job.set_status(Some(status)),
    }
    Some(bounded)
}

/// The types of conditions that a kind reads.
fn read_conditions(copy: &JobObject) -> Vec<&str> {
    match copy {
        JobObject::Batch(_) => vec!["Complete", "Failed"],
        JobObject::Pod(_) => vec!["Ready"],
        JobObject::LeaderWorkerSet(_) => vec![],
        JobObject::Declared(job) => job.read_conditions(),
    }
}

fn cut(status: Value, read: &[&str]) -> Value {
    let Value::Object(mut fields) = status else { return json!({}) };
    let conditions = fields.remove("conditions").and_then(|list| short_conditions(list, read));
    // Without the comma before the field.
    let size = |name: &String, value: &Value| json_size(name) + json_size(value) + 1;
    let all = fields.iter().map(|(name, value)| (size(name, value), name.clone()));
    let mut large: Vec<(usize, String)> = all.filter(|(size, _)| *size > LARGEST_FIELD).collect();
    large.sort_unstable();
    fields.extend(conditions.map(|list| ("conditions".to_owned(), list)));
    let mut total = json_size(&fields);
    while total > LARGEST {
        let Some((size, name)) = large.pop() else {
            // Many small fields are no status of a controller.
            fields.retain(|name, _| name == "conditions");
            break;
        };
        fields.remove(&name);
        total = total.saturating_sub(size + 1);
    }
    Value::Object(fields)
}

/// Conditions with short texts; those that are no objects of texts, times and numbers are left out.
fn short_conditions(list: Value, read: &[&str]) -> Option<Value> {
    let Value::Array(list) = list else { return None };
    let short = list.into_iter().filter_map(|condition| {
        let Value::Object(mut fields) = condition else { return None };
        fields.values_mut().for_each(shorten);
        let condition = Value::Object(fields);
        is_within(&condition, LARGEST_FIELD).then_some(condition)
    });
    Some(last_conditions(short.collect(), read))
}

/// As many conditions as may stay, in their order. An end that is lost would keep the quota of the job.
fn last_conditions(all: Vec<Value>, read: &[&str]) -> Value {
    let is_read = |one: &Value| one["type"].as_str().is_some_and(|name| read.contains(&name));
    let mut room = MOST_CONDITIONS;
    let mut kept = vec![false; all.len()];
    for wanted in [true, false] {
        for (kept, one) in kept.iter_mut().zip(&all).rev() {
            if room > 0 && is_read(one) == wanted {
                (*kept, room) = (true, room - 1);
            }
        }
    }
    all.into_iter().zip(kept).filter_map(|(one, kept)| kept.then_some(one)).collect()
}

fn shorten(value: &mut Value) {
    if let Value::String(text) = value {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    }
}

fn json_size(value: &(impl Serialize + ?Sized)) -> usize {
    let mut size = JsonSize { bytes: 0, limit: usize::MAX };
    // Nothing limits it, so that it does not fail.
    let _ = serde_json::to_writer(&mut size, value);
    size.bytes
}

/// Whether the JSON of a value has at most so many bytes.
fn is_within(value: impl Serialize, limit: usize) -> bool {
    serde_json::to_writer(JsonSize { bytes: 0, limit }, &value).is_ok()
}

/// Counts the bytes of JSON, up to a limit.
struct JsonSize {
    bytes: usize,
    limit: usize,
}

impl io::Write for JsonSize {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.limit {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
