//! A scene that was recorded under upstream's manager: it is taken over as it is.
//!
//! `recorded/scene.jsonl` has an object per line, with `<time>` and `<uid>` in place of times and uids, no uids of its own, and of
//! the status of pods the phase only.

use super::{cluster::Cluster, *};

const SCENE: &str = include_str!("recorded/scene.jsonl");

/// All objects, with uids that follow from their names.
fn scene() -> Vec<Value> {
    // The Workload of a set has a hash of the uid in its name.
    let objects = SCENE.replace("<time>", "1970-01-01T00:00:00Z").replace("sts-a147f", "sts-f85d7");
    let mut objects: Vec<Value> =
        objects.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let uid = |kind: &Value, name: &Value| json!(format!("{kind}/{name}").replace('"', ""));
    for (number, object) in objects.iter_mut().enumerate() {
        let kind = object["kind"].clone();
        if object["status"]["phase"] == "Running" {
            object["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        }
        let metadata = &mut object["metadata"];
        metadata["uid"] = uid(&kind, &metadata["name"]);
        metadata["resourceVersion"] = json!((number + 1).to_string());
        let mut owner_uid = Value::Null;
        for owner in metadata["ownerReferences"].as_array_mut().into_iter().flatten() {
            owner_uid = uid(&owner["kind"], &owner["name"]);
            owner["uid"] = owner_uid.clone();
        }
        if metadata["labels"].get("kueue.x-k8s.io/job-uid").is_some() {
            metadata["labels"]["kueue.x-k8s.io/job-uid"] = owner_uid;
        }
    }
    objects
}

/// Objects of the scene, of this kind.
fn of_kind(kind: &str) -> Vec<Value> {
    scene().into_iter().filter(|object| object["kind"] == kind).collect()
}

/// The node that pods of the scene are assigned to, which was not recorded.
fn nodes() -> Vec<Value> {
    vec![json!({
        "metadata": {"name": "node-1", "resourceVersion": "1", "labels": {"kubernetes.io/hostname": "node-1"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })]
}

/// A manager of all kinds of the scene that has listed it.
fn taken_over() -> Cluster {
    let mut file = Configuration::without_file(None).expect("defaults");
    let gates = Gates::parse("SparkApplicationIntegration=true").expect("gates");
    let frameworks = Kinds::built_in().iter().map(|kind| kind.framework().to_owned());
    file.integrations.frameworks = frameworks.collect();
    let kinds = JobKinds::configured(&file, &gates, &Kinds::default());
    let settings = ManagerSettings::new(&file, &gates, &kinds, false);
    let handled = settings.kinds.clone();
    let mut control = ManagerControl::new(settings);
    let namespace = json!({"metadata": {"name": "scene", "resourceVersion": "1"}});
    let inputs = [
        ManagerInput::Namespace(list(vec![namespace])),
        ManagerInput::ResourceFlavor(list(of_kind("ResourceFlavor"))),
        ManagerInput::ClusterQueue(list(of_kind("ClusterQueue"))),
        ManagerInput::LocalQueue(list(of_kind("LocalQueue"))),
        ManagerInput::AdmissionCheck(list(of_kind("AdmissionCheck"))),
        ManagerInput::ProvisioningRequestConfig(list(vec![])),
        ManagerInput::ProvisioningRequest(list(vec![])),
        ManagerInput::PodTemplate(list(vec![])),
        ManagerInput::Workload(list(of_kind("Workload"))),
        ManagerInput::Cohort(list(of_kind("Cohort"))),
        ManagerInput::Topology(list(of_kind("Topology"))),
        ManagerInput::Node(list(nodes())),
        ManagerInput::Pod(list(of_kind("Pod"))),
        ManagerInput::LimitRange(list(vec![])),
        ManagerInput::RuntimeClass(list(vec![])),
        ManagerInput::PriorityClass(list(vec![])),
        ManagerInput::WorkloadPriorityClass(list(of_kind("WorkloadPriorityClass"))),
    ];
    inputs.into_iter().for_each(|input| control.observe(input, NOW));
    for kind in &handled {
        let objects = |name: &str| {
            let decode = |object| Arc::new(kind.decode(object).expect("it decodes"));
            Change::Reset {
                objects: of_kind(name).into_iter().map(decode).collect(),
                removed: vec![],
            }
        };
        control.observe(ManagerInput::Job(kind.clone(), objects(kind.name())), NOW);
        if kind.members().is_some() {
            let pods = ::jobs::pods::kind();
            let decode = |object| Arc::new(pods.decode(object).expect("it decodes"));
            let objects = of_kind("Pod").into_iter().map(decode).collect();
            let change = Change::Reset { objects, removed: vec![] };
            control.observe(ManagerInput::Members(kind.clone(), change), NOW);
        }
    }
    for kind in handled.looked_up() {
        let none = Change::Reset { objects: vec![], removed: vec![] };
        control.observe(ManagerInput::LookedUp(kind, none), NOW);
    }
    assert!(control.is_complete(), "something was not listed");
    Cluster::of(control, of_kind("Workload"))
}

#[test]
fn a_scene_of_upstream_is_taken_over_as_it_is() {
    let mut cluster = taken_over();
    for _ in 0..2 {
        let step = cluster.control.decide(cluster.now);
        let orders: Vec<String> = step
            .orders
            .iter()
            .map(|order| {
                let (purpose, key) = (order.ticket.purpose, &order.ticket.target.key);
                format!("{purpose} {key} {}", body(order))
            })
            .collect();
        assert_eq!(orders, [""; 0], "nothing differs from what is there");
        // What a Workload lacks is no reason that upstream has.
        let mut events = step.events;
        events.retain(|event| event.reason != "AdmissionExplained");
        assert_eq!(events, []);
        // Reasons and messages that a cycle gives are written later than at once.
        cluster.wait(10);
    }
}

/// Shows the manager the job of the scene with this status.
fn observe_status(cluster: &mut Cluster, kind: &str, name: &str, status: &Value) {
    let mut jobs = of_kind(kind).into_iter();
    let mut job = jobs.find(|job| job["metadata"]["name"] == name).expect("a job");
    job["status"] = status.clone();
    job["metadata"]["resourceVersion"] = json!("1000");
    let mut kinds = Kinds::built_in().iter();
    let kind = kinds.find(|one| one.name() == kind).expect("a kind").clone();
    let job = Arc::new(kind.decode(job).expect("it decodes"));
    cluster.observe(ManagerInput::Job(kind, Change::Apply(job)));
}

#[test]
fn a_job_that_began_under_upstream_ends_and_is_let_go() {
    let mut cluster = taken_over();
    let complete =
        json!({"conditions": [{"type": "Complete", "status": "True", "message": "done"}]});
    observe_status(&mut cluster, "Job", "job", &complete);
    cluster.settle();
    assert_eq!(cluster.condition("job-job-cb0aa", "Finished"), "True Succeeded: done");
    assert_eq!(cluster.workloads["job-job-cb0aa"]["metadata"]["finalizers"], json!([]));
}

#[test]
fn a_preemption_that_upstream_began_is_completed() {
    let mut cluster = taken_over();
    observe_status(&mut cluster, "RayCluster", "elastic", &json!({"state": "suspended"}));
    cluster.settle();
    let target = cluster.condition("raycluster-elastic-b7fb0", "QuotaReserved");
    assert!(target.starts_with("False PendingEvaluation"), "{target}");
    let preemptor = cluster.condition("jobset-urgent-3613e", "QuotaReserved");
    assert!(preemptor.starts_with("True"), "{preemptor}");
}

#[test]
fn a_pod_that_began_under_upstream_ends_and_is_let_go() {
    let mut cluster = taken_over();
    observe_status(&mut cluster, "Pod", "alone", &json!({"phase": "Succeeded"}));
    let mut released = Vec::new();
    for _ in 0..5 {
        let step = cluster.control.decide(cluster.now);
        let orders = step.orders.iter();
        let orders = orders.filter(|order| order.ticket.purpose == Purpose::JobUnfinalize);
        released.extend(orders.map(|order| (order.ticket.target.key.name.clone(), body(order))));
        cluster.take(step);
    }
    let finished = cluster.condition("pod-alone-8586c", "Finished");
    assert!(finished.starts_with("True Succeeded"), "{finished}");
    assert!(!released.is_empty(), "its finalizer is taken off");
    for (name, body) in &released {
        assert_eq!(&**name, "alone");
        assert!(body.contains("\"finalizers\":"), "{body}");
    }
}

/// Whether its ends are seen one after the other, or both at once.
#[test]
fn a_group_that_began_under_upstream_ends_with_its_last_pod() {
    for at_once in [false, true] {
        let mut cluster = taken_over();
        observe_status(&mut cluster, "Pod", "x", &json!({"phase": "Succeeded"}));
        if !at_once {
            cluster.settle();
            assert_eq!(cluster.condition("grp", "Finished"), "none");
        }
        observe_status(&mut cluster, "Pod", "y", &json!({"phase": "Succeeded"}));
        cluster.settle();
        let finished = cluster.condition("grp", "Finished");
        assert_eq!(finished, "True Succeeded: Pods succeeded: 2/2.", "at once: {at_once}");
    }
}

fn body(order: &Order) -> String {
    String::from_utf8_lossy(order.write.request().body()).into_owned()
}

#[test]
fn what_waited_in_a_stopped_queue_under_upstream_is_admitted_when_it_is_resumed() {
    let mut cluster = taken_over();
    let mut queues = of_kind("ClusterQueue").into_iter();
    let mut held = queues.find(|one| one["metadata"]["name"] == "scene-held").expect("a queue");
    held["spec"]["stopPolicy"] = json!("None");
    held["metadata"]["resourceVersion"] = json!("1000");
    held["metadata"]["generation"] = json!(2);
    cluster.observe(ManagerInput::ClusterQueue(Change::Apply(shared(held)))).settle();
    let admitted = cluster.condition("appwrapper-held-d7eb3", "Admitted");
    assert!(admitted.starts_with("True"), "{admitted}");
}
