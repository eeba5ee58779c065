//! Recorded requests on Jobs with the answers of Kueue's webhooks, replayed without a server.

mod recording;

use crds::validation::denial;
use jobs::{Job, validate};
use recording::{RecordedCase, RecordedOutcome};

const DENIED: &str = "admission webhook \"vjob.kb.io\" denied the request: ";

/// Errors of a refusal, without brackets, in any order.
fn parts(text: &str) -> Vec<String> {
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let text = text.replace(", metadata.", "\nmetadata.").replace(", spec.", "\nspec.");
    let mut parts: Vec<String> = text.lines().map(str::to_owned).collect();
    parts.sort();
    parts
}

fn judge(case: &RecordedCase) -> Option<String> {
    let gates = case.gates();
    let new = Job::from_value(&case.new_object());
    let errors = match case.old_object() {
        None => validate::create(&new, gates),
        Some(old) => {
            validate::update(&new, &Job::from_value(&old), case.has_default_queue(), gates)
        }
    };
    denial(&errors)
}

trait FromValue {
    fn from_value(value: &serde_json::Value) -> Self;
}

impl FromValue for Job {
    fn from_value(value: &serde_json::Value) -> Self {
        serde_json::from_value(value.clone()).expect("a Job decodes")
    }
}

#[test]
fn refusals_equal_those_of_kueue() {
    let (mut refused, mut accepted, mut elsewhere) = (0, 0, 0);
    let mut wrong = Vec::new();
    for case in recording::cases() {
        let ours = if case.reaches_webhooks() { judge(&case) } else { None };
        match case.outcome() {
            RecordedOutcome::Accepted => {
                accepted += 1;
                if let Some(text) = ours {
                    wrong.push(format!("{}: accepted upstream, refused here: {text}", case.id));
                }
            }
            RecordedOutcome::RefusedByWebhook(text) => {
                refused += 1;
                let theirs = text.strip_prefix(DENIED).expect("the webhook's own words");
                if ours.as_deref().map(parts) != Some(parts(theirs)) {
                    wrong.push(format!("{}:\n  theirs {theirs}\n  ours   {ours:?}", case.id));
                }
            }
            RecordedOutcome::RefusedByServer => elsewhere += 1,
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "\n{}", wrong.join("\n"));
    assert_eq!((refused, accepted, elsewhere), (67, 89, 4), "every recorded case is looked at");
}

/// Fields that the webhook sets: labels, suspend, managedBy and scheduling gates.
fn filled_in(object: &serde_json::Value) -> (Vec<String>, bool, Option<String>, serde_json::Value) {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.filter(|(key, _)| key.starts_with("kueue.x-k8s.io/"));
    (
        labels.map(|(key, value)| format!("{key}={value}")).collect(),
        object["spec"]["suspend"] == true,
        object["spec"]["managedBy"].as_str().map(str::to_owned),
        object["spec"]["template"]["spec"]["schedulingGates"].clone(),
    )
}

#[test]
fn defaults_equal_those_of_kueue() {
    let mut wrong = Vec::new();
    let mut n_cases = 0;
    for case in recording::cases() {
        if case.old_object().is_some() || !matches!(case.outcome(), RecordedOutcome::Accepted) {
            continue;
        }
        n_cases += 1;
        let (ours, theirs) = (filled_in(&case.defaulted()), filled_in(case.response()));
        if ours != theirs {
            wrong.push(format!("{}:\n  theirs {theirs:?}\n  ours   {ours:?}", case.id));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "\n{}", wrong.join("\n"));
    assert_eq!(n_cases, 71, "every accepted creation is looked at");
}
