//! Room for the oldest blocked gang, from what is written in the API to what is decided about others.

use crds::v1alpha1::DispatchPolicy;
use crds::v1beta2::{MultiKueueCluster, MultiKueueConfig};
use jiff::ToSpan;

use super::*;

const API: &str = "kueue.x-k8s.io/v1beta2";

/// A manager with one worker of two nodes of 8 cpus, one of them half in use.
pub(super) fn manager(policy: &Value) -> ManagerControl {
    let mut control = leading(capacity_settings());
    let active = json!([{"type": "Active", "status": "True", "reason": "Active", "message": ""}]);
    let queue = json!({
        "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": "cq", "resourceVersion": "1"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [{
                "coveredResources": ["cpu"],
                "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "100"}]}],
            }],
            "admissionChecksStrategy": {"admissionChecks": [{"name": "workers"}]},
        },
    });
    let check = json!({
        "apiVersion": API, "kind": "AdmissionCheck",
        "metadata": {"name": "workers", "resourceVersion": "2"},
        "spec": {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"},
        },
        "status": {"conditions": active},
    });
    let config = json!({
        "apiVersion": API, "kind": "MultiKueueConfig",
        "metadata": {"name": "all", "resourceVersion": "3", "annotations": {"sluice.dev/policy": "p"}},
        "spec": {"clusters": ["east"]},
    });
    let policy = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy",
        "metadata": {"name": "p", "resourceVersion": "4"}, "spec": policy,
    });
    let east = json!({
        "apiVersion": API, "kind": "MultiKueueCluster",
        "metadata": {"name": "east", "uid": "east-1", "resourceVersion": "5"},
        "spec": {"clusterSource": {"kubeConfig": {"location": "east", "locationType": "Secret"}}},
    });
    let kept = |input: &ManagerInput| {
        !matches!(
            input,
            ManagerInput::ClusterQueue(_)
                | ManagerInput::AdmissionCheck(_)
                | ManagerInput::Workload(_)
                | ManagerInput::Job(..)
        )
    };
    lists().into_iter().filter(kept).for_each(|list| control.observe(list, NOW));
    let link = ConnectionStatus { active: true, reason: "Active", message: String::new() };
    let own = [
        ManagerInput::ClusterQueue(list(vec![queue])),
        ManagerInput::AdmissionCheck(list(vec![check])),
        ManagerInput::MultiKueueConfig(list::<MultiKueueConfig>(vec![config])),
        ManagerInput::DispatchPolicy(list::<DispatchPolicy>(vec![policy])),
        ManagerInput::MultiKueueCluster(list::<MultiKueueCluster>(vec![east])),
        ManagerInput::Workload(list(vec![])),
        ManagerInput::Job(batch_job(), jobs(vec![])),
        ManagerInput::Worker("east".into(), WorkerInput::Connection(link)),
        ManagerInput::Worker("east".into(), WorkerInput::Workload(list(vec![]))),
        ManagerInput::Worker("east".into(), WorkerInput::Job(batch_job(), jobs(vec![]))),
        ManagerInput::Worker("east".into(), WorkerInput::Capacity(list(vec![capacity()]))),
    ];
    own.into_iter().for_each(|input| control.observe(input, NOW));
    control
}

pub(super) fn capacity() -> Value {
    let node = |free: &str| {
        json!({
            "count": 1, "free": {"cpu": free, "pods": "9"}, "size": {"cpu": "8", "pods": "10"},
        })
    };
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "ClusterCapacity",
        "metadata": {"name": "local", "resourceVersion": "6"},
        "status": {
            "protocol": 1, "mode": "Thin", "asOf": "1",
            "kinds": [{"group": "batch", "version": "v1", "kind": "Job"}],
            "nodeClasses": [node("8"), node("4")],
        },
    })
}

/// A Workload that waits, of so many pods of so many cpus. The one named `running` is on the worker already.
pub(super) fn waiting(name: &str, pods: i32, cpus: i32) -> Value {
    let mut value = workload();
    let template = json!({"spec": {"containers": [
        {"name": "main", "resources": {"requests": {"cpu": cpus.to_string()}}},
    ]}});
    value["metadata"]["name"] = json!(name);
    value["metadata"]["uid"] = json!(name);
    value["metadata"]["ownerReferences"][0]["name"] = json!(name);
    value["spec"]["podSets"] = json!([{"name": "main", "count": pods, "template": template}]);
    if name == "running" {
        value["status"]["clusterName"] = json!("east");
        value["status"]["admission"]["podSetAssignments"] = json!([
            {"name": "main", "count": pods, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "4"}},
        ]);
    } else {
        value["status"] = json!({});
    }
    value
}

/// Whether a small Workload gets room that a gang has waited for since so many seconds.
fn small_gets_in(policy: &Value, seconds: i64) -> bool {
    small_gets_in_when(policy, seconds, |_, _| {})
}

/// The same, when something happens to the gang just before.
fn small_gets_in_when(
    policy: &Value,
    seconds: i64,
    happens: impl FnOnce(&mut ManagerControl, Timestamp),
) -> bool {
    small_gets_in_beside(policy, seconds, vec![waiting("running", 1, 4)], happens)
}

/// The same, when the first list has these Workloads.
fn small_gets_in_beside(
    policy: &Value,
    seconds: i64,
    listed: Vec<Value>,
    happens: impl FnOnce(&mut ManagerControl, Timestamp),
) -> bool {
    let mut control = manager(policy);
    let applied = |value| Change::Apply(shared(value));
    control.observe(ManagerInput::Workload(list(listed)), NOW);
    let mut clone = waiting("running", 1, 4);
    clone["metadata"]["resourceVersion"] = json!("1");
    let clones = WorkerInput::Workload(list(vec![clone]));
    control.observe(ManagerInput::Worker("east".into(), clones), NOW);
    control.observe(ManagerInput::Workload(applied(waiting("gang", 2, 8))), NOW);
    control.decide(NOW);
    let gets = |control: &ManagerControl, name: &str| {
        let key = Key { namespace: Some("ns".into()), name: name.into() };
        control
            .core
            .workloads
            .get(&key)
            .is_some_and(|one| one.transitions().reservation().is_some())
    };
    assert!(!gets(&control, "gang"), "there is room for half of it");
    let later = NOW + seconds.seconds();
    happens(&mut control, later);
    control.observe(ManagerInput::Workload(applied(waiting("small", 1, 4))), later);
    control.decide(later);
    gets(&control, "small")
}

#[test]
fn a_gang_reservation_follows_the_dispatch_policy() {
    for (policy, seconds, gets_in) in [
        (json!({}), 29, true),
        (json!({}), 30, false),
        (json!({"reservation": {"afterSeconds": 60}}), 59, true),
        (json!({"reservation": {"afterSeconds": 60}}), 60, false),
        (json!({"reservation": {"maxShare": 50}}), 99, true),
    ] {
        assert_eq!(small_gets_in(&policy, seconds), gets_in, "{policy} after {seconds} s");
    }
}

/// The running Workload, admitted now, and three finished ones of each origin that ran for so many seconds.
fn running_beside(history: &[(&str, i64)]) -> Vec<Value> {
    let condition = |r#type: &str, reason: &str, at: Timestamp| {
        json!({"type": r#type, "status": "True", "reason": reason, "message": "",
               "lastTransitionTime": at.to_string()})
    };
    let admitted = |at| {
        [condition("QuotaReserved", "QuotaReserved", at), condition("Admitted", "Admitted", at)]
    };
    let mut running = waiting("running", 1, 4);
    running["status"]["conditions"] = json!(admitted(NOW));
    let finished = |(origin, seconds): &(&str, i64), number: i64| {
        let end = NOW - 1000.seconds();
        let mut one = waiting(&format!("{origin}-{number}"), 1, 4);
        let ended = condition("Finished", "Succeeded", end);
        let conditions = admitted(end - seconds.seconds());
        one["status"]["conditions"] = json!([conditions[0], conditions[1], ended]);
        one
    };
    let finished = history.iter().flat_map(|one| (1..4).map(move |number| finished(one, number)));
    // A list is in the order of names: `running` precedes `running-1`.
    [running].into_iter().chain(finished).collect()
}

#[test]
fn run_times_are_learned_from_finished_workloads_of_the_first_list() {
    let policy = json!({});
    for (history, gets_in) in [
        (vec![], false),
        (vec![("running", 60)], false),
        (vec![("small", 20)], false),
        (vec![("running", 60), ("small", 20)], true),
        (vec![("running", 60), ("small", 40)], false),
        // It runs longer than work of its origin did.
        (vec![("running", 25), ("small", 1)], false),
    ] {
        let listed = running_beside(&history);
        assert_eq!(small_gets_in_beside(&policy, 30, listed, |_, _| {}), gets_in, "{history:?}");
    }
}

#[test]
fn run_times_are_learned_from_workloads_that_finish() {
    let all = running_beside(&[("running", 60), ("small", 20)]);
    let (finish, listed): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|one| one["metadata"]["name"] == "small-3");
    let finishes = |control: &mut ManagerControl, now: Timestamp| {
        for one in finish {
            control.observe(ManagerInput::Workload(Change::Apply(shared(one))), now);
            control.decide(now);
        }
    };
    assert!(!small_gets_in_beside(&json!({}), 30, listed.clone(), |_, _| {}), "two say too little");
    assert!(small_gets_in_beside(&json!({}), 30, listed, finishes));
}

#[test]
fn nothing_is_reserved_for_a_gang_that_is_not_eligible() {
    let gang = |version: &str, field: &str, value: Value| {
        let mut gang = waiting("gang", 2, 8);
        gang["metadata"]["resourceVersion"] = json!(version);
        gang["spec"][field] = value;
        ManagerInput::Workload(Change::Apply(shared(gang)))
    };
    let kept = |control: &mut ManagerControl, now: Timestamp, input: ManagerInput| {
        control.observe(input, now);
        control.decide(now);
    };
    assert!(!small_gets_in(&json!({}), 40), "it waits");
    for (field, value) in [("active", json!(false)), ("queueName", json!("another"))] {
        assert!(
            small_gets_in_when(&json!({}), 40, |control, now| {
                kept(control, now, gang("22", field, value.clone()));
            }),
            "{field}={value}"
        );
    }
    let again = |control: &mut ManagerControl, now: Timestamp| {
        kept(control, now, gang("22", "active", json!(false)));
        kept(control, now, gang("23", "active", json!(true)));
    };
    assert!(small_gets_in_when(&json!({}), 40, again), "it is as if it were new");
    let local = |policy: &str, version: &str| {
        let queue = json!({
            "apiVersion": API, "kind": "LocalQueue",
            "metadata": {"name": "lq", "namespace": "ns", "resourceVersion": version},
            "spec": {"clusterQueue": "cq", "stopPolicy": policy},
        });
        ManagerInput::LocalQueue(Change::Apply(shared(queue)))
    };
    let held = |control: &mut ManagerControl, now: Timestamp| {
        kept(control, now, local("Hold", "30"));
        assert!(control.dispatching.fleet.reservations().is_empty(), "its queue is closed");
        kept(control, now, local("None", "31"));
    };
    assert!(!small_gets_in_when(&json!({}), 40, held), "it went on waiting");
}

/// What is said about the cluster that is chosen for a Workload that declares this run time, where work of its origin took a minute.
fn said_about_choice(origin: &str, declared: &Value) -> Option<String> {
    let mut control = manager(&json!({}));
    let listed = running_beside(&[("known", 60)]);
    control.observe(ManagerInput::Workload(list(listed)), NOW);
    let mut chosen = waiting(&format!("{origin}-9"), 1, 4);
    chosen["spec"]["maximumExecutionTimeSeconds"] = declared.clone();
    control.observe(ManagerInput::Workload(Change::Apply(shared(chosen.clone()))), NOW);
    let step = control.decide(NOW);
    let order = step.orders.iter().find(|order| {
        let body: Value = serde_json::from_slice(order.write.request().body()).unwrap_or_default();
        body["status"]["nominatedClusterNames"] == json!(["east"])
    });
    let order = order.expect("it is nominated");
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    chosen["metadata"]["resourceVersion"] = json!("90");
    chosen["status"] = body["status"].clone();
    control.answered(&order.ticket.clone(), WriteOutcome::done(chosen), NOW);
    let events = control.decide(NOW).events;
    let said = events.iter().find(|one| &*one.reason == "ClusterChosen");
    said.map(|one| one.note.clone())
}

#[test]
fn the_run_time_of_a_choice_is_shown_with_its_source() {
    let said = |origin, declared| said_about_choice(origin, &declared);
    let choice = |run_time: &str| {
        Some(format!("Worker cluster east was chosen; the workload is taken to run for {run_time}"))
    };
    assert_eq!(said("known", json!(90)), choice("90s (declared)"));
    assert_eq!(said("known", json!(null)), choice("61s (learned)"));
    assert_eq!(said("unknown", json!(null)), None);
}
