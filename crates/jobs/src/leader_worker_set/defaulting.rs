//! What the webhook sets in the templates of a set (docs/reference/kueue.md §5.3, §7.8).

use crds::names::{
    annotations::{POD_GROUP_SERVING, POD_INDEX_OFFSET, POD_SET_GROUP_NAME, POD_SUSPENDING_PARENT},
    labels::{PRIORITY_CLASS, QUEUE_NAME},
};
use serde_json::{Map, Value, json};

use super::set::{FRAMEWORK, LEADER, LeaderWorkerSet, WORKER};
use crate::{
    GenericJob, JobGates,
    defaulting::{self, DefaultingFacts, PatchAdd},
};

/// Labels of the set that are decided as for every job, and the templates of a managed set.
pub(super) fn of_creation(
    set: &LeaderWorkerSet,
    facts: DefaultingFacts,
    gates: JobGates,
) -> Vec<PatchAdd> {
    let mut steps = defaulting::default(set, facts, gates);
    let mut labelled = set.clone();
    for key in [QUEUE_NAME, PRIORITY_CLASS] {
        let path = format!("/metadata/labels/{}", key.replace('/', "~1"));
        let step = steps.iter().find(|step| step.path == path);
        if let Some(value) = step.and_then(|step| step.value.as_str()) {
            labelled = labelled.with_label(key, value);
        }
    }
    let without_queue = facts.manage_without_queue_name && facts.namespace_managed;
    if (!labelled.queue_name().is_empty() || without_queue) && !facts.ancestor_managed {
        steps.extend(templates(&labelled));
    }
    steps
}

/// The templates carry queue and priority class of the set, and what says that the set holds their pods.
pub(super) fn templates(set: &LeaderWorkerSet) -> Vec<PatchAdd> {
    let names = [LEADER, WORKER].into_iter();
    names.filter_map(|name| template(set, name, set.stored_template(name)?)).collect()
}

fn template(set: &LeaderWorkerSet, name: &str, stored: &Value) -> Option<PatchAdd> {
    let before = stored.get("metadata").filter(|metadata| metadata.is_object());
    let before = before.cloned().unwrap_or_else(|| json!({}));
    let mut metadata = before.clone();
    let labels = [QUEUE_NAME, PRIORITY_CLASS].into_iter();
    let labels = labels.filter_map(|key| Some((key, set.label(key)?)));
    insert(&mut metadata, "labels", labels.filter(|(_, value)| !value.is_empty()));
    let grouped =
        before.get("annotations").is_some_and(|all| all.get(POD_SET_GROUP_NAME).is_some());
    // Ranks of workers begin after that of the leader, unless both are one group of a topology.
    let offset = name == WORKER && set.has_leader_template() && !grouped;
    let annotations = [(POD_SUSPENDING_PARENT, FRAMEWORK), (POD_GROUP_SERVING, "true")];
    let offset = offset.then_some((POD_INDEX_OFFSET, "1"));
    insert(&mut metadata, "annotations", annotations.into_iter().chain(offset));
    let path = format!("/spec/leaderWorkerTemplate/{name}/metadata");
    (metadata != before).then_some(PatchAdd { path, value: metadata })
}

/// Adds entries to a map of the metadata.
fn insert<'a>(metadata: &mut Value, map: &str, entries: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut entries = entries.peekable();
    let Some(fields) = metadata.as_object_mut().filter(|_| entries.peek().is_some()) else {
        return;
    };
    let stored = fields.entry(map).or_insert(Value::Null);
    if !stored.is_object() {
        *stored = Value::Object(Map::new());
    }
    for (key, value) in entries {
        stored[key] = json!(value);
    }
}
