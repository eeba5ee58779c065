//! A cluster as one process finds it: whatever comes first, what was decided stands.

mod dispatched;
mod label_keys;
mod pods_gate;
mod stranded;

use ::jobs::{GenericJob, Job};
use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use proptest::prelude::*;
use runtime::{watch::Change, writer::WriteOutcome};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::{config::Configuration, gates::Gates};

mod garbage;
mod keeping;
mod shown;
mod slices;
mod turns;
mod unregistered;
mod variants;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object decodes")
}

fn list<K: DeserializeOwned>(objects: Vec<Value>) -> Change<K> {
    Change::Reset { objects: objects.into_iter().map(object).collect(), removed: vec![] }
}

fn settings() -> Settings {
    Settings::manager(&Configuration::default(), &Gates::default(), false)
}

fn job() -> Job {
    object(json!({
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "job-1", "resourceVersion": "20",
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {"parallelism": 2, "suspend": true, "template": {"spec": {"containers": [
            {"name": "main", "resources": {"requests": {"cpu": "1"}}},
        ]}}},
    }))
}

/// The Workload of the job, admitted.
fn workload() -> Value {
    let sets = job().pod_sets(::jobs::JobGates::default());
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {
            "name": "job-train", "namespace": "ns", "uid": "wl-1", "resourceVersion": "21",
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1",
                "controller": true,
            }],
        },
        "spec": {"queueName": "lq", "priority": 0, "podSets": sets},
        "status": {
            "admission": {"clusterQueue": "cq", "podSetAssignments": [
                {"name": "main", "count": 2, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "2"}},
            ]},
            "conditions": [
                {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""},
                {"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""},
            ],
        },
    })
}

/// A clone that waits on a thin worker with one node.
fn worker(allowed: Allowed) -> Vec<&'static str> {
    let mut control = Control::new(Settings::thin(allowed));
    let node = json!({
        "metadata": {"name": "node", "resourceVersion": "1"},
        "status": {
            "allocatable": {"cpu": "4", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    let mut clone = workload();
    clone["status"] = json!({});
    clone["metadata"]["ownerReferences"] = json!([]);
    let lists = [
        Input::Node(list(vec![node])),
        Input::Pod(list(vec![])),
        Input::Capacity(list(vec![])),
        Input::Job(Change::Reset { objects: vec![], removed: vec![] }),
        Input::Workload(list(vec![clone])),
    ];
    lists.into_iter().for_each(|list| control.hear(list, NOW));
    control.decide(NOW).orders.iter().map(|order| order.ticket.purpose.name()).collect()
}

#[test]
fn a_worker_runs_only_namespaces_and_kinds_that_it_was_told_to_run() {
    let kind = |kind: &str| object(json!({"group": "batch", "version": "v1", "kind": kind}));
    let namespaces = |name: &str| Some(vec![name.to_owned()]);
    for allowed in [
        Allowed { namespaces: namespaces("elsewhere"), kinds: None },
        Allowed { namespaces: None, kinds: Some(vec![kind("CronJob")]) },
    ] {
        let elsewhere = worker(allowed);
        assert!(elsewhere.contains(&"refuse") && !elsewhere.contains(&"reserve"), "{elsewhere:?}");
    }
    for allowed in [
        Allowed::default(),
        Allowed { namespaces: namespaces("ns"), kinds: Some(vec![kind("Job")]) },
    ] {
        let purposes = worker(allowed);
        assert!(purposes.contains(&"reserve") && !purposes.contains(&"refuse"), "{purposes:?}");
    }
}

/// Everything that a process lists when it starts.
fn lists() -> Vec<Input> {
    let api = "kueue.x-k8s.io/v1beta2";
    let queue = json!({
        "apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": "cq", "resourceVersion": "1"},
        "spec": {"namespaceSelector": {}, "resourceGroups": [{
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "8"}]}],
        }]},
    });
    let local = json!({
        "apiVersion": api, "kind": "LocalQueue",
        "metadata": {"name": "lq", "namespace": "ns", "resourceVersion": "2"},
        "spec": {"clusterQueue": "cq"},
    });
    let flavor = json!({
        "apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": "default", "resourceVersion": "3"},
    });
    let mut started = job();
    started.spec.suspend = Some(false);
    let labels = json!({"metadata": {"name": "ns", "resourceVersion": "4"}});
    vec![
        Input::Namespace(list::<Namespace>(vec![labels])),
        Input::ResourceFlavor(list::<ResourceFlavor>(vec![flavor])),
        Input::ClusterQueue(list::<ClusterQueue>(vec![queue])),
        Input::LocalQueue(list::<LocalQueue>(vec![local])),
        Input::AdmissionCheck(list::<AdmissionCheck>(vec![])),
        Input::Workload(list::<Workload>(vec![workload()])),
        Input::Job(Change::Reset { objects: vec![started], removed: vec![] }),
        Input::Cohort(list(vec![])),
        Input::LimitRange(list(vec![])),
        Input::RuntimeClass(list(vec![])),
        Input::PriorityClass(list(vec![])),
        Input::WorkloadPriorityClass(list(vec![])),
    ]
}

proptest! {
    #[test]
    fn what_is_listed_first_does_not_matter(order in Just(lists().len()).prop_flat_map(|n| {
        Just((0..n).collect::<Vec<_>>()).prop_shuffle()
    })) {
        let mut control = Control::new(settings());
        let mut inputs: Vec<Option<Input>> = lists().into_iter().map(Some).collect();
        for place in order {
            control.hear(inputs[place].take().expect("each once"), NOW);
            let step = control.decide(NOW);
            let purposes: Vec<_> = step.orders.iter().map(|order| order.ticket.purpose.name()).collect();
            prop_assert!(!purposes.contains(&"reserve"), "quota is held already");
        }
        prop_assert!(control.is_complete());
        let record = control.workloads.values().next().expect("the Workload");
        prop_assert!(record.wants.reserve.is_none(), "quota is held already");
    }
}
