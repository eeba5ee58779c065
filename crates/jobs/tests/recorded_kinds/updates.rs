//! What upstream's webhooks answered to changes of declared jobs, compared with the rules of this crate.

use crds::{names::labels::QUEUE_NAME, validation::denial};
use jobs::{GenericJob, validate};
use serde_json::Value;

use crate::{
    BARE_PARSE_ERRORS, KINDS, MARK_PODS, SETS, decode, errors_of, gates,
    kinds_recording::{RecordedStep, cases},
    with_defaults,
};

/// Upstream neither deletes nor holds the waiting Workload of a StatefulSet that is scaled to zero, and refuses every way back.
const STUCK: &str = "workload from previous scale-down is still being deleted";

/// The changed object. A schema of the API server refuses more, which is no answer of a webhook.
fn changed(old: &Value, body: &Value) -> Value {
    let mut new = old.clone();
    match serde_json::from_value::<json_patch::Patch>(body.clone()) {
        Ok(patch) => json_patch::patch(&mut new, &patch).expect("the patch applies"),
        Err(_) => json_patch::merge(&mut new, body),
    }
    new
}

/// How our answer differs from the recorded one; `None` if the step changes no job.
fn compare(step: &RecordedStep<'_>, old: &Value, ids: (&str, &str)) -> Option<Option<String>> {
    let resource = format!("{}s", ids.1.to_lowercase());
    step.target(&resource)?;
    let object = changed(old, step.body()?);
    let mut new = decode(ids.0, ids.1, &object);
    // Of other kinds a changed object gets no defaults that its validation sees.
    if new.kind().pods().is_some() {
        let has_default_queue = old["metadata"]["labels"][QUEUE_NAME] == "default";
        let namespace = if has_default_queue { "dflt" } else { "plain" };
        new = decode(ids.0, ids.1, &with_defaults(&new, &object, namespace, gates()));
    }
    let ours = denial(&validate::update(&new, &decode(ids.0, ids.1, old), false, gates()));
    let theirs = step.refusal().map(str::to_owned);
    let bare = theirs
        .as_ref()
        .is_some_and(|theirs| BARE_PARSE_ERRORS.iter().any(|text| theirs.starts_with(text)));
    let same = match (&ours, &theirs) {
        _ if bare => ours.is_some(),
        (ours, Some(theirs)) if theirs.ends_with(STUCK) => ours.is_none(),
        // Upstream lists what follows from the change first for some kinds, and last for others.
        (Some(ours), Some(theirs)) => errors_of(ours) == errors_of(theirs),
        _ => ours == theirs,
    };
    Some((!same).then(|| format!("step {}\n  theirs {theirs:?}\n  ours   {ours:?}", step.number())))
}

#[test]
fn webhooks_answer_updates_of_declared_jobs_as_upstream() {
    let (mut n_compared, mut wrong) = (0, Vec::new());
    let groups = [
        "kubeflow.org/",
        "ray.io/",
        "workload.codeflare.dev/",
        "trainer.kubeflow.org/",
        "sparkoperator.k8s.io/",
    ];
    let declared = KINDS.iter().filter(|one| groups.iter().any(|group| one.1.starts_with(group)));
    for (file, api_version, kind) in declared.chain([&SETS]).chain(&MARK_PODS) {
        for case in cases(file).iter().filter(|case| case.name().contains("/life/")) {
            let mut seen: Option<Value> = None;
            for step in case.all_steps() {
                if let Some(old) = &seen
                    && let Some(difference) = compare(&step, old, (api_version, kind))
                {
                    n_compared += 1;
                    wrong.extend(difference.map(|text| format!("{} {text}", case.name())));
                }
                seen = step.changed(kind).last().map(|job| (*job).clone()).or(seen);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(n_compared, 1054, "every recorded update is compared");
}
