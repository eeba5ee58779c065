//! Objects that are wrong, or go in a wrong way: named once, and nothing else waits for them.

use runtime::{
    events::{EventRecord, EventType},
    watch::Unavailable,
};

use super::{
    cluster::{Cluster, json_merge},
    *,
};

const TRAINING: &str = "
framework: example.com/training
group: example.com
version: v1
kind: Training
plural: trainings
suspend: /spec/suspend
fields:
  podSets:
  - { name: { fixed: main }, template: /spec/template }
  active: { anyAbove: [/status/active] }
";

fn training_kind() -> Kind {
    Kind::parse(TRAINING).expect("a kind")
}

fn cluster() -> Cluster {
    let kinds = JobKinds::configured(
        &Configuration::default(),
        &Gates::default(),
        &Kinds::new([training_kind()]),
    );
    let file = Configuration::default();
    let mut cluster = Cluster::with(ManagerSettings::new(&file, &Gates::default(), &kinds, false));
    let none = Change::Reset { objects: vec![], removed: vec![] };
    cluster.observe(ManagerInput::Job(training_kind(), none));
    cluster
}

fn training(number: usize) -> Arc<JobObject> {
    let object = json!({
        "metadata": {
            "name": format!("t-{number}"), "namespace": "ns", "uid": format!("t-{number}"),
            "resourceVersion": "20", "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {"suspend": true, "template": {"spec": {"containers": [
            {"name": "main", "resources": {"requests": {"cpu": "1"}}},
        ]}}},
    });
    Arc::new(training_kind().decode(object).expect("it decodes"))
}

fn observe_job(cluster: &mut Cluster, fields: &Value) {
    let mut object = json!(job());
    json_merge(&mut object, fields);
    let object = Arc::new(batch_job().decode(object).expect("a Job decodes"));
    cluster.observe(ManagerInput::Job(batch_job(), Change::Apply(object)));
}

fn workloads_of(cluster: &Cluster, kind: &str) -> usize {
    let kind = format!("{kind}-");
    cluster.workloads.keys().filter(|name| name.starts_with(&kind)).count()
}

/// The API server deletes all jobs of a CRD before it stops to serve them; the watch ends when half of the deletions were observed. The
/// garbage collector knows no owner of the kind any more, so the manager deletes the Workloads of jobs that are gone for certain.
#[test]
fn a_crd_that_is_deleted_under_a_hundred_jobs_leaves_no_workload_held_and_no_other_job_waiting() {
    let mut cluster = cluster();
    let all: Vec<Arc<JobObject>> = (0..100).map(training).collect();
    let removed = (0..100).map(|number| Key {
        namespace: Some("ns".into()),
        name: format!("t-{number}").as_str().into(),
    });
    let removed: Vec<Key> = removed.collect();
    let listed = Change::Reset { objects: all, removed: vec![] };
    cluster.observe(ManagerInput::Job(training_kind(), listed)).settle();
    assert_eq!(workloads_of(&cluster, "training"), 100);
    let held = |cluster: &Cluster| {
        let all = cluster.workloads.values();
        all.filter(|one| one["metadata"]["finalizers"] != json!([])).count()
    };
    assert_eq!(held(&cluster), 100);

    let (observed, unobserved) = removed.split_at(50);
    for key in observed {
        let deleted = Change::Delete(key.clone());
        cluster.observe(ManagerInput::Job(training_kind(), deleted)).settle();
    }
    assert_eq!(workloads_of(&cluster, "training"), 100, "those of a served kind are collected");
    let gone = Change::Unavailable { reason: Unavailable::NotServed, removed: unobserved.to_vec() };
    cluster.observe(ManagerInput::Job(training_kind(), gone)).settle();
    assert_eq!(held(&cluster), 0, "none waits for its job");
    assert_eq!(workloads_of(&cluster, "training"), 50, "the others may exist in another version");
    observe_job(&mut cluster, &json!({}));
    cluster.settle();
    assert_eq!(workloads_of(&cluster, "job"), 1, "other kinds go on");
}

#[test]
fn owners_in_a_circle_are_named_on_the_job_and_hold_up_no_other() {
    let mut cluster = Cluster::new();
    let owned = |name: &str, by: &str| {
        json!({"metadata": {
            "name": name, "uid": name, "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": by, "uid": by, "controller": true,
            }],
        }})
    };
    observe_job(&mut cluster, &owned("a", "b"));
    observe_job(&mut cluster, &owned("b", "a"));
    observe_job(&mut cluster, &json!({}));
    cluster.settle();
    let is_counted = |event: &EventRecord| event.event_type == EventType::Warning;
    assert_eq!(cluster.events.iter().filter(|event| is_counted(event)).count(), 2);
    let events = cluster.take_events();
    let named: Vec<&String> =
        events.iter().filter(|event| event.contains("JobOwnersCyclic")).collect();
    let note = "batch/job-kueue-controller JobOwnersCyclic: an owner of the job is owned by itself";
    assert_eq!(named, [&format!("a {note}"), &format!("b {note}")], "{events:?}");
    let train = |name: &&String| name.starts_with("job-train-");
    assert_eq!(cluster.workloads.keys().filter(train).count(), 1);
}

/// The manager was down when it was made, and no webhook suspended it.
#[test]
fn a_job_that_runs_past_its_queue_is_stopped_first() {
    let mut cluster = Cluster::new();
    observe_job(&mut cluster, &json!({"spec": {"suspend": false}}));
    cluster.settle();
    cluster.answer_job("train", &WriteOutcome::done(json!(job())));
    let stopped = |event: &EventRecord| format!("{:?} {}", event.event_type, event.reason);
    let events: Vec<String> = cluster.events.iter().map(stopped).collect();
    assert_eq!(events, ["Normal Stopped", "Warning RanWithoutWorkload"], "one of them is counted");
    assert_eq!(workloads_of(&cluster, "job"), 0, "it takes no quota while it stops");
}
