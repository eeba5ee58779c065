//! Workloads and members of sets of replicas, as upstream's manager made them.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::{
    annotations::{POD_GROUP_TOTAL_COUNT, ROLE_HASH},
    labels::{POD_GROUP_NAME, PREBUILT_WORKLOAD_NAME},
};
use jobs::{
    GenericJob, JobObject, Pod,
    construct_workload::{KeysToCopy, WorkloadPriority},
    replicas::{replica_of, replica_workload},
};
use serde_json::{Value, json};

use super::{decode, gates, kinds_recording::cases, normal};

const LWS: (&str, &str) = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet");

/// A map of the metadata, without the hash at the end of names of Workloads.
fn map(object: &Value, name: &str) -> BTreeMap<String, String> {
    let entries = object["metadata"][name].as_object().cloned().unwrap_or_default().into_iter();
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    entries.map(|(key, value)| (key, without_hash(&text(value)))).collect()
}

fn without_hash(name: &str) -> String {
    match name.rsplit_once('-') {
        Some((begin, _)) if name.starts_with("leaderworkerset-") => begin.to_owned(),
        _ => name.to_owned(),
    }
}

/// Spec and metadata of a Workload, without what follows from its life.
fn workload_of(object: &Value) -> Value {
    json!({
        "name": without_hash(object["metadata"]["name"].as_str().unwrap_or_default()),
        "annotations": map(object, "annotations"),
        "podSets": normal(object["spec"]["podSets"].clone()),
        "finalizers": object["metadata"].get("finalizers"),
    })
}

fn compare_workload(set: &JobObject, theirs: &Value) -> Option<String> {
    let mut recorded = theirs.clone();
    recorded["status"] = json!({});
    let workload = serde_json::from_value(recorded).expect("a Workload decodes");
    let replica = replica_of(&workload).expect("it has an index");
    let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
    let ours = json!(replica_workload(set, replica, priority, &copied, gates()));
    let (ours, theirs) = (workload_of(&ours), workload_of(theirs));
    (ours != theirs).then(|| format!("\n  theirs {theirs}\n  ours   {ours}"))
}

/// Takes from a recorded member what made it one, and adopts it again.
fn compare_member(set: &JobObject, theirs: &Value) -> Option<String> {
    let mut pod: Pod = serde_json::from_value(theirs.clone()).expect("a pod decodes");
    let annotations = pod.metadata.annotations.get_or_insert_default();
    for key in [POD_GROUP_NAME, PREBUILT_WORKLOAD_NAME, POD_GROUP_TOTAL_COUNT, ROLE_HASH] {
        annotations.remove(key);
    }
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.remove("kueue.x-k8s.io/managed");
    let ours = json!(set.adopted(&pod, gates()).expect("it is adopted"));
    let both = |name| (map(&ours, name), map(theirs, name));
    let different = |(ours, theirs)| ours != theirs;
    let same = ["labels", "annotations"].into_iter().all(|name| !different(both(name)));
    (!same).then(|| format!("\n  theirs {}\n  ours   {}", theirs["metadata"], ours["metadata"]))
}

#[test]
fn sets_make_the_workloads_and_members_of_upstream() {
    let (mut n_workloads, mut n_members, mut wrong) = (0, 0, Vec::new());
    for case in cases("leaderworkerset").iter().filter(|case| case.name().contains("/life/")) {
        let (mut set, mut known) = (None, BTreeSet::new());
        for step in case.steps() {
            let what = format!("{} step {}", case.name(), step.number());
            set = step.changed(LWS.1).last().map(|set| decode(LWS.0, LWS.1, set)).or(set);
            let Some(set) = &set else { continue };
            // The templates of a Workload are those of its creation.
            let workloads = step.changed("Workload").into_iter();
            for workload in
                workloads.filter(|one| known.insert(one["metadata"]["name"].to_string()))
            {
                n_workloads += 1;
                wrong.extend(compare_workload(set, workload).map(|text| format!("{what}: {text}")));
            }
            let members = step.changed("Pod").into_iter();
            let group = format!("/metadata/annotations/{}", POD_GROUP_NAME.replace('/', "~1"));
            for member in members.filter(|pod| pod.pointer(&group).is_some()) {
                n_members += 1;
                wrong.extend(compare_member(set, member).map(|text| format!("{what}: {text}")));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "\n{}", wrong.join("\n"));
    assert_eq!((n_workloads, n_members), (10, 37), "every recorded one is compared");
}
