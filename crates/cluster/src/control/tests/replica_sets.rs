//! Sets of replicas: one object with many Workloads.

use crds::names::dispatchers;

use super::{
    cluster::Cluster,
    dispatched::{self, done, orders},
    *,
};

fn set_kind() -> Kind {
    ::jobs::leader_worker_set::kind().clone()
}

fn pod_kind() -> Kind {
    ::jobs::pods::kind().clone()
}

fn set(replicas: u32, version: &str) -> Value {
    let template = json!({"spec": {"containers": [
        {"name": "main", "resources": {"requests": {"cpu": "1"}}},
    ]}});
    json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {
            "name": "d", "namespace": "ns", "uid": "set-1",
            "resourceVersion": version,
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {
                "size": 2, "leaderTemplate": template, "workerTemplate": template,
            },
        },
    })
}

fn leader() -> Value {
    json!({
        "metadata": {
            "name": "d-0", "namespace": "ns", "uid": "pod-1", "resourceVersion": "50",
            "labels": {
                "kueue.x-k8s.io/queue-name": "lq", "leaderworkerset.sigs.k8s.io/name": "d",
                "leaderworkerset.sigs.k8s.io/worker-index": "0",
            },
            "annotations": {
                "kueue.x-k8s.io/pod-group-serving": "true",
                "kueue.x-k8s.io/pod-suspending-parent":
                    "leaderworkerset.x-k8s.io/leaderworkerset",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "d", "uid": "s",
                "controller": true,
            }],
        },
        "spec": {
            "containers": [{"name": "main"}],
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        },
        "status": {"phase": "Pending"},
    })
}

fn reset(kind: &Kind, objects: Vec<Value>) -> Change<JobObject> {
    let decode = |object| Arc::new(kind.decode(object).expect("it decodes"));
    Change::Reset { objects: objects.into_iter().map(decode).collect(), removed: vec![] }
}

fn sets(replicas: u32, version: &str) -> ManagerInput {
    ManagerInput::Job(set_kind(), reset(&set_kind(), vec![set(replicas, version)]))
}

fn members(pods: Vec<Value>) -> ManagerInput {
    ManagerInput::Members(set_kind(), reset(&pod_kind(), pods))
}

fn manager(replicas: u32) -> ManagerControl {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks =
        ["batch/job", "leaderworkerset.x-k8s.io/leaderworkerset"].map(str::to_owned).to_vec();
    let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
    let mut control =
        ManagerControl::new(ManagerSettings::new(&file, &Gates::default(), &kinds, false));
    for input in lists() {
        let input = match input {
            ManagerInput::Workload(_) => ManagerInput::Workload(list(vec![])),
            ManagerInput::Job(kind, _) => ManagerInput::Job(kind, jobs(vec![])),
            other => other,
        };
        control.observe(input, NOW);
    }
    control.observe(ManagerInput::Job(pod_kind(), reset(&pod_kind(), vec![])), NOW);
    control.observe(sets(replicas, "30"), NOW);
    assert!(!control.is_complete(), "pods of sets were not listed");
    control.observe(members(vec![]), NOW);
    assert!(control.is_complete());
    control
}

/// Answers the creates of a decision. Returns the Workloads.
fn create_all(control: &mut ManagerControl, step: &Decisions) -> Vec<Value> {
    let creates = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::WorkloadCreate);
    let created: Vec<(Ticket, Value)> = creates
        .enumerate()
        .map(|(index, order)| {
            let body = order.write.request().body();
            let mut workload: Value = serde_json::from_slice(body).expect("JSON");
            workload["metadata"]["uid"] = json!(format!("workload-{index}"));
            workload["metadata"]["resourceVersion"] = json!((40 + index).to_string());
            (order.ticket.clone(), workload)
        })
        .collect();
    for (ticket, workload) in &created {
        control.answered(ticket, WriteOutcome::done(workload.clone()), NOW);
    }
    created.into_iter().map(|(_, workload)| workload).collect()
}

fn index(workload: &Value) -> &Value {
    &workload["metadata"]["annotations"]["kueue.x-k8s.io/component-workload-index"]
}

#[test]
fn a_set_has_a_workload_for_each_replica() {
    let mut control = manager(2);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub workload-create", "hub workload-create"]);
    let workloads = create_all(&mut control, &step);
    assert_eq!(workloads.iter().map(index).collect::<Vec<_>>(), ["0", "1"]);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub reserve", "hub reserve"], "before there is any pod");
}

#[test]
fn fewer_replicas_delete_the_last_workload() {
    let mut control = manager(2);
    let step = control.decide(NOW);
    let workloads = create_all(&mut control, &step);
    control.observe(sets(1, "31"), NOW);
    let step = control.decide(NOW);
    let deletes = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::WorkloadDelete);
    let deleted: Vec<&str> = deletes.map(|one| &*one.ticket.target.key.name).collect();
    assert_eq!(deleted, [workloads[1]["metadata"]["name"].as_str().expect("a name")]);
}

#[test]
fn more_replicas_get_further_workloads() {
    let mut control = manager(1);
    let step = control.decide(NOW);
    create_all(&mut control, &step);
    control.decide(NOW);
    control.observe(sets(3, "31"), NOW);
    let step = control.decide(NOW);
    let creates = orders(&step).iter().filter(|order| *order == "hub workload-create").count();
    assert_eq!(creates, 2);
}

#[test]
fn a_pod_of_a_set_becomes_a_member_when_its_replica_is_known() {
    let mut control = manager(1);
    let step = control.decide(NOW);
    let workload = create_all(&mut control, &step).remove(0);
    control.decide(NOW);
    control.observe(members(vec![leader()]), NOW);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "it gets no Workload of its own");

    let mut known = leader();
    known["metadata"]["resourceVersion"] = json!("51");
    known["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] = json!("0");
    control.observe(members(vec![known.clone()]), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub adopt"]);
    let patch: Value = serde_json::from_slice(step.orders[0].write.request().body()).expect("JSON");
    let name = &workload["metadata"]["name"];
    let expected = json!({
        "kueue.x-k8s.io/pod-group-name": name,
        "kueue.x-k8s.io/pod-group-total-count": "2",
        "kueue.x-k8s.io/prebuilt-workload-name": name,
        "kueue.x-k8s.io/role-hash": "leader",
    });
    assert_eq!(patch["metadata"]["annotations"], expected);
    assert_eq!(patch["metadata"]["labels"], json!({"kueue.x-k8s.io/managed": "true"}));
    assert_eq!(patch.get("spec"), None, "the gate stays");

    // From then on it is a pod of a group, which has this Workload.
    for (key, value) in expected.as_object().expect("a map") {
        known["metadata"]["annotations"][key] = value.clone();
    }
    known["metadata"]["labels"]["kueue.x-k8s.io/managed"] = json!("true");
    known["metadata"]["resourceVersion"] = json!("52");
    done(&mut control, &step, "adopt", known, NOW);
    let step = orders(&control.decide(NOW));
    assert!(step.iter().all(|order| order != "hub workload-create"), "{step:?}");
}

#[test]
fn a_held_pod_of_a_deleted_set_is_released_when_its_set_would_have_been_seen() {
    let mut pod = leader();
    pod["metadata"]["creationTimestamp"] = json!("1970-01-01T00:00:00Z");
    let gone = || {
        let key = Key { namespace: Some("ns".into()), name: "d".into() };
        ManagerInput::Job(set_kind(), Change::Delete(key))
    };
    let after = |seconds: i64| NOW + jiff::SignedDuration::from_secs(seconds);
    let mut control = manager(1);
    control.observe(gone(), NOW);
    control.observe(members(vec![pod.clone()]), NOW);
    let adopts = |step: &Decisions| orders(step).iter().filter(|one| *one == "hub adopt").count();
    assert_eq!(orders(&control.decide(after(59))), [""; 0], "its set may be new");
    let step = control.decide(after(60));
    assert_eq!(orders(&step), ["hub owner"], "the watch of sets may be late");
    let uri = step.orders[0].write.request().uri().to_string();
    let path = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/ns/leaderworkersets?";
    assert!(uri.starts_with(path) && uri.contains("fieldSelector=metadata.name%3Dd"), "{uri}");
    assert_eq!(orders(&control.decide(after(61))), [""; 0], "one read at a time");

    // It is there, or the answer says nothing.
    let there = WriteOutcome::done(json!({"items": [set(1, "90")]}));
    control.answered(&step.orders[0].ticket, there, after(61));
    control.observe(members(vec![pod.clone()]), after(62));
    assert_eq!(orders(&control.decide(after(119))), [""; 0]);
    let step = control.decide(after(120));
    assert_eq!(orders(&step), ["hub owner"], "a minute after the read was sent");
    control.answered(&step.orders[0].ticket, WriteOutcome::Unknown("".into()), after(121));
    assert_eq!(adopts(&control.decide(after(122))), 0);
    let step = control.decide(after(190));
    assert_eq!(orders(&step), ["hub owner"]);

    control.answered(&step.orders[0].ticket, WriteOutcome::done(json!({"items": []})), after(190));
    let step = control.decide(after(190));
    assert_eq!(orders(&step), ["hub adopt"]);
    let patch: Value = serde_json::from_slice(step.orders[0].write.request().body()).expect("JSON");
    assert_eq!(patch["spec"], json!({"schedulingGates": null}));

    // A member of a group is started by its Workload.
    let mut control = manager(1);
    pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] = json!("0");
    pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-name"] = json!("w");
    control.observe(gone(), NOW);
    control.observe(members(vec![pod]), NOW);
    assert_eq!(adopts(&control.decide(after(90))), 0);
}

/// The conditions that a write of a status sets, with their status.
fn written(step: &Decisions, purpose: &str) -> Vec<String> {
    let order = step.orders.iter().find(|order| order.ticket.purpose.name() == purpose);
    let body = order.expect("it was ordered").write.request().body();
    let body: Value = serde_json::from_slice(body).expect("JSON");
    let all = body["status"]["conditions"].as_array().cloned().unwrap_or_default().into_iter();
    let mut all: Vec<String> =
        all.map(|one| format!("{}={}", one["type"], one["status"]).replace('"', "")).collect();
    all.sort();
    all
}

#[test]
fn a_waiting_replica_shows_that_its_pods_are_not_ready_once_it_has_some() {
    let mut control = manager(1);
    let mut gated = set(1, "31");
    gated["metadata"]["annotations"] =
        json!({"kueue.x-k8s.io/admission-gated-by": "example.com/a"});
    control.observe(ManagerInput::Job(set_kind(), reset(&set_kind(), vec![gated])), NOW);
    let step = control.decide(NOW);
    let mut workload = create_all(&mut control, &step).remove(0);
    let step = control.decide(NOW);
    assert_eq!(written(&step, "pending"), ["Admitted=False", "QuotaReserved=False"], "no pods");
    let order = step.orders.iter().find(|one| one.ticket.purpose.name() == "pending");
    let order = order.expect("a status");
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    workload["status"] = body["status"].clone();
    workload["metadata"]["resourceVersion"] = json!("45");
    control.answered(&order.ticket, WriteOutcome::done(workload.clone()), NOW);

    let mut member = leader();
    member["metadata"]["labels"]["kueue.x-k8s.io/managed"] = json!("true");
    let annotations = &mut member["metadata"]["annotations"];
    annotations["kueue.x-k8s.io/pod-group-name"] = workload["metadata"]["name"].clone();
    annotations["kueue.x-k8s.io/prebuilt-workload-name"] = workload["metadata"]["name"].clone();
    annotations["kueue.x-k8s.io/pod-group-total-count"] = json!("2");
    annotations["kueue.x-k8s.io/role-hash"] = json!("leader");
    control.observe(members(vec![member]), NOW);
    let step = control.decide(NOW);
    let order = step.orders.iter().find(|one| one.ticket.purpose.name() == "add-owners");
    workload["metadata"]["resourceVersion"] = json!("46");
    workload["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "d", "uid": "set-1"},
        {"apiVersion": "v1", "kind": "Pod", "name": "d-0", "uid": "pod-1"},
    ]);
    let order = order.unwrap_or_else(|| panic!("{:?}", orders(&step)));
    control.answered(&order.ticket, WriteOutcome::done(workload), NOW);
    let conditions = written(&control.decide(NOW), "pending");
    assert_eq!(conditions, ["Admitted=False", "PodsReady=False", "QuotaReserved=False"]);
}

/// A manager under AllAtOnce, with a set and the worker `east`.
fn dispatching_manager(replicas: u32, gates: &str) -> Cluster {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks =
        ["batch/job", "leaderworkerset.x-k8s.io/leaderworkerset"].map(str::to_owned).to_vec();
    let gates = Gates::parse(gates).expect("gates");
    let kinds = JobKinds::configured(&file, &gates, &Kinds::default());
    dispatchers::ALL_AT_ONCE.clone_into(&mut file.multi_kueue.dispatcher_name);
    let mut control = leading(ManagerSettings::new(&file, &gates, &kinds, true));
    let other = json!({"metadata": {"name": "other", "namespace": "ns", "uid": "o", "resourceVersion": "9"},
        "spec": {"suspend": true, "template": {}}});
    let lists = dispatched::dispatching_lists(&other, &[]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    control.observe(ManagerInput::Job(pod_kind(), reset(&pod_kind(), vec![])), NOW);
    control.observe(sets(replicas, "30"), NOW);
    control.observe(members(vec![]), NOW);
    dispatched::connect(&mut control, vec![], vec![]);
    for kind in [set_kind(), pod_kind()] {
        let none = reset(&kind, vec![]);
        control.observe(dispatched::east(WorkerInput::Job(kind, none)), NOW);
    }
    let active = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
        "metadata": {"name": "workers", "resourceVersion": "35"},
        "spec": {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"},
        },
        "status": {"conditions": [
            {"type": "Active", "status": "True", "reason": "Active", "message": ""},
        ]},
    });
    control.observe(ManagerInput::AdmissionCheck(Change::Apply(shared(active))), NOW);
    control.observe(dispatched::east(WorkerInput::Capacity(list(vec![]))), NOW);
    Cluster::of(control, vec![])
}

/// Decides until the hub rests. The orders on the worker, which admits every clone.
fn on_worker(cluster: &mut Cluster) -> Vec<Order> {
    let mut all = Vec::new();
    for _ in 0..20 {
        let mut step = cluster.control.decide(cluster.now);
        let is_home = |order: &Order| order.ticket.target.to == Destination::Home;
        let (home, there): (Vec<_>, Vec<_>) =
            std::mem::take(&mut step.orders).into_iter().partition(is_home);
        for order in there.iter().filter(|one| one.ticket.purpose == Purpose::CloneCreate) {
            let body = order.write.request().body();
            let mut clone: Value = serde_json::from_slice(body).expect("JSON");
            clone["metadata"]["uid"] = json!("clone");
            clone["metadata"]["resourceVersion"] = json!("900");
            clone["status"] = json!({"conditions": [{
                "type": "Admitted", "status": "True", "reason": "Admitted", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]});
            let shown = Change::Apply(shared(clone.clone()));
            cluster.control.answered(&order.ticket, WriteOutcome::done(clone), cluster.now);
            cluster.observe(dispatched::east(WorkerInput::Workload(shown)));
        }
        for order in there.iter().filter(|one| one.ticket.purpose == Purpose::JobCreate) {
            let body = order.write.request().body();
            let mut copy: Value = serde_json::from_slice(body).expect("JSON");
            copy["metadata"]["uid"] = json!("copy");
            copy["metadata"]["resourceVersion"] = json!("901");
            let shown = set_kind().decode(copy.clone()).expect("it decodes");
            let shown = WorkerInput::Job(set_kind(), Change::Apply(Arc::new(shown)));
            cluster.control.answered(&order.ticket, WriteOutcome::done(copy), cluster.now);
            cluster.observe(dispatched::east(shown));
        }
        let rests = home.is_empty() && there.is_empty();
        all.extend(there);
        cluster.take(Decisions { orders: home, ..step });
        if rests {
            break;
        }
    }
    all
}

#[test]
fn the_copy_of_a_set_holds_its_pods_whatever_runs_on_the_worker() {
    let orders = on_worker(&mut dispatching_manager(1, ""));
    let purposes: Vec<&str> = orders.iter().map(|order| order.ticket.purpose.name()).collect();
    assert_eq!(purposes, ["clone-create", "job-create"]);
    let copy: Value = serde_json::from_slice(orders[1].write.request().body()).expect("JSON");
    for template in ["leaderTemplate", "workerTemplate"] {
        let gates = &copy["spec"]["leaderWorkerTemplate"][template]["spec"]["schedulingGates"];
        assert_eq!(*gates, json!([{"name": "kueue.x-k8s.io/admission"}]), "{template}");
    }
}

#[test]
fn a_replica_that_follows_another_one_has_no_preemption_gate() {
    let gate = "MultiKueueOrchestratedPreemption=true";
    let orders = on_worker(&mut dispatching_manager(2, gate));
    let clones = orders.iter().filter(|order| order.ticket.purpose == Purpose::CloneCreate);
    let gates: Vec<Value> = clones
        .map(|order| {
            let body = order.write.request().body();
            let clone: Value = serde_json::from_slice(body).expect("JSON");
            clone["spec"]["preemptionGates"].clone()
        })
        .collect();
    assert_eq!(gates, [json!([{"name": "kueue.x-k8s.io/multikueue"}]), Value::Null]);
}

/// Purposes of orders on the worker.
fn purposes(orders: &[Order]) -> Vec<&'static str> {
    orders.iter().map(|order| order.ticket.purpose.name()).collect()
}

fn replica_key(name: &str) -> Key {
    Key { namespace: Some("ns".into()), name: name.into() }
}

/// The copy of the set has no epoch, and stays for the other replica.
#[test]
fn a_replica_that_gets_quota_again_raises_its_epoch_once() {
    let mut cluster = dispatching_manager(2, "");
    on_worker(&mut cluster);
    let of_first = |one: &&Value| *index(one) == json!("0");
    let first = cluster.workloads.values().find(of_first).expect("the first replica");
    let first = first["metadata"]["name"].as_str().expect("a name").to_owned();
    cluster.workload(&first, 0, &json!({"spec": {"active": false}}));
    let orders = on_worker(&mut cluster);
    assert_eq!(purposes(&orders), ["clone-delete"], "the other one needs the set");
    cluster.control.answered(&orders[0].ticket, WriteOutcome::done(json!({})), cluster.now);
    let gone = WorkerInput::Workload(Change::Delete(replica_key(&first)));
    cluster.observe(dispatched::east(gone));
    assert_eq!(purposes(&on_worker(&mut cluster)), [""; 0]);
    assert!(!cluster.condition(&first, "QuotaReserved").starts_with("True"));

    cluster.workload(&first, 0, &json!({"spec": {"active": true}}));
    let orders = on_worker(&mut cluster);
    assert_eq!(purposes(&orders), ["clone-create"]);
    let clone: Value = serde_json::from_slice(orders[0].write.request().body()).expect("JSON");
    assert_eq!(clone["metadata"]["annotations"]["sluice.dev/epoch"], "2");
    let raise = format!("raise-epoch {first}");
    assert_eq!(cluster.writes.iter().filter(|write| **write == raise).count(), 1);
}

/// The set, which is being deleted after what it owns.
fn deleted_set() -> ManagerInput {
    let mut leaving = set(2, "60");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    leaving["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    ManagerInput::Job(set_kind(), reset(&set_kind(), vec![leaving]))
}

/// The Workloads of a set are being deleted together.
#[test]
fn replicas_that_leave_together_take_their_copy_along() {
    let mut cluster = dispatching_manager(2, "");
    assert_eq!(purposes(&on_worker(&mut cluster)), ["clone-create", "job-create", "clone-create"]);
    cluster.observe(deleted_set());
    let names: Vec<String> = cluster.workloads.keys().cloned().collect();
    for name in &names {
        let leaves = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        cluster.workload(name, 1, &leaves);
    }
    let orders = on_worker(&mut cluster);
    assert!(purposes(&orders).contains(&"job-delete"), "{:?}", purposes(&orders));
}

/// The first replica, which the copy names, is gone before the last one leaves.
#[test]
fn the_last_replica_takes_the_copy_along_that_names_an_earlier_one() {
    let mut cluster = dispatching_manager(2, "");
    on_worker(&mut cluster);
    let names: Vec<String> = cluster.workloads.keys().cloned().collect();
    cluster.observe(deleted_set());
    let gone = |cluster: &mut Cluster, name: &str| {
        cluster.observe(ManagerInput::Workload(Change::Delete(replica_key(name))));
        cluster.workloads.remove(name);
    };
    gone(&mut cluster, &names[0]);
    assert_eq!(purposes(&on_worker(&mut cluster)), ["clone-delete"], "the other one needs it");
    let clone = Change::Delete(replica_key(&names[0]));
    cluster.observe(dispatched::east(WorkerInput::Workload(clone)));
    assert_eq!(purposes(&on_worker(&mut cluster)), [""; 0]);
    gone(&mut cluster, &names[1]);
    let orders = on_worker(&mut cluster);
    assert!(purposes(&orders).contains(&"job-delete"), "{:?}", purposes(&orders));
}
