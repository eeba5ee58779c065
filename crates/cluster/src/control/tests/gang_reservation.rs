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
    let link = Connection { active: true, reason: "Active", message: String::new() };
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
    let mut control = manager(policy);
    let applied = |value| Change::Apply(shared(value));
    control.observe(ManagerInput::Workload(applied(waiting("running", 1, 4))), NOW);
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
        assert!(
            control.dispatching.registry.fleet().reservations().is_empty(),
            "its queue is closed"
        );
        kept(control, now, local("None", "31"));
    };
    assert!(!small_gets_in_when(&json!({}), 40, held), "it went on waiting");
}
