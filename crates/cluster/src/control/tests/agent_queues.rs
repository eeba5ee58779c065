//! An agent that admits by quota (docs/reference/dispatch.md §4). Clones are those of an upstream manager: they name a queue, and
//! nothing that only a manager of this project writes.

use super::{assigned_nodes::Worker, *};

/// A worker with a LocalQueue `lq` of ClusterQueue `cq`, which has this quota of cpus in a flavor of nodes with label `pool=a100`.
pub(super) fn worker(quota: &str, nodes: &[(&'static str, i64)]) -> Worker {
    let settings = AgentSettings::new(AgentPolicy::default(), &kinds().handled);
    let settings = settings.admitting(AdmissionMode::Quota);
    let mut worker = Worker::with(settings, nodes);
    list_queues(&mut worker, quota);
    worker
}

pub(super) fn list_queues(worker: &mut Worker, quota: &str) {
    let namespace = json!({"metadata": {"name": "ns", "labels": {"team": "ml"}}});
    let local_queue = json!({
        "metadata": {"name": "lq", "namespace": "ns", "resourceVersion": "1"},
        "spec": {"clusterQueue": "cq"},
    });
    for input in [
        QueueInput::Namespace(list(vec![namespace])),
        QueueInput::Cohort(list(vec![])),
        QueueInput::AdmissionCheck(list(vec![])),
        QueueInput::ResourceFlavor(list(vec![flavor()])),
        QueueInput::ClusterQueue(list(vec![queue(quota, &json!([]))])),
        QueueInput::LocalQueue(list(vec![local_queue])),
    ] {
        worker.control.observe(AgentInput::Queue(input), NOW);
    }
}

fn flavor() -> Value {
    json!({
        "metadata": {"name": "a100", "resourceVersion": "1"},
        "spec": {
            "nodeLabels": {"pool": "a100"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
    })
}

fn queue(quota: &str, checks: &Value) -> Value {
    json!({
        "metadata": {"name": "cq", "resourceVersion": "1", "uid": "cq"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"team": "ml"}},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "admissionChecksStrategy": {"admissionChecks": checks},
            "resourceGroups": [{
                "coveredResources": ["cpu"],
                "flavors": [{"name": "a100", "resources": [{"name": "cpu", "nominalQuota": quota}]}],
            }],
        },
    })
}

/// The clone of an upstream manager.
pub(super) fn dispatch(
    worker: &mut Worker,
    name: &str,
    size: (i64, i64),
    queue: &str,
    priority: i64,
) {
    worker.dispatch_as(
        name,
        size,
        &json!({}),
        &json!({
            "metadata": {"annotations": null},
            "spec": {"queueName": queue, "priority": priority},
        }),
    );
}

pub(super) fn is_true(worker: &Worker, name: &str, condition: &str) -> bool {
    let conditions = worker.clones[name]["status"]["conditions"].as_array().cloned();
    let mut conditions = conditions.unwrap_or_default().into_iter();
    conditions.any(|one| one["type"] == condition && one["status"] == "True")
}

/// Why a clone is pending, after it has been pending for a while.
fn pending_message(worker: &mut Worker, name: &str) -> String {
    worker.settle();
    let later = NOW + jiff::SignedDuration::from_secs(2);
    worker.settle_at(later);
    let conditions = worker.clones[name]["status"]["conditions"].as_array().cloned();
    let mut conditions = conditions.unwrap_or_default().into_iter();
    let reserved = conditions.find(|one| one["type"] == "QuotaReserved").unwrap_or_default();
    reserved["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_clone_is_admitted_by_its_cluster_queue_and_runs_in_the_assigned_flavor() {
    let mut worker = worker("4", &[("n1", 8)]);
    dispatch(&mut worker, "first", (1, 3), "lq", 0);
    worker.settle();
    let admission = &worker.clones["first"]["status"]["admission"];
    assert_eq!(admission["clusterQueue"], "cq");
    assert_eq!(admission["podSetAssignments"][0]["flavors"], json!({"cpu": "a100"}));
    assert!(worker.is_started("first"));
    let spec = &worker.jobs["first"]["spec"]["template"]["spec"];
    assert_eq!(spec["nodeSelector"]["pool"], "a100");
    assert_eq!(spec["nodeSelector"]["kubernetes.io/hostname"], "n1");
    assert_eq!(spec["tolerations"][0]["key"], "gpu");
    assert_eq!(spec["schedulingGates"], Value::Null);
}

#[test]
fn a_clone_with_fields_of_a_later_manager_is_admitted() {
    let mut worker = worker("4", &[("n1", 8)]);
    worker.dispatch_as(
        "first",
        (1, 3),
        &json!({"later": 1}),
        &json!({
            "metadata": {"annotations": {"sluice.dev/assignment": null, "sluice.dev/later": "value"}},
            "spec": {"queueName": "lq", "later": {"field": 1}},
            "status": {"later": [1]},
        }),
    );
    worker.settle();
    assert!(worker.is_started("first"));
}

#[test]
fn a_clone_beyond_the_quota_waits_for_the_end_of_another_one() {
    let mut worker = worker("4", &[("n1", 8)]);
    dispatch(&mut worker, "first", (1, 3), "lq", 0);
    dispatch(&mut worker, "second", (1, 3), "lq", 0);
    let message = pending_message(&mut worker, "second");
    assert!(worker.is_started("first") && !worker.is_started("second"));
    assert!(message.contains("insufficient unused quota for cpu in flavor a100"), "{message}");
    worker.clone_ends("first");
    worker.settle();
    assert!(worker.is_started("second"));
}

#[test]
fn quota_without_room_on_nodes_of_the_flavor_is_not_reserved() {
    let mut worker = worker("8", &[("n1", 2), ("n2", 2)]);
    dispatch(&mut worker, "large", (1, 3), "lq", 0);
    dispatch(&mut worker, "small", (2, 2), "lq", 0);
    worker.settle();
    assert!(worker.is_started("small") && !worker.is_started("large"));
    assert!(!is_true(&worker, "large", "QuotaReserved"));
}

#[test]
fn a_clone_of_an_unknown_queue_is_inadmissible() {
    let mut worker = worker("4", &[("n1", 8)]);
    dispatch(&mut worker, "lost", (1, 1), "none", 0);
    assert_eq!(pending_message(&mut worker, "lost"), "LocalQueue none doesn't exist");
    assert!(!worker.is_started("lost"));
}

#[test]
fn a_clone_of_higher_priority_preempts_in_its_cluster_queue() {
    let mut worker = worker("4", &[("n1", 8)]);
    dispatch(&mut worker, "low", (1, 3), "lq", 0);
    worker.settle();
    assert!(worker.is_started("low"));
    dispatch(&mut worker, "high", (1, 3), "lq", 10);
    worker.settle();
    assert!(is_true(&worker, "low", "Evicted") && is_true(&worker, "low", "Preempted"));
    assert!(!worker.is_started("low") && worker.is_started("high"));
}

#[test]
fn a_preemption_frees_the_nodes_of_bound_pods() {
    let mut worker = worker("4", &[("n1", 3), ("n2", 2)]);
    dispatch(&mut worker, "low", (1, 3), "lq", 0);
    worker.settle();
    assert_eq!(worker.bind("low", &["n1"]).len(), 1);
    worker.settle();
    dispatch(&mut worker, "high", (1, 3), "lq", 10);
    worker.settle();
    assert!(is_true(&worker, "low", "Evicted") && !worker.is_started("high"));
    worker.pod_ends("low-0");
    worker.settle();
    assert!(worker.is_started("high"));
}

#[test]
fn no_clone_is_preempted_for_one_that_no_node_would_take() {
    let mut worker = worker("4", &[("n1", 2), ("n2", 2)]);
    dispatch(&mut worker, "low", (2, 2), "lq", 0);
    worker.settle();
    assert_eq!(worker.bind("low", &["n1", "n2"]).len(), 2);
    dispatch(&mut worker, "high", (1, 3), "lq", 10);
    worker.settle();
    assert!(!is_true(&worker, "low", "Evicted") && worker.is_started("low"));
}

#[test]
fn a_clone_waits_for_the_admission_checks_of_its_cluster_queue() {
    let mut worker = worker("4", &[("n1", 8)]);
    let check = json!({
        "metadata": {"name": "budget", "resourceVersion": "1"},
        "spec": {"controllerName": "example.com/budget"},
        "status": {"conditions": [{"type": "Active", "status": "True", "reason": "A", "message": ""}]},
    });
    let queue = queue("4", &json!([{"name": "budget"}]));
    for input in [
        QueueInput::AdmissionCheck(Change::Apply(shared(check))),
        QueueInput::ClusterQueue(Change::Apply(shared(queue))),
    ] {
        worker.control.observe(AgentInput::Queue(input), NOW);
    }
    dispatch(&mut worker, "checked", (1, 1), "lq", 0);
    worker.settle();
    assert!(is_true(&worker, "checked", "QuotaReserved") && !worker.is_started("checked"));
    worker.clone_status("checked", |status| status["admissionChecks"][0]["state"] = json!("Ready"));
    worker.settle();
    assert!(is_true(&worker, "checked", "Admitted") && worker.is_started("checked"));
}

#[test]
fn nothing_is_decided_before_the_queues_were_listed() {
    let settings = AgentSettings::new(AgentPolicy::default(), &kinds().handled);
    let mut worker = Worker::with(settings.admitting(AdmissionMode::Quota), &[("n1", 8)]);
    dispatch(&mut worker, "early", (1, 1), "lq", 0);
    worker.settle();
    assert_eq!(worker.clones["early"]["status"], json!({}));
    list_queues(&mut worker, "4");
    worker.settle();
    assert!(worker.is_started("early"));
}

#[test]
fn an_agent_that_starts_again_counts_what_its_queues_have_admitted() {
    let mut worker = worker("4", &[("n1", 8)]);
    dispatch(&mut worker, "first", (1, 3), "lq", 0);
    worker.settle();
    let settings = AgentSettings::new(AgentPolicy::default(), &kinds().handled);
    worker.control = AgentControl::new(settings.admitting(AdmissionMode::Quota));
    worker.list(vec![]);
    list_queues(&mut worker, "4");
    dispatch(&mut worker, "second", (1, 3), "lq", 0);
    worker.settle();
    assert!(!worker.is_started("second"));
}
