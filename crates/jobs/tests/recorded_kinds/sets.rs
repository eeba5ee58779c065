//! Workloads and members of sets, as upstream's manager made them.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::{
    annotations::{
        POD_GROUP_FAST_ADMISSION, POD_GROUP_POD_INDEX_LABEL, POD_GROUP_TOTAL_COUNT, ROLE_HASH,
    },
    labels::{POD_GROUP_NAME, PREBUILT_WORKLOAD_NAME, PRIORITY_CLASS},
};
use jobs::{
    GenericJob, JobObject, Pod,
    construct_workload::{KeysToCopy, WorkloadPriority},
    replicas::{one_workload, replica_of, replica_workload},
};
use serde_json::{Value, json};

use super::{decode, gates, kinds_recording::cases, normal};

/// Files of kinds of sets, with the number of Workloads and members that are compared of each.
const FILES: [(&str, &str, &str, (usize, usize)); 2] = [
    ("leaderworkerset", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", (10, 37)),
    ("statefulset", "apps/v1", "StatefulSet", (11, 35)),
];

/// A map of the metadata, without the hash at the end of names of Workloads.
fn map(object: &Value, name: &str) -> BTreeMap<String, String> {
    let entries = object["metadata"][name].as_object().cloned().unwrap_or_default().into_iter();
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    entries.map(|(key, value)| (key, without_hash(&text(value)))).collect()
}

fn without_hash(name: &str) -> String {
    match name.rsplit_once('-') {
        Some((begin, _)) if FILES.iter().any(|one| name.starts_with(&format!("{}-", one.0))) => {
            begin.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// Spec and metadata of a Workload, without what follows from its life.
fn workload_of(object: &Value) -> Value {
    json!({
        "name": without_hash(object["metadata"]["name"].as_str().unwrap_or_default()),
        "annotations": map(object, "annotations"),
        "podSets": normal(object["spec"]["podSets"].clone()),
    })
}

fn compare_workload(set: &JobObject, theirs: &Value) -> Option<String> {
    let mut recorded = theirs.clone();
    recorded["status"] = json!({});
    // Upstream removes the finalizer of some before there are pods.
    recorded["metadata"]["finalizers"] = Value::Null;
    let workload = serde_json::from_value(recorded).expect("a Workload decodes");
    let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
    let ours = json!(match replica_of(&workload) {
        Some(replica) => replica_workload(set, replica, priority, &copied, gates()),
        None => one_workload(set, priority, &copied, gates()),
    });
    let (ours, theirs) = (workload_of(&ours), workload_of(theirs));
    (ours != theirs).then(|| format!("\n  theirs {theirs}\n  ours   {ours}"))
}

/// Takes from a recorded member what made it one, and adopts it again. One that joined before has its group and its class.
fn compare_member(set: &JobObject, theirs: &Value, joins: bool) -> Option<String> {
    let mut pod: Pod = serde_json::from_value(theirs.clone()).expect("a pod decodes");
    let annotations = pod.metadata.annotations.get_or_insert_default();
    let always = [PREBUILT_WORKLOAD_NAME, POD_GROUP_TOTAL_COUNT, ROLE_HASH];
    let first = [POD_GROUP_NAME, POD_GROUP_FAST_ADMISSION, POD_GROUP_POD_INDEX_LABEL];
    always.iter().chain(first.iter().filter(|_| joins)).for_each(|key| {
        annotations.remove(*key);
    });
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.remove("kueue.x-k8s.io/managed");
    // Templates of other kinds have the class.
    if joins && set.kind().pods().is_some() {
        labels.remove(PRIORITY_CLASS);
    }
    let ours = json!(set.adopted(&pod, gates()).expect("it is adopted"));
    let both = |name| (map(&ours, name), map(theirs, name));
    let different = |(ours, theirs)| ours != theirs;
    let same = ["labels", "annotations"].into_iter().all(|name| !different(both(name)));
    (!same).then(|| format!("\n  theirs {}\n  ours   {}", theirs["metadata"], ours["metadata"]))
}

#[test]
fn sets_make_the_workloads_and_members_of_upstream() {
    for (file, api_version, kind, expected) in FILES {
        let (n_compared, wrong) = compare_lives(file, (api_version, kind));
        assert_eq!(wrong, Vec::<String>::new(), "\n{}", wrong.join("\n"));
        assert_eq!(n_compared, expected, "every recorded one of {file} is compared");
    }
}

/// The number of compared Workloads and members, and what differs.
fn compare_lives(file: &str, ids: (&str, &str)) -> ((usize, usize), Vec<String>) {
    let (mut n_workloads, mut n_members, mut wrong) = (0, 0, Vec::new());
    for case in cases(file).iter().filter(|case| case.name().contains("/life/")) {
        let (mut set, mut known) = (None, BTreeSet::new());
        for step in case.steps() {
            let what = format!("{} step {}", case.name(), step.number());
            set = step.changed(ids.1).last().map(|set| decode(ids.0, ids.1, set)).or(set);
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
                let joins = known.insert(member["metadata"]["name"].to_string());
                let difference = compare_member(set, member, joins);
                wrong.extend(difference.map(|text| format!("{what}: {text}")));
            }
        }
    }
    ((n_workloads, n_members), wrong)
}
