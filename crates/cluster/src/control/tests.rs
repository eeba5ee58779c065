//! The compositions on inputs as watches and API servers give them.

mod admission_fair_sharing;
mod adopted_results;
mod agent_pod_defaults;
mod agent_provisioning;
mod agent_queues;
mod agent_roles;
mod agent_slices;
mod assigned_nodes;
mod backoff;
mod bad_input;
mod block_admission;
mod bound_flavors;
mod bypassed_webhooks;
mod capacity_waits;
mod changed_copies;
mod checkpoint;
mod children_with_workloads;
mod clock_jumps;
mod clone_gates;
mod cluster;
mod conflicts;
mod connections;
mod copy_reclaims;
mod credentials;
mod cycles;
mod dead_agent;
mod deleted_pods;
mod dispatched;
mod drains;
mod elastic_copies;
mod elastic_pods;
mod ended_queues;
mod exactly_once;
mod explanations;
mod failing_pods;
mod failure_recovery;
mod former_jobs;
mod former_leader;
mod forwarded_specs;
mod gang_reservation;
mod grants;
mod grouped_sets;
mod grown_slices;
mod headroom;
mod held_pods;
mod hostile_workers;
mod incarnation;
mod job_kinds;
mod kept_values;
mod label_keys;
mod large_statuses;
mod life_cycle;
mod link_changes;
mod lookups;
mod loss_clock;
mod lost_answers;
mod lost_copies;
mod managed_quotas;
mod measured;
mod mirrored_kinds;
mod name_holders;
mod node_failures;
mod open_jobs;
mod orphan_cleanup;
mod other_checks;
mod outdated_crds;
mod pending_reasons;
mod pod_defaults;
mod pod_writes;
mod policy;
mod preemption_counts;
mod provisioning;
mod queue_objects;
mod queued_moves;
mod race;
mod race_messages;
mod rebuilding;
mod refused_workloads;
mod relisted;
mod replica_sets;
mod report_copies;
mod reports;
mod requeue_states;
mod resized_groups;
mod retention;
mod role_requests;
mod slices;
mod stored_statuses;
mod stray_copies;
mod taken_over;
mod topologies;
mod topologies_of_slices;
mod unobserved_owners;
mod unregistered;
mod unreserved_pods;
mod unschedulable;
mod variant_families;
mod variants;
mod waiting_workloads;
mod without_scheduler;
mod without_topologies;
mod workloads_of_groups;
mod workloads_of_jobs;

use std::{collections::BTreeMap, sync::Arc};

use ::jobs::{GenericJob, Job, JobObject, Kind, Kinds};
use config::{Configuration, JobKinds, gates::Gates};
use crds::{
    names::dispatchers::CAPACITY,
    v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, ResourceFlavor, Workload},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use proptest::prelude::*;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object decodes")
}

fn shared<K: DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(object(value))
}

fn list<K: DeserializeOwned>(objects: Vec<Value>) -> Change<K> {
    Change::Reset { objects: objects.into_iter().map(shared).collect(), removed: vec![] }
}

fn batch_job() -> Kind {
    ::jobs::job::kind().clone()
}

/// A list of Jobs.
fn jobs(objects: Vec<Value>) -> Change<JobObject> {
    let decode = |object| Arc::new(batch_job().decode(object).expect("a Job decodes"));
    Change::Reset { objects: objects.into_iter().map(decode).collect(), removed: vec![] }
}

/// The kinds of jobs of the default configuration.
fn kinds() -> JobKinds {
    JobKinds::configured(&Configuration::default(), &Gates::default(), &Kinds::default())
}

fn settings() -> ManagerSettings {
    ManagerSettings::new(&Configuration::default(), &Gates::default(), &kinds(), false)
}

/// Of a manager that dispatches to a cluster with room.
fn capacity_settings() -> ManagerSettings {
    dispatching_settings(CAPACITY)
}

/// Of a manager that dispatches.
fn dispatching_settings(dispatcher: &str) -> ManagerSettings {
    dispatching_settings_for(dispatcher, &kinds())
}

/// Of a manager that dispatches these kinds.
fn dispatching_settings_for(dispatcher: &str, kinds: &JobKinds) -> ManagerSettings {
    dispatching_settings_with(dispatcher, &Gates::default(), kinds)
}

/// The same with these feature gates.
fn dispatching_settings_with(dispatcher: &str, gates: &Gates, kinds: &JobKinds) -> ManagerSettings {
    let mut file = Configuration::without_file(None).expect("defaults");
    dispatcher.clone_into(&mut file.multi_kueue.dispatcher_name);
    ManagerSettings::new(&file, gates, kinds, true)
}

/// A manager whose leader has written its term.
fn leading(settings: ManagerSettings) -> ManagerControl {
    let mut control = ManagerControl::new(settings);
    if let Some(multikueue) = &mut control.dispatching.multikueue {
        multikueue.set_incarnation(incarnation());
    }
    control
}

/// The incarnation 7 with its leader 9, which began at version 10: before the objects of these tests.
fn incarnation() -> dispatch::HubIncarnation {
    dispatch::HubIncarnation { id: 7, term: 9, began_at: 10, accepted: vec![] }
}

/// The message of the condition of worker `east`.
fn east_message(control: &ManagerControl) -> String {
    let multikueue = control.dispatching.multikueue.as_ref().expect("a manager that dispatches");
    multikueue.active_condition("east", NOW, false).expect("it was connected").message
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
                {"type": "PodsReady", "status": "False", "reason": "WaitForStart", "message": ""},
            ],
        },
    })
}

/// Purposes of the first orders about a clone that is pending on an agent's cluster of one node.
fn agent_orders(policy: AgentPolicy) -> Vec<&'static str> {
    agent_orders_about(policy, &json!({}))
}

/// The same, about a clone with these annotations.
fn agent_orders_about(policy: AgentPolicy, annotations: &Value) -> Vec<&'static str> {
    let mut control = AgentControl::new(AgentSettings::new(policy, &kinds().handled));
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
    clone["metadata"]["annotations"] = annotations.clone();
    let lists = [
        AgentInput::LimitRange(list(vec![])),
        AgentInput::RuntimeClass(list(vec![])),
        AgentInput::Node(list(vec![node])),
        AgentInput::Pod(list(vec![])),
        AgentInput::Capacity(list(vec![])),
        AgentInput::Lease(list(vec![])),
        AgentInput::Job(batch_job(), jobs(vec![])),
        AgentInput::Workload(list(vec![clone])),
    ];
    lists.into_iter().for_each(|list| control.observe(list, NOW));
    control.decide(NOW).orders.iter().map(|order| order.ticket.purpose.name()).collect()
}

#[test]
fn an_agent_runs_only_the_namespaces_and_kinds_of_its_policy() {
    let kind = |kind: &str| object(json!({"group": "batch", "version": "v1", "kind": kind}));
    let namespaces = |name: &str| Some(vec![name.to_owned()]);
    for policy in [
        AgentPolicy { namespaces: namespaces("elsewhere"), kinds: None },
        AgentPolicy { namespaces: None, kinds: Some(vec![kind("CronJob")]) },
    ] {
        let elsewhere = agent_orders(policy);
        assert!(elsewhere.contains(&"refuse") && !elsewhere.contains(&"reserve"), "{elsewhere:?}");
    }
    for policy in [
        AgentPolicy::default(),
        AgentPolicy { namespaces: namespaces("ns"), kinds: Some(vec![kind("Job")]) },
    ] {
        let purposes = agent_orders(policy);
        assert!(purposes.contains(&"reserve") && !purposes.contains(&"refuse"), "{purposes:?}");
    }
}

#[test]
fn an_agent_leaves_to_the_manager_what_the_manager_has_decided() {
    for annotations in [
        json!({"sluice.dev/affinity": "region=eu"}),
        json!({"sluice.dev/execution": "ExactlyOnce"}),
        json!({"sluice.dev/checkpoint": "required", "sluice.dev/last-cluster": "east"}),
    ] {
        let purposes = agent_orders_about(AgentPolicy::default(), &annotations);
        assert!(purposes.contains(&"reserve"), "{annotations}: {purposes:?}");
    }
}

/// A manager with these Workloads and no Jobs.
fn control_of_workloads(workloads: &[Value]) -> ManagerControl {
    let mut control = ManagerControl::new(settings());
    for input in lists() {
        control.observe(
            match input {
                ManagerInput::Workload(_) => ManagerInput::Workload(list(workloads.to_vec())),
                ManagerInput::Job(..) => ManagerInput::Job(batch_job(), jobs(vec![])),
                other => other,
            },
            NOW,
        );
    }
    control
}

/// Everything that a process lists when it starts.
fn lists() -> Vec<ManagerInput> {
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
        ManagerInput::Namespace(list::<Namespace>(vec![labels])),
        ManagerInput::ResourceFlavor(list::<ResourceFlavor>(vec![flavor])),
        ManagerInput::ClusterQueue(list::<ClusterQueue>(vec![queue])),
        ManagerInput::LocalQueue(list::<LocalQueue>(vec![local])),
        ManagerInput::AdmissionCheck(list::<AdmissionCheck>(vec![])),
        ManagerInput::ProvisioningRequestConfig(list(vec![])),
        ManagerInput::ProvisioningRequest(list(vec![])),
        ManagerInput::PodTemplate(list(vec![])),
        ManagerInput::Workload(list::<Workload>(vec![workload()])),
        ManagerInput::Job(batch_job(), jobs(vec![json!(started)])),
        ManagerInput::Cohort(list(vec![])),
        ManagerInput::Topology(list(vec![])),
        ManagerInput::Node(list(vec![])),
        ManagerInput::Pod(list(vec![])),
        ManagerInput::LimitRange(list(vec![])),
        ManagerInput::RuntimeClass(list(vec![])),
        ManagerInput::PriorityClass(list(vec![])),
        ManagerInput::WorkloadPriorityClass(list(vec![])),
    ]
}

proptest! {
    #[test]
    fn the_order_of_lists_does_not_matter(order in Just(lists().len()).prop_flat_map(|n| {
        Just((0..n).collect::<Vec<_>>()).prop_shuffle()
    })) {
        let mut control = ManagerControl::new(settings());
        let mut inputs: Vec<Option<ManagerInput>> = lists().into_iter().map(Some).collect();
        for place in order {
            control.observe(inputs[place].take().expect("each once"), NOW);
            let step = control.decide(NOW);
            let purposes: Vec<_> = step.orders.iter().map(|order| order.ticket.purpose.name()).collect();
            prop_assert!(!purposes.contains(&"reserve"), "quota is held already");
        }
        prop_assert!(control.is_complete());
        let (_, record) = control.core.workloads.iter().next().expect("the Workload");
        prop_assert!(record.transitions().reservation().is_none(), "quota is held already");
    }
}
