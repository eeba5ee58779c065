//! What an API server has stored of the entry that a start wrote.

use crds::names::reasons::{CRD_OUTDATED, START_NOT_STORED};
use serde_json::Value;

use super::{TrainingSpec, patches::OUTDATED_CRD};

/// The entry of Kueue in the patches of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartAdditions {
    /// The path of the entry in the job.
    path: String,
    entry: Value,
}

/// Why a job does not start although what a start writes was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartObstacle {
    /// For programs.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
}

impl StartObstacle {
    /// A field that the API server stores in another way.
    #[must_use]
    pub fn not_stored(path: &str) -> Self {
        let message = format!(
            "The job does not start: the API server stores {path} differently from what a start writes. A webhook changes it, or the CRD lacks it"
        );
        Self { reason: START_NOT_STORED, message }
    }
}

impl StartAdditions {
    /// Why a job does not start with what was stored of these additions; `None` if nothing is missing. A webhook may add to them.
    #[must_use]
    pub fn obstacle(&self, stored: Option<&Self>) -> Option<StartObstacle> {
        let Some(stored) = stored else {
            return Some(StartObstacle { reason: CRD_OUTDATED, message: OUTDATED_CRD.to_owned() });
        };
        let path = missing(&self.entry, &stored.entry, &self.path)?;
        Some(StartObstacle::not_stored(&path))
    }
}

impl TrainingSpec {
    /// The entry of Kueue in the patches of a job, if there is one.
    pub(in crate::declared) fn start_additions(&self, object: &Value) -> Option<StartAdditions> {
        let path = format!("{}[{}]", self.patches().field_path(), self.manager);
        self.own(object).map(|entry| StartAdditions { path, entry: entry.clone() })
    }
}

/// The path of the first field that was written and is not stored. An empty map or list may be dropped.
fn missing(written: &Value, stored: &Value, at: &str) -> Option<String> {
    match (written, stored) {
        (Value::Object(written), stored) => written.iter().find_map(|(key, written)| {
            let at = format!("{at}.{key}");
            match key.as_str() {
                // A further term of an affinity would allow further nodes.
                "affinity" => (*written != stored[key]).then_some(at),
                _ => missing(written, &stored[key], &at),
            }
        }),
        (Value::Array(written), stored) => {
            let stored = stored.as_array().map(Vec::as_slice).unwrap_or_default();
            written.iter().find_map(|item| missing_item(item, stored, at))
        }
        (written, stored) => (written != stored).then(|| at.to_owned()),
    }
}

/// The same for an item of a list, which may stand at another place.
fn missing_item(item: &Value, stored: &[Value], at: &str) -> Option<String> {
    let name = item["name"].as_str();
    let at = name.map_or_else(|| at.to_owned(), |name| format!("{at}[{name}]"));
    let mut first = None;
    for candidate in stored.iter().filter(|one| name.is_none() || one["name"] == item["name"]) {
        // One without anything missing is the item.
        let path = missing(item, candidate, &at)?;
        first = first.or(Some(path));
    }
    first.or(Some(at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let written = json!({ "jobs": [{ "name": "a", "labels": { "k": "v" }, "empty": {} }],
                              "tolerations": [{ "key": "x", "value": "1" }], "affinity": { "terms": [1] } });
        let lacks = |path: &str, value: Value| {
            let mut stored = written.clone();
            stored["more"] = json!(1);
            *stored.pointer_mut(path).expect("a field") = value;
            missing(&written, &stored, "at")
        };
        for (path, value, expected) in [
            ("/jobs/0/empty", json!(null), None),
            ("/jobs/0/labels", json!({ "k": "v", "l": "w" }), None),
            ("/jobs/0/labels", json!({}), Some("at.jobs[a].labels.k")),
            ("/jobs/0/labels/k", json!("w"), Some("at.jobs[a].labels.k")),
            ("/jobs", json!([]), Some("at.jobs[a]")),
            ("/jobs", json!(null), Some("at.jobs[a]")),
            (
                "/tolerations",
                json!([{ "key": "y" }, { "key": "x", "value": "1", "effect": "e" }]),
                None,
            ),
            ("/tolerations", json!([{ "key": "x" }]), Some("at.tolerations.value")),
            ("/affinity/terms", json!([1, 2]), Some("at.affinity")),
        ] {
            assert_eq!(lacks(path, value.clone()).as_deref(), expected, "{path} {value}");
        }
    }
}
