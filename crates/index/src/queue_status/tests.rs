use crds::names::UNTRACKED_METRIC_VALUE;
use crds::v1beta2::{self, Workload};
use engine::Time;
use expect_test::expect;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{IndexConfig, MetadataKey, WorkloadLabelRule, WorkloadLabelRules, gauges};

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

fn workload(name: &str, queue: &str, status: &Value) -> Workload {
    let pod = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]});
    from(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": name},
        "spec": {"queueName": queue, "podSets": [{"name": "main", "count": 2, "template": {"spec": pod}}]},
        "status": status,
    }))
}

fn with_quota(usage: &str, admitted: &str) -> Value {
    json!({
        "admission": {"clusterQueue": "q", "podSetAssignments": [{
            "name": "main", "count": 2, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": usage},
        }]},
        "conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": admitted}],
    })
}

fn queue(stop: &str) -> v1beta2::ClusterQueue {
    from(json!({"spec": {
        "namespaceSelector": {}, "cohortName": "all", "stopPolicy": stop,
        "resourceGroups": [{"coveredResources": ["memory", "cpu"], "flavors": [{"name": "f", "resources": [
            {"name": "memory", "nominalQuota": "1Gi"}, {"name": "cpu", "nominalQuota": "3"},
        ]}]}],
    }}))
}

/// A queue `q` in a cohort with two LocalQueues, and Workloads in every state.
fn fixture() -> (Index, Engine) {
    fixture_with(IndexConfig::default())
}

fn fixture_with(config: IndexConfig) -> (Index, Engine) {
    let (mut index, mut engine) = (Index::new(config), Engine::new(Default::default()));
    let local = |stop: &str| -> v1beta2::LocalQueue {
        from(json!({"spec": {"clusterQueue": "q", "stopPolicy": stop}}))
    };
    let names = engine.names_mut();
    let mut events = index.namespace(names, "ns", Some(&Default::default()));
    events.extend(index.resource_flavor(names, "f", Some(&Default::default())));
    events.extend(index.cluster_queue(names, "q", Some(&queue("None"))));
    events.extend(index.local_queue(names, "ns", "one", Some(&local("None"))));
    events.extend(index.local_queue(names, "ns", "two", Some(&local("Hold"))));
    let mut finishing = with_quota("2", "True");
    finishing["reclaimablePods"] = json!([{"name": "main", "count": 1}]);
    for (name, queue, status) in [
        ("a", "one", with_quota("1500m", "True")),
        ("b", "one", with_quota("2", "False")),
        ("c", "two", finishing),
        ("d", "one", json!({})),
        ("e", "two", json!({})),
    ] {
        events.extend(index.workload(names, &workload(name, queue, &status), Time(0)));
    }
    for event in events {
        engine.apply(event);
    }
    (index, engine)
}

fn inputs<'a>(
    index: &'a Index,
    engine: &'a Engine,
    counts: &'a ClusterQueueCounts,
) -> QueueStatusInputs<'a> {
    QueueStatusInputs { index, names: engine.names(), counts, at: AT }
}

const AT: StatusStamp = StatusStamp { now: Timestamp::UNIX_EPOCH, generation: 3 };

#[test]
fn a_cluster_queue_lists_reservations_and_usage() {
    let (index, engine) = fixture();
    let counts = ClusterQueueCounts::count(&index, &engine, "q");
    let old = ClusterQueueStatus::default();
    let status =
        inputs(&index, &engine, &counts).cluster_queue("q", Some(333.1), &old).expect("a queue");
    let text = serde_json::to_string_pretty(&status).expect("json");
    expect![[r#"
        {
          "admittedWorkloads": 2,
          "conditions": [
            {
              "lastTransitionTime": "1970-01-01T00:00:00Z",
              "message": "Can admit new workloads",
              "observedGeneration": 3,
              "reason": "Ready",
              "status": "True",
              "type": "Active"
            }
          ],
          "fairSharing": {
            "weightedShare": 334
          },
          "flavorsReservation": [
            {
              "name": "f",
              "resources": [
                {
                  "borrowed": "1500m",
                  "name": "cpu",
                  "total": "4500m"
                },
                {
                  "borrowed": "0",
                  "name": "memory",
                  "total": "0"
                }
              ]
            }
          ],
          "flavorsUsage": [
            {
              "name": "f",
              "resources": [
                {
                  "borrowed": "0",
                  "name": "cpu",
                  "total": "2500m"
                },
                {
                  "borrowed": "0",
                  "name": "memory",
                  "total": "0"
                }
              ]
            }
          ],
          "pendingWorkloads": 1,
          "reservingWorkloads": 3
        }"#]]
    .assert_eq(&text);
    let again = inputs(&index, &engine, &counts).cluster_queue("q", Some(333.1), &status);
    assert_eq!(again, Some(status), "nothing changed, nothing to write");
}

#[test]
fn a_local_queue_lists_its_own_workloads() {
    let (index, engine) = fixture();
    let counts = ClusterQueueCounts::count(&index, &engine, "q");
    let old = LocalQueueStatus::default();
    let show = |name: &str| {
        let inputs = inputs(&index, &engine, &counts);
        let status = inputs.local_queue("ns", name, None, &old).expect("a queue");
        let cpu = |all: &[LocalQueueFlavorUsage]| -> String {
            let resource = all.first().and_then(|one| one.resources.first()).expect("a resource");
            resource.total.as_ref().expect("a total").to_string()
        };
        let reason = status.conditions.first().expect("a condition").reason.clone();
        let counts =
            (status.pending_workloads, status.reserving_workloads, status.admitted_workloads);
        (reason, counts, cpu(&status.flavors_reservation), cpu(&status.flavors_usage))
    };
    assert_eq!(show("one"), ("Ready".into(), (1, 2, 1), "3500m".into(), "1500m".into()));
    assert_eq!(show("two"), ("Stopped".into(), (0, 1, 1), "1".into(), "1".into()));
}

#[test]
fn an_unknown_queue_has_no_status() {
    let (index, engine) = fixture();
    let counts = ClusterQueueCounts::count(&index, &engine, "none");
    assert_eq!(counts, ClusterQueueCounts::default());
    let old = ClusterQueueStatus::default();
    assert_eq!(inputs(&index, &engine, &counts).cluster_queue("none", None, &old), None);
}

#[test]
fn the_admission_records_the_assignment() {
    let (mut index, mut engine) = fixture();
    let mut events = index.workload_gone(engine.names(), "ns", "a");
    events.extend(index.workload_gone(engine.names(), "ns", "b"));
    for event in events {
        engine.apply(event);
    }
    let entry = engine.cycle(Time(0), &mut engine::AcceptAll).first().expect("an entry").clone();
    let admission = index.admission(&engine, &entry);
    assert_eq!(
        json!(admission),
        json!({"clusterQueue": "q", "podSetAssignments": [
            {"count": 2, "name": "main", "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "2"}},
        ]})
    );
}

#[test]
fn workloads_are_counted_by_the_labels_that_metrics_have_of_them() {
    let rule = WorkloadLabelRule {
        source: MetadataKey::Label("type".to_owned()),
        tracked: vec!["train".to_owned()],
    };
    let workload_labels = WorkloadLabelRules(vec![rule]);
    let (mut index, mut engine) =
        fixture_with(IndexConfig { workload_labels, ..IndexConfig::default() });
    let numbers = |index: &Index, engine: &Engine| {
        let counts = ClusterQueueCounts::count(index, engine, "q");
        let queue = gauges::cluster_queue(index, engine, "q", &counts).expect("a queue");
        let local = gauges::local_queue(index, engine.names(), ("ns", "one"), &counts);
        let show = |one: &gauges::QueueNumbers| {
            let parts = one.by_labels.iter().map(|one| {
                let value = one.labels.join(" ").replace(UNTRACKED_METRIC_VALUE, "other");
                format!("{value}={}/{}/{}", one.active, one.inadmissible, one.admitted)
            });
            parts.collect::<Vec<_>>().join(" ")
        };
        (show(&queue.workloads), show(&local.expect("a LocalQueue").workloads))
    };
    let expected = |queue: &str, local: &str| (queue.to_owned(), local.to_owned());
    assert_eq!(numbers(&index, &engine), expected("other=1/0/2", "other=1/0/1"));
    // `a` runs and gets the label, `d` waits.
    for (name, status) in [("a", with_quota("1500m", "True")), ("d", json!({}))] {
        let mut labelled = workload(name, "one", &status);
        let labels = labelled.metadata.labels.get_or_insert_default();
        labels.insert("type".to_owned(), "train".to_owned());
        for event in index.workload(engine.names_mut(), &labelled, Time(1)) {
            engine.apply(event);
        }
    }
    assert_eq!(numbers(&index, &engine), expected("other=0/0/1 train=1/0/1", "train=1/0/1"));
    // No Workload of a queue that is not active is.
    for event in index.cluster_queue(engine.names_mut(), "q", Some(&queue("Hold"))) {
        engine.apply(event);
    }
    assert_eq!(numbers(&index, &engine), expected("other=0/0/1 train=0/1/1", "train=0/1/1"));
    let counts = ClusterQueueCounts::count(&index, &engine, "q");
    assert_eq!((counts.total.pending, counts.total.inadmissible), (1, 0), "the queue has it");
    let numbers = gauges::cluster_queue(&index, &engine, "q", &counts).expect("a queue");
    assert_eq!((numbers.workloads.active, numbers.workloads.inadmissible), (0, 1));
    assert_eq!(numbers.classes, (0, 1));
}

#[test]
fn numbers_of_a_local_queue_say_that_it_is_stopped() {
    let (index, engine) = fixture();
    let counts = ClusterQueueCounts::count(&index, &engine, "q");
    let stopped = |name| {
        let numbers = gauges::local_queue(&index, engine.names(), ("ns", name), &counts);
        numbers.expect("a LocalQueue").stopped
    };
    assert_eq!((stopped("one"), stopped("two")), (false, true));
}

#[test]
fn a_slice_that_replaces_another_one_is_in_no_shared_class() {
    let (mut index, mut engine) = fixture();
    let classes = |index: &Index, engine: &Engine| {
        let counts = ClusterQueueCounts::count(index, engine, "q");
        (counts.classes, counts.all_classes, counts.total.pending)
    };
    assert_eq!(classes(&index, &engine), ((1, 0), 1, 1));
    let mut slice = workload("d", "one", &json!({}));
    let annotations = slice.metadata.annotations.get_or_insert_default();
    annotations
        .insert("kueue.x-k8s.io/workload-slice-replacement-for".to_owned(), "ns/a".to_owned());
    for event in index.workload(engine.names_mut(), &slice, Time(1)) {
        engine.apply(event);
    }
    assert_eq!(classes(&index, &engine), ((0, 0), 0, 1));
}

#[test]
fn a_cohort_shows_unlimited_quota_and_whether_it_is_in_a_cycle() {
    let (mut index, mut engine) =
        (Index::new(IndexConfig::default()), Engine::new(Default::default()));
    let cohort = |parent: &str| -> v1beta2::Cohort {
        let resources = [
            json!({"name": "cpu", "nominalQuota": "10E"}),
            json!({"name": "memory", "nominalQuota": "9223372036854775807"}),
            json!({"name": "example.com/gpu", "nominalQuota": "2"}),
        ];
        let names = ["cpu", "memory", "example.com/gpu"];
        let flavors = json!([{"name": "f", "resources": resources}]);
        let groups = json!([{"coveredResources": names, "flavors": flavors}]);
        from(json!({"spec": {"parentName": parent, "resourceGroups": groups}}))
    };
    let names = engine.names_mut();
    let mut events = index.resource_flavor(names, "f", Some(&Default::default()));
    for (name, parent) in [("alone", ""), ("left", "right"), ("right", "left")] {
        events.extend(index.cohort(names, name, Some(&cohort(parent))));
    }
    events.into_iter().for_each(|event| engine.apply(event));
    engine.cycle(Time(0), &mut engine::AcceptAll);
    let gauges = |name| gauges::cohorts(&engine, [name]).pop().expect("a Cohort");
    let quota: BTreeMap<String, f64> =
        gauges("alone").quota.into_iter().map(|(_, resource, number)| (resource, number)).collect();
    let expected = [("cpu", f64::INFINITY), ("example.com/gpu", 2.0), ("memory", f64::INFINITY)];
    assert_eq!(quota, expected.map(|(name, number)| (name.to_owned(), number)).into());
    assert_eq!(["alone", "left", "right"].map(|name| gauges(name).cyclic), [false, true, true]);
}

#[test]
fn a_cohort_shows_the_reservations_of_all_queues_below_it() {
    let (mut index, mut engine) =
        (Index::new(IndexConfig::default()), Engine::new(Default::default()));
    let queue = |cohort: &str, lending: &str| -> v1beta2::ClusterQueue {
        let cpu = json!({"name": "cpu", "nominalQuota": "10", "lendingLimit": lending});
        let flavors = json!([{"name": "f", "resources": [cpu]}]);
        let groups = json!([{"coveredResources": ["cpu"], "flavors": flavors}]);
        from(json!({"spec": {
            "namespaceSelector": {}, "cohortName": cohort, "resourceGroups": groups,
        }}))
    };
    let below = |parent: &str| -> v1beta2::Cohort { from(json!({"spec": {"parentName": parent}})) };
    let reserving = |queue: &str, usage: &str| {
        let mut status = with_quota(usage, "True");
        status["admission"]["clusterQueue"] = json!(queue);
        workload(queue, queue, &status)
    };
    let names = engine.names_mut();
    let mut events = index.resource_flavor(names, "f", Some(&Default::default()));
    events.extend(index.cohort(names, "team", Some(&below("root"))));
    for (name, cohort, lending, usage) in
        [("q", "team", "4", "7"), ("p", "team", "6", "4"), ("o", "root", "0", "2")]
    {
        events.extend(index.cluster_queue(names, name, Some(&queue(cohort, lending))));
        events.extend(index.workload(names, &reserving(name, usage), Time(0)));
    }
    events.into_iter().for_each(|event| engine.apply(event));
    engine.cycle(Time(0), &mut engine::AcceptAll);
    let reserved: Vec<_> =
        gauges::cohorts(&engine, ["team", "root"]).into_iter().map(|one| one.reserved).collect();
    let cpu = |amount| vec![("f".to_owned(), "cpu".to_owned(), amount)];
    // Most of it is within the guaranteed quota of a queue, which is not charged to the Cohort.
    assert_eq!(reserved, [cpu(11.0), cpu(13.0)]);
}

#[test]
fn pending_requests_are_shown_of_every_resource_but_pods_that_no_quota_covers() {
    let (mut index, mut engine) = fixture();
    let requests = json!({"cpu": "1", "example.com/gpu": "3"});
    let pod = json!({"containers": [{"name": "c", "resources": {"requests": requests}}]});
    let mut waits = workload("w", "one", &json!({}));
    waits.spec.pod_sets = from(json!([{"name": "main", "count": 2, "template": {"spec": pod}}]));
    let requested = |index: &Index, engine: &Engine| {
        let counts = ClusterQueueCounts::count(index, engine, "q");
        gauges::cluster_queue(index, engine, "q", &counts).expect("a queue").requested
    };
    for event in index.workload(engine.names_mut(), &waits, Time(0)) {
        engine.apply(event);
    }
    // `d` requests 2 CPUs, too. Nothing requests memory, which the queue covers.
    let expected = [("cpu", 4.0), ("example.com/gpu", 6.0), ("memory", 0.0)];
    let expected = expected.map(|(name, number)| (name.to_owned(), number)).to_vec();
    assert_eq!(requested(&index, &engine), expected);
    let mut covers_pods = queue("None");
    covers_pods.spec.resource_groups = from(json!([{"coveredResources": ["pods"], "flavors": [
        {"name": "f", "resources": [{"name": "pods", "nominalQuota": "1"}]},
    ]}]));
    for event in index.cluster_queue(engine.names_mut(), "q", Some(&covers_pods)) {
        engine.apply(event);
    }
    let pods = requested(&index, &engine).into_iter().find(|(name, _)| name == "pods");
    assert_eq!(pods, Some(("pods".to_owned(), 4.0)));
}
