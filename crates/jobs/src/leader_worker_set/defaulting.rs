//! What the webhook sets in the templates of a set (docs/reference/kueue.md §5.3, §7.8).

use crds::names::{
    annotations::{POD_GROUP_SERVING, POD_INDEX_OFFSET, POD_SET_GROUP_NAME, POD_SUSPENDING_PARENT},
    labels::{PRIORITY_CLASS, QUEUE_NAME},
};
use serde_json::Value;

use super::set::{FRAMEWORK, LEADER, LeaderWorkerSet, WORKER};
use crate::{
    GenericJob, JobGates,
    defaulting::{self, DefaultingFacts, PatchAdd},
    template_metadata,
};

/// Labels of the set that are decided as for every job, and the templates of a managed set. The same for a changed set: its
/// templates follow queue and class.
pub(super) fn of_set(
    set: &LeaderWorkerSet,
    facts: DefaultingFacts,
    gates: JobGates,
) -> Vec<PatchAdd> {
    // No gate could hold the pods that run already.
    if !set.spec_suspended() && !set.is_marked() {
        return Vec::new();
    }
    let mut steps = defaulting::default(set, facts, gates);
    let labelled = defaulting::with_labels(set, &steps);
    // The marks hold the pods of a set, which nothing would ever start if the set is not managed.
    if defaulting::must_suspend(labelled.queue_name(), facts) {
        steps.extend(templates(&labelled));
    }
    steps
}

/// The templates carry queue and priority class of the set, and what says that the set holds their pods.
fn templates(set: &LeaderWorkerSet) -> Vec<PatchAdd> {
    let names = [LEADER, WORKER].into_iter();
    names.filter_map(|name| template(set, name, set.stored_template(name)?)).collect()
}

fn template(set: &LeaderWorkerSet, name: &str, stored: &Value) -> Option<PatchAdd> {
    let before = template_metadata::stored(Some(stored));
    let mut metadata = before.clone();
    let labels = [QUEUE_NAME, PRIORITY_CLASS].into_iter();
    let labels = labels.filter_map(|key| Some((key, set.label(key)?)));
    template_metadata::insert(
        &mut metadata,
        "labels",
        labels.filter(|(_, value)| !value.is_empty()),
    );
    let grouped =
        before.get("annotations").is_some_and(|all| all.get(POD_SET_GROUP_NAME).is_some());
    // Ranks of workers begin after that of the leader, unless both are one group of a topology.
    let offset = name == WORKER && set.has_leader_template() && !grouped;
    let annotations = [(POD_SUSPENDING_PARENT, FRAMEWORK), (POD_GROUP_SERVING, "true")];
    let offset = offset.then_some((POD_INDEX_OFFSET, "1"));
    template_metadata::insert(&mut metadata, "annotations", annotations.into_iter().chain(offset));
    let path = format!("/spec/leaderWorkerTemplate/{name}/metadata");
    (metadata != before).then_some(PatchAdd { path, value: metadata })
}
