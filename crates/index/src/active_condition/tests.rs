use crds::v1beta2;
use engine::spec::CheckSpec;
use engine::{Event, Names};
use serde_json::{Value, json};

use crate::{Index, IndexConfig, QueueActiveCondition};

fn queue(spec: Value) -> v1beta2::ClusterQueue {
    serde_json::from_value(json!({"spec": spec})).expect("a ClusterQueue")
}

fn check(controller: &str, active: &str) -> v1beta2::AdmissionCheck {
    serde_json::from_value(json!({
        "spec": {"controllerName": controller, "parameters": {"name": "config"}},
        "status": {"conditions": [{"type": "Active", "status": active}]},
    }))
    .expect("an AdmissionCheck")
}

fn flavors(names: &[&str]) -> Value {
    let flavors: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "resources": [{"name": "cpu", "nominalQuota": "1"}]}))
        .collect();
    json!([{"coveredResources": ["cpu"], "flavors": flavors}])
}

fn with_checks(rules: Value) -> Value {
    json!({"resourceGroups": flavors(&["a"]), "admissionChecksStrategy": {"admissionChecks": rules}})
}

/// An index with the flavors `a` and `tas`, and checks of every controller and state.
fn index(names: &mut Names) -> Index {
    let mut index = Index::new(IndexConfig::default());
    index.resource_flavor(names, "a", Some(&v1beta2::ResourceFlavor::default()));
    let mut tas = v1beta2::ResourceFlavor::default();
    tas.spec.topology_name = Some("racks".into());
    index.resource_flavor(names, "tas", Some(&tas));
    for (name, controller, active) in [
        ("mk", "kueue.x-k8s.io/multikueue", "True"),
        ("mk2", "kueue.x-k8s.io/multikueue", "True"),
        ("prov", "kueue.x-k8s.io/provisioning-request", "True"),
        ("other", "example.com/check", "True"),
        ("idle", "example.com/check", "False"),
    ] {
        index.admission_check(names, name, Some(&check(controller, active)));
    }
    index
}

fn activity(spec: Value) -> QueueActiveCondition {
    let mut names = Names::default();
    let mut index = index(&mut names);
    index.cluster_queue(&mut names, "q", Some(&queue(spec)));
    index.active_condition("q").expect("a queue")
}

#[test]
fn the_first_broken_rule_gives_the_reason_and_all_give_the_message() {
    let cases = [
        (json!({"resourceGroups": flavors(&["a"])}), "Ready", "Can admit new workloads"),
        (with_checks(json!([{"name": "other"}])), "Ready", "Can admit new workloads"),
        (json!({"stopPolicy": "Hold"}), "Stopped", "Can't admit new workloads: is stopped."),
        (
            json!({"stopPolicy": "HoldAndDrain", "resourceGroups": flavors(&["x", "a", "y"])}),
            "Stopped",
            "Can't admit new workloads: is stopped, references missing ResourceFlavor(s): x,y.",
        ),
        (
            json!({"resourceGroups": flavors(&["tas"])}),
            "TopologyNotFound",
            "Can't admit new workloads: there is no Topology \"racks\" for TAS flavor \"tas\".",
        ),
        (
            with_checks(json!([{"name": "z"}, {"name": "idle"}, {"name": "y"}])),
            "AdmissionCheckNotFound",
            "Can't admit new workloads: references missing AdmissionCheck(s): y,z, references inactive \
             AdmissionCheck(s): idle.",
        ),
        (
            with_checks(json!([{"name": "mk2"}, {"name": "mk"}])),
            "MultipleMultiKueueAdmissionChecks",
            "Can't admit new workloads: Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, \
             found: mk,mk2.",
        ),
        (
            with_checks(json!([{"name": "mk", "onFlavors": ["a"]}])),
            "MultiKueueAdmissionCheckAppliedPerFlavor",
            "Can't admit new workloads: Cannot specify MultiKueue AdmissionCheck per flavor, found: mk.",
        ),
        (
            with_checks(json!([{"name": "prov"}, {"name": "mk"}])),
            "MultiKueueWithProvisioningRequest",
            "Can't admit new workloads: Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, \
             found: mk, prov.",
        ),
    ];
    for (spec, reason, message) in cases {
        let wanted =
            QueueActiveCondition { active: reason == "Ready", reason, message: message.to_owned() };
        assert_eq!(activity(spec), wanted);
    }
}

#[test]
fn a_terminating_queue_reports_only_that() {
    let mut names = Names::default();
    let mut index = index(&mut names);
    let mut queue = queue(json!({"stopPolicy": "Hold"}));
    queue.metadata.deletion_timestamp = Some(crate::time::to_seconds(jiff::Timestamp::UNIX_EPOCH));
    index.cluster_queue(&mut names, "q", Some(&queue));
    let activity = index.active_condition("q").expect("a queue");
    assert_eq!(activity.reason, "Terminating");
    assert_eq!(activity.message, "Can't admit new workloads; clusterQueue is terminating");
}

/// The readiness in the last event of the queue; `None` without an event.
fn readiness_of(events: &[Event]) -> Option<bool> {
    let of_queue: Vec<&Event> =
        events.iter().filter(|one| !matches!(one, Event::Check(..))).collect();
    match of_queue.as_slice() {
        [] => None,
        [Event::ClusterQueue(_, Some(spec))] => Some(spec.ready),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_check_updates_the_readiness_of_its_queues() {
    let mut names = Names::default();
    let mut index = Index::new(IndexConfig::default());
    let spec = queue(with_checks(json!([{"name": "mk"}])));
    let active = check("kueue.x-k8s.io/multikueue", "True");
    let idle = check("kueue.x-k8s.io/multikueue", "False");
    assert_eq!(readiness_of(&index.cluster_queue(&mut names, "q", Some(&spec))), Some(false));
    assert_eq!(readiness_of(&index.admission_check(&mut names, "mk", Some(&active))), Some(true));
    assert_eq!(readiness_of(&index.admission_check(&mut names, "mk", Some(&active))), None);
    assert_eq!(readiness_of(&index.admission_check(&mut names, "other", Some(&idle))), None);
    assert_eq!(readiness_of(&index.admission_check(&mut names, "mk", Some(&idle))), Some(false));
    assert_eq!(readiness_of(&index.admission_check(&mut names, "mk", None)), None);
}

#[test]
fn events_carry_checks_and_the_flavors_that_need_them() {
    let mut names = Names::default();
    let mut index = Index::new(IndexConfig::default());
    let rules = json!([{"name": "b", "onFlavors": ["f"]}, {"name": "a"}]);
    let events = index.cluster_queue(&mut names, "q", Some(&queue(with_checks(rules))));
    let Some(Event::ClusterQueue(_, Some(spec))) = events.first() else {
        panic!("{events:?}");
    };
    let (a, b) = (names.checks.intern("a"), names.checks.intern("b"));
    let flavors: Vec<_> = spec.checks.iter().map(|rule| (rule.check, rule.flavors.len())).collect();
    assert_eq!(flavors, [(a, 0), (b, 1)]);
    let check = |active| check("other", active);
    let spec = |active| Event::Check(a, Some(CheckSpec { active, ..CheckSpec::default() }));
    assert_eq!(index.admission_check(&mut names, "a", Some(&check("True")))[..1], [spec(true)]);
    assert_eq!(index.admission_check(&mut names, "a", Some(&check("True"))), []);
    assert_eq!(index.admission_check(&mut names, "a", Some(&check("False")))[..1], [spec(false)]);
    assert_eq!(index.admission_check(&mut names, "a", None), [Event::Check(a, None)]);
}

#[test]
fn the_stop_policy_does_not_change_readiness() {
    let mut names = Names::default();
    let mut index = Index::new(IndexConfig::default());
    let events = index.cluster_queue(&mut names, "q", Some(&queue(json!({"stopPolicy": "Hold"}))));
    let [Event::ClusterQueue(_, Some(spec))] = &events[..] else { panic!("{events:?}") };
    assert_eq!((spec.stopped, spec.ready), (true, true));
}

#[test]
fn a_local_queue_is_as_active_as_its_cluster_queue() {
    let mut names = Names::default();
    let mut index = index(&mut names);
    let local = |stop: &str| -> v1beta2::LocalQueue {
        serde_json::from_value(json!({"spec": {"clusterQueue": "q", "stopPolicy": stop}}))
            .expect("one")
    };
    let closed = "Can't submit new workloads to clusterQueue";
    let mut look = |index: &mut Index, stop: &str| {
        index.local_queue(&mut names, "ns", "lq", Some(&local(stop)));
        let one = index.local_queue_active_condition("ns", "lq").expect("a queue");
        (one.active, one.reason, one.message)
    };
    assert_eq!(look(&mut index, "Hold"), (false, "Stopped", "LocalQueue is stopped".into()));
    assert_eq!(look(&mut index, "None"), (false, "ClusterQueueDoesNotExist", closed.into()));
    let mut others = Names::default();
    index.cluster_queue(&mut others, "q", Some(&queue(json!({"stopPolicy": "Hold"}))));
    assert_eq!(look(&mut index, "None"), (false, "ClusterQueueIsInactive", closed.into()));
    index.cluster_queue(&mut others, "q", Some(&queue(json!({}))));
    let open = "Can submit new workloads to localQueue";
    assert_eq!(look(&mut index, "None"), (true, "Ready", open.into()));
    assert_eq!(index.local_queue_active_condition("ns", "none"), None);
}

#[test]
fn checks_apply_by_flavor() {
    let mut names = Names::default();
    let mut index = index(&mut names);
    let spec = json!({"resourceGroups": flavors(&["a", "b"]), "admissionChecksStrategy": {"admissionChecks": [
        {"name": "on-a", "onFlavors": ["a"]}, {"name": "mk"}, {"name": "on-both", "onFlavors": ["b", "a"]},
    ]}});
    index.cluster_queue(&mut names, "q", Some(&queue(spec)));
    let of_all = index.queues.get("q").expect("a queue").checks_for_all_flavors();
    assert_eq!(of_all, ["mk", "on-both"]);
    assert_eq!(index.checks_for_flavors("q", ["a"]), ["mk", "on-a", "on-both"]);
    assert_eq!(index.checks_for_flavors("q", ["b"]), ["mk", "on-both"]);
    assert_eq!(index.checks_for_flavors("q", []), ["mk"]);
    assert_eq!(index.checks_for_flavors("none", ["a"]), Vec::<String>::new());
}

#[test]
fn a_queue_dispatches_through_its_multi_kueue_check() {
    let mut names = Names::default();
    let mut index = index(&mut names);
    index.cluster_queue(&mut names, "q", Some(&queue(with_checks(json!([{"name": "mk"}])))));
    index.cluster_queue(&mut names, "plain", Some(&queue(with_checks(json!([{"name": "other"}])))));
    assert_eq!(index.multi_kueue_config("q"), Some("config"));
    assert_eq!(index.multi_kueue_check("q"), Some("mk"));
    assert_eq!((index.multi_kueue_config("plain"), index.multi_kueue_config("none")), (None, None));
    assert!(index.checks.is_multi_kueue("mk") && !index.checks.is_multi_kueue("other"));
}
