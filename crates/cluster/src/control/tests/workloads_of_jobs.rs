//! What a Workload follows of its job, and what is announced about the job.

use super::cluster::{Cluster, json_merge};
use super::*;

/// Shows the manager the job with these fields.
pub(super) fn observe_job(cluster: &mut Cluster, version: &str, fields: &Value) {
    let mut object = json!(job());
    json_merge(&mut object, fields);
    object["metadata"]["resourceVersion"] = json!(version);
    let object = Arc::new(batch_job().decode(object).expect("a Job decodes"));
    cluster.observe(ManagerInput::Job(batch_job(), Change::Apply(object)));
}

pub(super) fn class(name: &str, value: i32) -> ManagerInput {
    let class = json!({"metadata": {"name": name, "resourceVersion": "1"}, "value": value});
    ManagerInput::WorkloadPriorityClass(Change::Apply(shared(class)))
}

pub(super) fn labels(name: &str, value: &str) -> Value {
    json!({"metadata": {"labels": {name: value}}})
}

fn the_workload(cluster: &Cluster) -> &Value {
    cluster.workloads.values().next().expect("a Workload")
}

#[test]
fn a_copy_of_multikueue_keeps_the_priority_of_its_manager() {
    let reference =
        json!({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"});
    let spec = json!({"spec": {"priority": 100, "priorityClassRef": reference}});
    let mut copy = labels("kueue.x-k8s.io/multikueue-origin", "multikueue");
    json_merge(&mut copy, &spec);
    let mut cluster = Cluster::new();
    cluster.observe(class("high", 5)).workload("own", 1, &spec).workload("copy", 1, &copy).settle();
    let priority =
        |cluster: &Cluster, name: &str| cluster.workloads[name]["spec"]["priority"].clone();
    assert_eq!((priority(&cluster, "own"), priority(&cluster, "copy")), (json!(5), json!(100)));
    cluster.observe(class("high", 6)).settle();
    assert_eq!((priority(&cluster, "own"), priority(&cluster, "copy")), (json!(6), json!(100)));
}

#[test]
fn a_priority_that_is_edited_stays_until_its_class_changes() {
    let of_class = |name: &str| json!({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": name});
    let edited = |priority: i32| json!({"spec": {"priority": priority}});
    let mut cluster = Cluster::new();
    cluster.observe(class("high", 5)).observe(class("other", 5));
    let fields = json!({"spec": {"priority": 5, "priorityClassRef": of_class("high")}});
    cluster.workload("w", 1, &fields).settle();
    let priority = |cluster: &Cluster| cluster.workloads["w"]["spec"]["priority"].clone();
    cluster.workload("w", 1, &edited(100)).settle();
    assert_eq!(priority(&cluster), 100);
    cluster.observe(class("high", 5)).settle();
    assert_eq!(priority(&cluster), 100, "the value of the class is the same");
    cluster.observe(class("high", 6)).settle();
    assert_eq!(priority(&cluster), 6);
    cluster.workload("w", 1, &edited(100)).settle();
    assert_eq!(priority(&cluster), 100);
    let other = json!({"spec": {"priorityClassRef": of_class("other")}});
    cluster.workload("w", 1, &other).settle();
    assert_eq!(priority(&cluster), 5, "another class");
    cluster.workload("w", 1, &edited(100)).settle();
    let key = Key { namespace: None, name: "other".into() };
    cluster.observe(ManagerInput::WorkloadPriorityClass(Change::Delete(key))).settle();
    cluster.observe(class("other", 5)).settle();
    assert_eq!(priority(&cluster), 5, "the class was created again");
}

/// The change is taken back before the first write is answered.
#[test]
fn a_class_that_is_changed_and_changed_back_leaves_its_value() {
    let reference =
        json!({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"});
    let fields = json!({"spec": {"priority": 5, "priorityClassRef": reference}});
    let mut cluster = Cluster::new();
    cluster.observe(class("high", 5)).workload("w", 1, &fields).settle();
    cluster.observe(class("high", 6));
    let in_flight = cluster.control.decide(cluster.now);
    assert_eq!(in_flight.orders.len(), 1, "{:?}", in_flight.orders);
    cluster.observe(class("high", 5));
    let meanwhile = cluster.control.decide(cluster.now);
    assert_eq!(meanwhile.orders.len(), 0, "{:?}", meanwhile.orders);
    cluster.take(in_flight);
    cluster.settle();
    assert_eq!(cluster.workloads["w"]["spec"]["priority"], 5, "{:?}", cluster.writes);
}

#[test]
fn a_class_that_is_changed_on_the_job_reaches_its_workload() {
    // It does not fit: a start would be in flight.
    let with_class = |class: &str| {
        let mut fields = labels("kueue.x-k8s.io/priority-class", class);
        fields["spec"] = json!({"parallelism": 9});
        fields
    };
    let mut cluster = Cluster::new();
    cluster.observe(class("low", -10)).observe(class("high", 1000));
    observe_job(&mut cluster, "20", &with_class("low"));
    cluster.settle();
    let name = the_workload(&cluster)["metadata"]["name"].as_str().expect("a name").to_owned();
    assert_eq!(the_workload(&cluster)["spec"]["priority"], -10);
    cluster.take_events();
    observe_job(&mut cluster, "21", &with_class("nope"));
    cluster.settle();
    assert_eq!(the_workload(&cluster)["spec"]["priorityClassRef"]["name"], "low");
    let reporter = "train batch/job-kueue-controller";
    let missing = format!(
        "{reporter} WorkloadPriorityClassNotFound: WorkloadPriorityClass \"nope\" not found"
    );
    assert_eq!(cluster.take_events(), [missing]);
    observe_job(&mut cluster, "22", &with_class("high"));
    cluster.settle();
    let spec = &the_workload(&cluster)["spec"];
    assert_eq!(
        (&spec["priorityClassRef"]["name"], &spec["priority"]),
        (&json!("high"), &json!(1000))
    );
    let updated = format!("{reporter} UpdatedWorkload: Updated workload priority class: ns/{name}");
    assert_eq!(cluster.take_events(), [updated]);
}

#[test]
fn one_of_several_admission_gates_that_is_taken_off_the_job_is_named_no_more() {
    let gates = |gates: &str| json!({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": gates}}});
    let mut cluster = Cluster::new();
    observe_job(&mut cluster, "20", &gates("a.b/c,a.b/d"));
    cluster.settle();
    let message = |cluster: &Cluster| {
        let name = cluster.workloads.keys().next().expect("a Workload").clone();
        cluster.condition(&name, "QuotaReserved")
    };
    let gated = "False AdmissionGated: Admission is gated by: ";
    assert_eq!(message(&cluster), format!("{gated}a.b/c,a.b/d"));
    observe_job(&mut cluster, "21", &gates("a.b/c"));
    cluster.settle();
    assert_eq!(message(&cluster), format!("{gated}a.b/c"));
}

#[test]
fn a_further_workload_of_a_job_that_does_not_match_is_deleted_and_announced() {
    let mut cluster = Cluster::new();
    // It does not fit: a start would be in flight.
    observe_job(&mut cluster, "20", &json!({"spec": {"parallelism": 9}}));
    cluster.settle();
    let owners = workload()["metadata"]["ownerReferences"].clone();
    let other = json!({"metadata": {
        "name": "other", "namespace": "ns", "uid": "uid-other", "ownerReferences": owners,
    }});
    cluster.workload("other", 5, &other);
    cluster.take_events();
    let step = cluster.control.decide(cluster.now);
    let deletes = |order: &&Order| order.write.request().method() == "DELETE";
    let tickets: Vec<Ticket> =
        step.orders.iter().filter(deletes).map(|order| order.ticket.clone()).collect();
    let [ticket] = &tickets[..] else { panic!("one deletion: {tickets:?}") };
    assert_eq!(&*ticket.target.key.name, "other");
    let answer = WriteOutcome::done(json!({"kind": "Status", "status": "Success"}));
    cluster.control.answered(ticket, answer, cluster.now);
    let events = cluster.control.decide(cluster.now).events.into_iter();
    let notes: Vec<String> = events.map(|one| format!("{}: {}", one.reason, one.note)).collect();
    assert_eq!(notes, ["DeletedWorkload: Deleted not matching Workload: ns/other"]);
}

#[test]
fn an_admission_gate_that_is_taken_off_the_job_reaches_its_workload() {
    let gates = |gates: Value| json!({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": gates}}});
    let mut cluster = Cluster::new();
    observe_job(&mut cluster, "20", &gates(json!("a.b/c")));
    cluster.settle();
    let reporter = "train batch/job-kueue-controller";
    let events = cluster.take_events();
    assert!(
        events[0]
            .starts_with(&format!("{reporter} CreatedWorkload: Created Workload: ns/job-train-"))
    );
    observe_job(&mut cluster, "21", &gates(Value::Null));
    cluster.settle();
    assert_eq!(
        the_workload(&cluster)["metadata"]["annotations"].get("kueue.x-k8s.io/admission-gated-by"),
        None
    );
    let events = cluster.take_events();
    assert_eq!(
        events[0],
        format!("{reporter} UpdatedWorkload: Updated workload AdmissionGatedBy to \"\"")
    );
    assert!(events.iter().any(|event| event.contains("AdmissionGateCleared")), "{events:?}");
}

#[test]
fn a_prebuilt_workload_gets_the_first_job_that_names_it_as_its_owner() {
    let mut cluster = Cluster::new();
    let prebuilt = labels("kueue.x-k8s.io/prebuilt-workload-name", "made");
    cluster.workload("made", 2, &json!({}));
    observe_job(&mut cluster, "20", &prebuilt);
    cluster.settle();
    let metadata = the_workload(&cluster)["metadata"].clone();
    assert_eq!(metadata["ownerReferences"][0]["uid"], "job-1");
    assert_eq!(metadata["ownerReferences"][0]["controller"], true);
    assert_eq!(metadata["labels"]["kueue.x-k8s.io/job-uid"], "job-1");
    // A second job does not share it.
    let mut second = prebuilt;
    json_merge(&mut second, &json!({"metadata": {"name": "second", "uid": "job-2"}}));
    observe_job(&mut cluster, "30", &second);
    cluster.settle();
    assert_eq!(the_workload(&cluster)["metadata"]["ownerReferences"], metadata["ownerReferences"]);
    assert!(cluster.condition("made", "Finished").starts_with("none"));
}

/// A job of so many pods that names the Workload `made`.
fn of_prebuilt(parallelism: usize) -> Value {
    let mut fields = labels("kueue.x-k8s.io/prebuilt-workload-name", "made");
    fields["spec"] = json!({"parallelism": parallelism});
    fields
}

#[test]
fn the_end_of_a_prebuilt_workload_is_announced_once() {
    // It does not fit: a start would be in flight.
    let mut cluster = Cluster::new();
    cluster.workload("made", 9, &json!({}));
    observe_job(&mut cluster, "20", &of_prebuilt(9));
    cluster.settle();
    cluster.take_events();
    let mut complete = of_prebuilt(9);
    complete["status"] = json!({"conditions": [
        {"type": "Complete", "status": "True", "message": "done", "reason": "CompletionsReached"},
    ]});
    observe_job(&mut cluster, "21", &complete);
    cluster.settle();
    assert!(cluster.condition("made", "Finished").starts_with("True Succeeded"));
    let finished = "train batch/job-kueue-controller FinishedWorkload: Workload 'ns/made' is declared finished";
    assert_eq!(cluster.take_events(), [finished]);
    observe_job(&mut cluster, "22", &complete);
    cluster.settle();
    assert_eq!(cluster.take_events(), [""; 0]);
}

#[test]
fn a_prebuilt_workload_that_differs_from_its_job_does_not_end_the_job() {
    let mut cluster = Cluster::new();
    cluster.workload("made", 9, &json!({}));
    observe_job(&mut cluster, "20", &of_prebuilt(10));
    cluster.settle();
    assert!(cluster.condition("made", "Finished").starts_with("True OutOfSync"));
    let events = cluster.take_events();
    assert!(events.iter().all(|event| !event.contains("FinishedWorkload")), "{events:?}");
}

#[test]
fn a_job_without_its_prebuilt_workload_is_stopped() {
    let stops_with = |fields: &Value, answer: WriteOutcome| {
        let mut cluster = Cluster::new();
        let mut running = fields.clone();
        running["spec"] = json!({"suspend": false});
        observe_job(&mut cluster, "20", &running);
        cluster.settle();
        assert_eq!(cluster.take_events(), [""; 0], "not before it is done");
        cluster.answer_job("train", &answer);
        cluster.take_events()
    };
    let stops = |fields: &Value| stops_with(fields, WriteOutcome::done(json!(job())));
    let stopped = |note: &str| format!("train batch/job-kueue-controller Stopped: {note}");
    assert_eq!(stops(&of_prebuilt(2)), [stopped("missing workload")]);
    let note = "Missing Workload; unable to restore pod templates";
    let past = "train batch/job-kueue-controller RanWithoutWorkload: The job ran past its queue and is stopped: for example no webhook suspended it, or its Workload was removed while the manager did not run";
    assert_eq!(stops(&json!({})), [stopped(note), past.to_owned()]);
    // Jobs and Workloads are watched one by one: that of a deleted job may be seen to go first.
    assert_eq!(stops_with(&json!({}), WriteOutcome::Gone), [""; 0]);
}

#[test]
fn a_workload_that_is_removed_during_a_start_is_remembered() {
    let mut cluster = Cluster::new();
    observe_job(&mut cluster, "20", &json!({}));
    cluster.settle();
    let name = the_workload(&cluster)["metadata"]["name"].as_str().expect("a name").to_owned();
    let gone = Key { namespace: Some("ns".into()), name: name.as_str().into() };
    cluster.observe(ManagerInput::Workload(Change::Delete(gone)));
    assert!(cluster.control.core.jobs.remembers_any(), "the start in flight changes its templates");
}

#[test]
fn a_job_whose_owner_is_gone_waits_for_the_garbage_collector() {
    let mut cluster = Cluster::new();
    let top = json!({"metadata": {"name": "top", "uid": "job-2"}});
    observe_job(&mut cluster, "20", &top);
    cluster.settle();
    let child = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "batch/v1", "kind": "Job", "name": "top", "uid": "job-2", "controller": true,
    }]}});
    observe_job(&mut cluster, "21", &child);
    cluster.settle();
    let names = |cluster: &Cluster| -> Vec<String> { cluster.workloads.keys().cloned().collect() };
    let before = names(&cluster);
    assert_eq!(before.len(), 1);
    let gone = Key { namespace: Some("ns".into()), name: "top".into() };
    cluster.observe(ManagerInput::Job(batch_job(), Change::Delete(gone)));
    cluster.settle();
    assert!(names(&cluster).iter().all(|name| before.contains(name)), "{:?}", names(&cluster));
}

#[test]
fn a_changed_job_that_waits_gets_its_priority_again() {
    // It does not fit: a start would be in flight.
    let of_class = |class: Value, parallelism: usize| {
        let template = json!({"spec": {"priorityClassName": class}});
        json!({"spec": {"parallelism": parallelism, "template": template}})
    };
    let mut cluster = Cluster::new();
    let class = json!({"metadata": {"name": "pod-high", "resourceVersion": "1"}, "value": 500});
    cluster.observe(ManagerInput::PriorityClass(Change::Apply(shared(class))));
    observe_job(&mut cluster, "20", &of_class(json!("pod-high"), 9));
    cluster.settle();
    let spec = the_workload(&cluster)["spec"].clone();
    assert_eq!(
        (&spec["priorityClassRef"]["name"], &spec["priority"]),
        (&json!("pod-high"), &json!(500))
    );
    observe_job(&mut cluster, "21", &of_class(Value::Null, 10));
    cluster.settle();
    let spec = &the_workload(&cluster)["spec"];
    assert_eq!(spec["podSets"][0]["count"], 10);
    assert_eq!((spec.get("priorityClassRef"), &spec["priority"]), (None, &json!(0)));
}

#[test]
fn a_job_without_a_queue_name_is_managed_with_its_children_where_that_is_configured() {
    let mut file = Configuration::default();
    file.manage_jobs_without_queue_name = true;
    let mut cluster =
        Cluster::with(ManagerSettings::new(&file, &Gates::default(), &kinds(), false));
    observe_job(&mut cluster, "20", &json!({"metadata": {"labels": null}}));
    let child = json!({"metadata": {
        "name": "child", "uid": "job-2", "labels": null,
        "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1", "controller": true,
        }],
    }});
    observe_job(&mut cluster, "21", &child);
    cluster.settle();
    assert_eq!(
        cluster.workloads.len(),
        1,
        "a child needs no Workload: {:?}",
        cluster.workloads.keys()
    );
    assert_eq!(the_workload(&cluster)["metadata"]["ownerReferences"][0]["name"], "train");
}

#[test]
fn a_child_of_an_elastic_job_stops_at_the_eviction_of_its_ancestor() {
    let gates = Gates::parse("ElasticJobsViaWorkloadSlices=true").expect("a gate");
    let settings = || ManagerSettings::new(&Configuration::default(), &gates, &kinds(), false);
    let stops = |elastic: Option<&str>, status: &Value| {
        let mut cluster = Cluster::with(settings());
        let annotations = json!({"kueue.x-k8s.io/elastic-job": elastic});
        let parent = json!({"metadata": {"annotations": annotations}, "spec": {"parallelism": 9}});
        observe_job(&mut cluster, "20", &parent);
        cluster.settle();
        let name = the_workload(&cluster)["metadata"]["name"].as_str().expect("a name").to_owned();
        cluster.workload(&name, 9, &json!({"status": status})).settle();
        let child = json!({
            "metadata": {
                "name": "child", "uid": "job-2",
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1",
                    "controller": true,
                }],
            },
            "spec": {"suspend": false},
        });
        observe_job(&mut cluster, "21", &child);
        let stops_child = |order: &Order| {
            order.ticket.purpose == Purpose::Stop && &*order.ticket.target.key.name == "child"
        };
        cluster.control.decide(cluster.now).orders.iter().any(stops_child)
    };
    let is = |condition: &str| {
        json!({"conditions": [{
            "type": condition, "status": "True", "reason": "Preempted", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]})
    };
    assert!(stops(None, &json!({})), "only an elastic job has gated pods");
    assert!(!stops(Some("true"), &json!({})));
    assert!(stops(Some("true"), &is("Evicted")));
    assert!(stops(Some("true"), &is("Finished")));
}

#[test]
fn a_finished_job_and_the_checks_that_a_job_waits_for_are_announced() {
    let mut cluster = Cluster::new();
    let checks = json!({"admissionChecks": [{"name": "one"}]});
    cluster.check("one").queue(&json!({"admissionChecksStrategy": checks}));
    observe_job(&mut cluster, "20", &json!({}));
    cluster.settle();
    let name = the_workload(&cluster)["metadata"]["name"].as_str().expect("a name").to_owned();
    cluster.take_events();
    let state = json!([{"name": "one", "state": "Pending", "message": "ETA: 5m"}]);
    cluster.workload(&name, 2, &json!({"status": {"admissionChecks": state}})).settle();
    let reporter = "train batch/job-kueue-controller";
    assert_eq!(cluster.take_events(), [format!("{reporter} UpdatedAdmissionCheck: one: ETA: 5m")]);
    let failed = json!([{"type": "Failed", "status": "True", "message": "no", "reason": "BackoffLimitExceeded"}]);
    observe_job(&mut cluster, "21", &json!({"status": {"conditions": failed}}));
    cluster.settle();
    let finished =
        format!("{reporter} FinishedWorkload: Workload 'ns/{name}' is declared finished");
    assert_eq!(cluster.take_events(), [finished]);
}

#[test]
fn a_check_that_an_eviction_has_reset_is_announced_with_the_next_reservation() {
    let mut cluster = Cluster::new();
    let checks = json!({"admissionChecks": [{"name": "one"}]});
    cluster.check("one").queue(&json!({"admissionChecksStrategy": checks}));
    observe_job(&mut cluster, "20", &json!({}));
    cluster.settle();
    let name = the_workload(&cluster)["metadata"]["name"].as_str().expect("a name").to_owned();
    cluster.take_events();
    let state = json!([{"name": "one", "state": "Retry", "message": "no room"}]);
    cluster.workload(&name, 2, &json!({"status": {"admissionChecks": state}})).settle();
    assert!(cluster.condition(&name, "QuotaReserved").starts_with("True"));
    let reset = "one: Reset to Pending after eviction. Previously: Retry";
    let announced = format!("train batch/job-kueue-controller UpdatedAdmissionCheck: {reset}");
    let mut events = cluster.take_events();
    events.retain(|event| event.starts_with("train "));
    assert_eq!(events, [announced]);
}

/// The Job of that number, controlled by the one before.
fn nested(number: usize) -> Value {
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": format!("job-{}", number.saturating_sub(1)),
        "uid": format!("uid-{}", number.saturating_sub(1)), "controller": true,
    }]);
    let owner = if number == 0 { Value::Null } else { owner };
    json!({"metadata": {
        "name": format!("job-{number}"), "uid": format!("uid-{number}"), "labels": null,
        "ownerReferences": owner,
    }})
}

#[test]
fn a_job_with_too_many_ancestors_is_reported_once() {
    let mut cluster = Cluster::new();
    for number in 0..13 {
        observe_job(&mut cluster, "20", &nested(number));
    }
    cluster.settle();
    let reported = |cluster: &mut Cluster| -> Vec<String> {
        let events = cluster.take_events().into_iter();
        events.filter(|event| event.contains("JobNestingTooDeep")).collect()
    };
    let note = "job-12 batch/job-kueue-controller JobNestingTooDeep: Terminated search for Kueue-managed Job because \
                ancestor depth exceeded limit of 10";
    let of_last: Vec<String> =
        reported(&mut cluster).into_iter().filter(|event| event.starts_with("job-12 ")).collect();
    assert_eq!(of_last, [note]);
    observe_job(&mut cluster, "21", &nested(12));
    cluster.settle();
    assert_eq!(reported(&mut cluster), [""; 0]);
}

#[test]
fn a_deleted_job_gives_its_workload_up_wherever_it_is() {
    // It does not fit: a start would be in flight.
    let mut cluster = Cluster::new();
    observe_job(&mut cluster, "20", &json!({"spec": {"parallelism": 9}}));
    cluster.settle();
    assert_eq!(
        the_workload(&cluster)["metadata"]["finalizers"],
        json!(["kueue.x-k8s.io/resource-in-use"])
    );
    // The namespace is gone from the selector's view, and the job waits for its dependents.
    let gone = Key { namespace: None, name: "ns".into() };
    cluster.observe(ManagerInput::Namespace(Change::Delete(gone)));
    let deleted = json!({"metadata": {
        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"],
    }});
    observe_job(&mut cluster, "21", &deleted);
    cluster.settle();
    assert_eq!(the_workload(&cluster)["metadata"]["finalizers"], json!([]));
}

/// The condition `Finished` of the Workload of a job of this kind after the watch has reported that the job is gone.
fn end_without(kind: &Kind, object: &Value, gates: &str) -> Option<String> {
    let mut file = Configuration::default();
    file.integrations.frameworks = ["batch/job", "pod"].map(str::to_owned).to_vec();
    let gates = Gates::parse(gates).expect("gates");
    let kinds = JobKinds::configured(&file, &gates, &Kinds::default());
    let mut cluster = Cluster::with(ManagerSettings::new(&file, &gates, &kinds, false));
    let decoded = Arc::new(kind.decode(object.clone()).expect("a job decodes"));
    for one in [batch_job(), ::jobs::pods::kind().clone()] {
        let objects = if one == *kind { vec![Arc::clone(&decoded)] } else { vec![] };
        cluster.observe(ManagerInput::Job(one, Change::Reset { objects, removed: vec![] }));
    }
    cluster.settle();
    let name = cluster.workloads.keys().next().expect("a Workload").clone();
    let mut deleted = object.clone();
    deleted["metadata"]["resourceVersion"] = json!("99");
    if object["metadata"]["finalizers"].is_array() {
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let deleted = Arc::new(kind.decode(deleted).expect("a job decodes"));
        cluster.observe(ManagerInput::Job(kind.clone(), Change::Apply(deleted)));
    }
    let gone = Key {
        namespace: Some("ns".into()),
        name: decoded.metadata().name.as_deref().expect("a name").into(),
    };
    cluster.observe(ManagerInput::Job(kind.clone(), Change::Delete(gone))).settle();
    assert_eq!(cluster.workloads[&name]["metadata"]["finalizers"], json!([]));
    Some(cluster.condition(&name, "Finished")).filter(|text| text != "none")
}

#[test]
fn the_workload_of_a_successor_of_the_name_goes_on() {
    let mut cluster = Cluster::new();
    observe_job(&mut cluster, "20", &json!({}));
    cluster.settle();
    let name = cluster.workloads.keys().next().expect("a Workload").clone();
    // The watch of Workloads is ahead of that of jobs.
    let mut of_next = cluster.workloads[&name].clone();
    of_next["metadata"]["resourceVersion"] = json!("9000");
    of_next["metadata"]["ownerReferences"][0]["uid"] = json!("job-2");
    cluster.observe(ManagerInput::Workload(Change::Apply(shared(of_next))));
    let gone = Key { namespace: Some("ns".into()), name: "train".into() };
    cluster.observe(ManagerInput::Job(batch_job(), Change::Delete(gone)));
    let step = cluster.control.decide(cluster.now);
    let purposes: Vec<Purpose> = step.orders.iter().map(|order| order.ticket.purpose).collect();
    assert_eq!(purposes, [Purpose::Unfinalize], "it is not finished");
}

#[test]
fn the_workload_of_a_job_that_is_gone_is_finished_before_it_is_collected() {
    let mut pod = json!({
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "pod-1", "resourceVersion": "20",
            "labels": {"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {
            "containers": [{"name": "c"}],
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        },
    });
    let pods = ::jobs::pods::kind().clone();
    let finished = "True OwnerNotFound: The workload's owner no longer exists";
    let on = "FinishOrphanedWorkloads=true";
    assert_eq!(end_without(&batch_job(), &json!(job()), on).as_deref(), Some(finished));
    let off = "FinishOrphanedWorkloads=false";
    assert_eq!(end_without(&batch_job(), &json!(job()), off), None);
    assert_eq!(end_without(&pods, &pod, on), None, "it may have lost the label of the watch");
    pod["metadata"]["finalizers"] = json!(["kueue.x-k8s.io/managed"]);
    assert_eq!(end_without(&pods, &pod, on).as_deref(), Some(finished));
}
