//! Fields of a status that a declared kind reads and that have another type than the kind expects. They count as absent, so that the job
//! seems not to run or never to end.

use crate::{
    GenericJob, JobObject,
    declared::{EXECUTOR_STATE, JobFields, Outcome, Probe, TrainingSpec},
    expected_type::{ExpectedType, WrongType},
    pointer::{EVERY, Pointer},
};

/// The object that is read.
const STATUS: &str = "status";

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
        let mut expected = vec![(Pointer::of(&[STATUS]), ExpectedType::Fields)];
        expected.extend(job.kind().fields().into_iter().flat_map(read_fields));
        let mut wrong =
            expected.iter().filter_map(|(at, expected)| expected.contradicted(at, object));
        wrong.next().map(UnreadableField)
    }
}

/// A field with the type that it should have.
type ReadField = (Pointer, ExpectedType);

/// The fields of the status that a kind reads.
fn read_fields(fields: &JobFields) -> Vec<ReadField> {
    let counts = fields.training.as_ref().map(TrainingSpec::ready_counts);
    let probes = [Some(&fields.active), fields.ready.as_ref(), Some(&fields.skip), counts.as_ref()];
    let mut read: Vec<ReadField> = probes.into_iter().flatten().flat_map(read_by).collect();
    read.extend(fields.outcomes.iter().flat_map(read_by_outcome));
    if let Some(rule) = &fields.reclaimable {
        let entry = rule.each.join(&Pointer::of(&[EVERY]));
        read.push((rule.each.clone(), ExpectedType::List));
        read.push((entry.join(&rule.name), ExpectedType::Text));
        read.push((entry.join(&rule.replicas), ExpectedType::Number));
        read.extend(rule.unless.iter().flat_map(read_by));
    }
    if fields.spark.is_some() {
        read.push((Pointer::of(&[STATUS, EXECUTOR_STATE, EVERY]), ExpectedType::Text));
    }
    read.retain(|(at, _)| at.is_below(STATUS));
    read
}

fn conditions() -> Vec<ReadField> {
    let field = |name: &str| Pointer::of(&[STATUS, "conditions", EVERY, name]);
    let text = ["type", "status"].map(|name| (field(name), ExpectedType::Text));
    let list = (Pointer::of(&[STATUS, "conditions"]), ExpectedType::List);
    std::iter::once(list).chain(text).collect()
}

fn read_by_outcome(outcome: &Outcome) -> Vec<ReadField> {
    match outcome {
        Outcome::Condition { .. } | Outcome::FirstCondition { .. } => conditions(),
        Outcome::Values { at, when, .. } => {
            let state = std::iter::once((at.clone(), ExpectedType::Text));
            state.chain(when.iter().flat_map(read_by)).collect()
        }
    }
}

fn read_by(probe: &Probe) -> Vec<ReadField> {
    let counted = |at: &Pointer| (at.clone(), ExpectedType::Number);
    match probe {
        Probe::Condition(_) => conditions(),
        Probe::Not(probe) => read_by(probe),
        // Any type says something.
        Probe::Present(_) | Probe::Never => vec![],
        Probe::In { at, .. } | Probe::NotIn { at, .. } => vec![(at.clone(), ExpectedType::Text)],
        Probe::AnyAbove(fields) => fields.iter().map(counted).collect(),
        Probe::EqualSums(left, right) => left.iter().chain(right).map(counted).collect(),
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

    #[test]
    fn fields_of_entries_are_read_as_well() {
        let job_set = ("jobset.x-k8s.io/v1alpha2", "JobSet");
        let train_job = ("trainer.kubeflow.org/v1alpha1", "TrainJob");
        let spark = ("sparkoperator.k8s.io/v1beta2", "SparkApplication");
        let table = [
            (
                job_set,
                json!({ "replicatedJobsStatus": [{ "name": 1 }] }),
                "replicatedJobsStatus.*.name is no string",
            ),
            (
                job_set,
                json!({ "conditions": [{ "type": "Failed", "status": true }] }),
                "conditions.*.status is no string",
            ),
            (
                train_job,
                json!({ "jobsStatus": [{ "name": "n", "ready": "2" }] }),
                "jobsStatus.*.ready is no integer",
            ),
            (
                train_job,
                json!({ "jobsStatus": [{ "name": "n", "succeeded": 1.5 }] }),
                "jobsStatus.*.succeeded is no integer",
            ),
            (spark, json!({ "executorState": { "e": 1 } }), "executorState.* is no string"),
            (spark, json!({ "executorState": "RUNNING" }), "executorState is no object"),
        ];
        for (kind, status, expected) in table {
            let found = found(kind, &status).unwrap_or_default();
            assert!(found.starts_with(&format!("status.{expected} ")), "{status}: {found}");
        }
    }
}
