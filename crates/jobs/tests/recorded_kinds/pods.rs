//! What upstream's webhooks answered about pods, and the roles that they gave them, compared with the rules of this crate.

use std::collections::BTreeMap;

use crate::kinds_recording::{RecordedCase, RecordedStep, cases, lines};
use crds::validation::denial;
use jobs::{
    JobGates, Pod,
    defaulting::{DefaultingFacts, PatchAdd},
    pods::{defaulting, role_hash::role_hash},
    validate,
};
use serde_json::{Value, json};

fn decode(object: &Value) -> Pod {
    serde_json::from_value(object.clone()).expect("a pod decodes")
}

fn gates() -> JobGates {
    JobGates::default()
}

#[test]
fn roles_are_those_of_upstream() {
    let lines = lines("role-hash");
    for line in &lines {
        let spec = serde_json::from_value(line["spec_after_defaulting"].clone()).expect("a spec");
        assert_eq!(line["role_hash"], role_hash(&spec), "{}", line["name"]);
    }
    assert_eq!(lines.len(), 45, "every recorded role is compared");
}

pub(crate) fn with_defaults(object: &Value, namespace: &str) -> Value {
    let facts = DefaultingFacts {
        default_local_queue: namespace == "dflt",
        namespace_managed: true,
        ..DefaultingFacts::default()
    };
    let steps = defaulting::default(&decode(object), facts, gates());
    let patch = Value::Array(steps.iter().map(PatchAdd::to_json).collect());
    let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).expect("the patch applies");
    object
}

/// What the webhook may set. The API server fills the spec before it, so that the recorded role is taken from a default one.
fn set_by_webhook(object: &Value) -> Value {
    let annotations = object["metadata"]["annotations"].as_object();
    let annotations: BTreeMap<&String, bool> =
        annotations.into_iter().flatten().map(|(key, _)| (key, true)).collect();
    json!({
        "labels": object["metadata"]["labels"], "annotations": annotations,
        "finalizers": object["metadata"]["finalizers"], "gates": object["spec"]["schedulingGates"],
    })
}

fn compare_create(case: &RecordedCase, step: &RecordedStep<'_>) -> Option<String> {
    let defaulted = with_defaults(step.body()?, case.namespace());
    let ours = denial(&validate::create(&decode(&defaulted), gates()));
    match step.refusal() {
        Some(theirs) => (ours.as_deref() != Some(theirs))
            .then(|| format!("\n  theirs {theirs}\n  ours   {}", ours.unwrap_or_default())),
        None => {
            let theirs = set_by_webhook(step.answered_object()?);
            let (refused, ours) = (ours, set_by_webhook(&defaulted));
            (refused.is_some() || ours != theirs)
                .then(|| format!("\n  theirs {theirs}\n  ours   {ours}\n  refused {refused:?}"))
        }
    }
}

#[test]
fn webhooks_answer_creates_as_upstream() {
    let (mut n_compared, mut wrong) = (0, Vec::new());
    for case in cases("pod").iter().filter(|case| case.name().contains("/create/")) {
        for step in case.steps() {
            n_compared += 1;
            wrong
                .extend(compare_create(case, &step).map(|text| format!("{}: {text}", case.name())));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(n_compared, 55, "every recorded create is compared");
}

/// The pods of a trace by name, as they were last seen.
type Seen = BTreeMap<String, Value>;

fn compare_update(step: &RecordedStep<'_>, seen: &Seen) -> Option<Option<String>> {
    let old = seen.get(step.target("pods")?)?;
    let mut new = old.clone();
    json_patch::merge(&mut new, step.body()?);
    let ours = denial(&validate::update(&decode(&new), &decode(old), false, gates()));
    let theirs = step.refusal().map(str::to_owned);
    Some(
        (ours != theirs)
            .then(|| format!("step {}\n  theirs {theirs:?}\n  ours   {ours:?}", step.number())),
    )
}

#[test]
fn webhooks_answer_updates_as_upstream() {
    let (mut n_compared, mut wrong) = (0, Vec::new());
    for file in ["pod", "podgroup"] {
        for case in cases(file).iter().filter(|case| case.name().contains("/life/")) {
            let mut seen = Seen::new();
            for step in case.all_steps() {
                if let Some(difference) = compare_update(&step, &seen) {
                    n_compared += 1;
                    wrong.extend(difference.map(|text| format!("{} {text}", case.name())));
                }
                for pod in step.changed("Pod") {
                    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                    seen.insert(name.to_owned(), pod.clone());
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(n_compared, 177, "every recorded update is compared");
}
