//! The status that the operator writes: counts and results, where the definition of the kind reads them.

use jobs::Kind;
use jobs::declared::{JobFields, Outcome, Probe, Reclaimable};
use jobs::pointer::Pointer;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::replica_counts::ReplicaCounts;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlayedResult {
    Succeeded,
    Failed,
}

/// Where conditions stand.
const CONDITIONS: &str = "/status/conditions";

/// The result that a status shows.
pub(super) fn result(kind: &Kind, job: &Value) -> Option<PlayedResult> {
    let outcomes = kind.fields().map(|fields| fields.outcomes.as_slice()).unwrap_or_default();
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Condition { r#type, success } => {
            let conditions = job.pointer(CONDITIONS).and_then(Value::as_array)?;
            let mut conditions = conditions.iter();
            let met = conditions.any(|one| one["type"] == **r#type && one["status"] == "True");
            met.then(|| PlayedResult::of(*success))
        }
        Outcome::FirstCondition { succeeded, failed } => {
            let conditions = job.pointer(CONDITIONS).and_then(Value::as_array)?;
            let is_of = |one: &Value, types: &[String]| types.iter().any(|it| one["type"] == **it);
            let mut met = conditions.iter().filter(|one| one["status"] == "True");
            let met = met.find(|one| is_of(one, succeeded) || is_of(one, failed))?;
            Some(PlayedResult::of(is_of(met, succeeded)))
        }
        Outcome::Values { at, succeeded, failed, .. } => {
            let text = at.text(job)?.to_owned();
            let success = succeeded.contains(&text);
            (success || failed.contains(&text)).then(|| PlayedResult::of(success))
        }
    })
}

/// Writes counts, and a new result.
pub(super) fn write(
    kind: &Kind,
    counts: &[ReplicaCounts],
    result: Option<PlayedResult>,
    now: Timestamp,
    job: &mut Value,
) {
    let Some(fields) = kind.fields() else { return };
    if let Some(rule) = &fields.reclaimable {
        write_list(rule, counts, job);
    }
    write_counts(fields, counts, job);
    if let Some(Probe::In { at, values }) = &fields.ready {
        write_phase(at, values, counts, job);
    }
    if let Some(result) = result {
        write_result(fields, result, now, job);
    }
}

impl PlayedResult {
    fn of(success: bool) -> Self {
        if success { Self::Succeeded } else { Self::Failed }
    }
}

/// The list with an entry per pod set.
fn write_list(rule: &Reclaimable, counts: &[ReplicaCounts], job: &mut Value) {
    let known = rule.each.get(job).and_then(Value::as_array).map_or(0, Vec::len);
    if known != counts.len() {
        rule.each.set(job, json!(vec![json!({}); counts.len()]));
    }
    for (index, one) in counts.iter().enumerate() {
        let entry = rule.each.element(index);
        entry.join(&rule.name).set(job, json!(one.pod_set));
        entry.join(&rule.replicas).set(job, json!(one.succeeded));
    }
}

/// Numbers of active and of ready replicas.
fn write_counts(fields: &JobFields, counts: &[ReplicaCounts], job: &mut Value) {
    if let Probe::AnyAbove(active) = &fields.active {
        active.iter().for_each(|at| write_number(fields, at, counts, |one| one.active, job));
    }
    if let Some(Probe::EqualSums(left, _)) = &fields.ready {
        // Succeeded replicas are written with the list.
        let succeeded = fields.reclaimable.as_ref().map(|rule| {
            let entry = Pointer::of(&["*"]).join(&rule.replicas);
            rule.each.join(&entry).to_string()
        });
        for at in left.iter().filter(|at| Some(at.to_string()) != succeeded) {
            write_number(fields, at, counts, |one| one.ready, job);
        }
    }
}

/// A number at every field that a pointer reaches: `*` stands for the entries of the list, or for the names of pod sets.
fn write_number(
    fields: &JobFields,
    at: &Pointer,
    counts: &[ReplicaCounts],
    number: impl Fn(&ReplicaCounts) -> i32,
    job: &mut Value,
) {
    let text = at.to_string();
    let Some((before, after)) = text.split_once("/*") else {
        return at.set(job, json!(counts.iter().map(number).sum::<i32>()));
    };
    let list = fields.reclaimable.as_ref().is_some_and(|rule| rule.each.to_string() == before);
    for (index, one) in counts.iter().enumerate() {
        let step = if list { index.to_string() } else { one.pod_set.clone() };
        if let Ok(field) = Pointer::try_from(format!("{before}/{step}{after}")) {
            field.set(job, json!(number(one)));
        }
    }
}

/// The text that says that all pods are ready. A result stays.
fn write_phase(at: &Pointer, values: &[String], counts: &[ReplicaCounts], job: &mut Value) {
    let ready =
        !counts.is_empty() && counts.iter().all(|one| one.ready + one.succeeded == one.replicas);
    let present = at.text(job).map(str::to_owned);
    match (ready, values.first(), present) {
        (true, Some(value), None) => at.set(job, json!(value)),
        (false, _, Some(present)) if values.contains(&present) => {
            at.remove(job);
        }
        _ => {}
    }
}

fn write_result(fields: &JobFields, result: PlayedResult, now: Timestamp, job: &mut Value) {
    let is_success = result == PlayedResult::Succeeded;
    let message = if is_success { "all pods succeeded" } else { "a pod failed" };
    for outcome in &fields.outcomes {
        match outcome {
            Outcome::Condition { r#type, success } if *success == is_success => {
                add_condition(r#type, message, now, job);
                return;
            }
            Outcome::FirstCondition { succeeded, failed } => {
                if let Some(r#type) = if is_success { succeeded } else { failed }.first() {
                    add_condition(r#type, message, now, job);
                    return;
                }
            }
            Outcome::Values { at, succeeded, failed, message: place, .. } => {
                let value = if is_success { succeeded.first() } else { failed.first() };
                if let Some(value) = value {
                    at.set(job, json!(value));
                    if let Some(place) = place {
                        place.set(job, json!(message));
                    }
                    return;
                }
            }
            Outcome::Condition { .. } => {}
        }
    }
}

fn add_condition(kind: &str, message: &str, now: Timestamp, job: &mut Value) {
    let condition = json!({
        "type": kind, "status": "True", "reason": kind, "message": message,
        "lastTransitionTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now),
    });
    let present = job.pointer_mut(CONDITIONS).and_then(Value::as_array_mut);
    match present {
        Some(conditions) => conditions.push(condition),
        None => Pointer::of(&["status", "conditions"]).set(job, json!([condition])),
    }
}
