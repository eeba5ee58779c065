//! Fields of a status that a declared kind reads and that have another type than the kind expects. They count as absent, so that the job
//! seems not to run or never to end.

use std::sync::LazyLock;

use crate::{
    GenericJob, JobObject,
    declared::{JobFields, Outcome, Probe},
    expected_type::{ExpectedType, WrongType},
    pointer::Pointer,
};

/// The object that is read.
const STATUS: &str = "status";

static WHOLE: LazyLock<Pointer> = LazyLock::new(|| Pointer::of(&[STATUS]));
static CONDITIONS: LazyLock<Pointer> = LazyLock::new(|| Pointer::of(&[STATUS, "conditions"]));

/// A field with another type than the expected one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} and counts as absent: whether the job runs or has ended is not known from it")]
pub struct UnreadableField(WrongType);

impl JobObject {
    /// The first field of the status that decisions read and that has a wrong type. The API server sees to the types of other kinds.
    #[must_use]
    pub fn unreadable_status(&self) -> Option<UnreadableField> {
        let Self::Declared(job) = self else { return None };
        let object = &job.object;
        if object[STATUS].is_null() {
            return None;
        }
        let mut expected = vec![(&*WHOLE, ExpectedType::Fields)];
        expected.extend(job.kind().fields().into_iter().flat_map(read_fields));
        let mut wrong =
            expected.into_iter().filter_map(|(at, expected)| expected.contradicted(at, object));
        wrong.next().map(UnreadableField)
    }
}

/// The fields of the status that a kind reads.
fn read_fields(fields: &JobFields) -> Vec<(&Pointer, ExpectedType)> {
    let mut read = Vec::new();
    let probes = [Some(&fields.active), fields.ready.as_ref(), Some(&fields.skip)];
    probes.into_iter().flatten().for_each(|probe| add_read(probe, &mut read));
    for outcome in &fields.outcomes {
        match outcome {
            Outcome::Condition { .. } | Outcome::FirstCondition { .. } => {
                read.push((&*CONDITIONS, ExpectedType::List));
            }
            Outcome::Values { at, when, .. } => {
                read.push((at, ExpectedType::Text));
                when.iter().for_each(|probe| add_read(probe, &mut read));
            }
        }
    }
    read.extend(fields.reclaimable.as_ref().map(|rule| (&rule.each, ExpectedType::List)));
    read.retain(|(at, _)| at.is_below(STATUS));
    read
}

fn add_read<'a>(probe: &'a Probe, read: &mut Vec<(&'a Pointer, ExpectedType)>) {
    match probe {
        Probe::Condition(_) => read.push((&*CONDITIONS, ExpectedType::List)),
        Probe::Not(probe) => add_read(probe, read),
        // Any type says something.
        Probe::Present(_) | Probe::Never => {}
        Probe::In { at, .. } | Probe::NotIn { at, .. } => read.push((at, ExpectedType::Text)),
        Probe::AnyAbove(fields) => {
            read.extend(fields.iter().map(|at| (at, ExpectedType::Number)));
        }
        Probe::EqualSums(left, right) => {
            read.extend(left.iter().chain(right).map(|at| (at, ExpectedType::Number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Kinds;

    fn found(kind: (&str, &str), status: &Value) -> Option<String> {
        let kind = Kinds::built_in().find(kind.0, kind.1).expect("a built-in kind");
        let job = kind.decode(json!({ "metadata": { "name": "j" }, "spec": {}, "status": status }));
        job.expect("it decodes").unreadable_status().map(|one| one.to_string())
    }

    #[test]
    fn a_field_of_a_wrong_type_is_named_with_the_type_that_it_should_have() {
        let job_set = ("jobset.x-k8s.io/v1alpha2", "JobSet");
        let table = [
            (json!(null), None),
            (json!({}), None),
            (json!({ "conditions": null, "replicatedJobsStatus": [] }), None),
            (json!({ "conditions": [], "replicatedJobsStatus": [{ "active": 1 }] }), None),
            (json!("gone"), Some("status is no object ")),
            (
                json!({ "conditions": { "type": "Failed" } }),
                Some("status.conditions is no list of objects "),
            ),
            (json!({ "conditions": ["Failed"] }), Some("status.conditions is no list of objects ")),
            (
                json!({ "replicatedJobsStatus": 3 }),
                Some("status.replicatedJobsStatus is no object "),
            ),
            (
                json!({ "replicatedJobsStatus": [{ "active": "1" }] }),
                Some("status.replicatedJobsStatus.*.active is no integer "),
            ),
        ];
        for (status, expected) in table {
            let found = found(job_set, &status);
            match expected {
                None => assert_eq!(found, None, "{status}"),
                Some(begin) => {
                    assert!(found.as_ref().is_some_and(|one| one.starts_with(begin)), "{found:?}");
                }
            }
        }
    }

    #[test]
    fn a_text_is_expected_where_a_result_is_one() {
        let ray_job = ("ray.io/v1", "RayJob");
        assert_eq!(found(ray_job, &json!({ "jobStatus": "RUNNING" })), None);
        let found = found(ray_job, &json!({ "jobStatus": 7 })).expect("a problem");
        assert!(found.starts_with("status.jobStatus is no string "), "{found}");
    }
}
