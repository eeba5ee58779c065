//! Jobs of `multiKueue.externalFrameworks`: copied to a worker and back, and otherwise another program's
//! (docs/reference/multikueue.md §2.7).

use jiff::ToSpan;

use super::{
    cluster::json_merge,
    dispatched::{connect, dispatching_lists, done, east, orders},
    *,
};

const NAME: &str = "Recipe.v1.kitchen.example.com";

fn recipe_kind() -> Kind {
    ::jobs::mirrored::kind(NAME).expect("a kind")
}

fn recipes(objects: Vec<Value>) -> Change<JobObject> {
    let decode = |object| Arc::new(recipe_kind().decode(object).expect("it decodes"));
    Change::Reset { objects: objects.into_iter().map(decode).collect(), removed: vec![] }
}

fn recipe(version: &str, spec: &Value, phase: &str) -> Value {
    json!({
        "metadata": {
            "name": "soup", "namespace": "ns", "uid": "recipe-1", "resourceVersion": version,
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": spec, "status": {"phase": phase},
    })
}

/// The Workload that the program made which has the kind.
fn of_recipe(version: &str, cluster: Option<&str>) -> Value {
    let mut value = workload();
    value["metadata"] = json!({
        "name": "soup", "namespace": "ns", "uid": "wl-1", "resourceVersion": version,
        "ownerReferences": [{
            "apiVersion": "kitchen.example.com/v1", "kind": "Recipe", "name": "soup",
            "uid": "recipe-1", "controller": true,
        }],
    });
    let state = if cluster.is_some() { "Ready" } else { "Pending" };
    value["status"]["admissionChecks"] =
        json!([{"name": "workers", "state": state, "message": ""}]);
    let is_true =
        |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": ""});
    let admitted = cluster.map(|_| is_true("Admitted"));
    value["status"]["conditions"] =
        std::iter::once(is_true("QuotaReserved")).chain(admitted).collect();
    match cluster {
        Some(cluster) => value["status"]["clusterName"] = json!(cluster),
        None => value["status"]["nominatedClusterNames"] = json!(["east"]),
    }
    value
}

fn clone(version: &str, condition: &str) -> Value {
    let mut value = of_recipe(version, None);
    value["metadata"] = json!({
        "name": "soup", "namespace": "ns", "uid": "clone", "resourceVersion": version,
        "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
        "annotations": {"sluice.dev/epoch": "1", "sluice.dev/workload-uid": "wl-1"},
    });
    let reason = if condition == "Finished" { "Succeeded" } else { condition };
    value["status"] = json!({"conditions": [{
        "type": condition, "status": "True", "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    value
}

/// A manager that mirrors the kind under AllAtOnce, with this object.
fn manager(spec: &Value) -> ManagerControl {
    let mut kinds = kinds();
    kinds.mirrored = Kinds::new([recipe_kind()]);
    let dispatcher = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once";
    let mut control = leading(dispatching_settings_for(dispatcher, &kinds));
    let other = json!({"metadata": {"name": "other", "namespace": "ns", "uid": "o", "resourceVersion": "9"},
        "spec": {"suspend": true, "template": {}}});
    let lists = dispatching_lists(&other, &[of_recipe("30", None)]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    let hub = recipes(vec![recipe("20", spec, "New")]);
    control.observe(ManagerInput::Job(recipe_kind(), hub), NOW);
    connect(&mut control, vec![], vec![]);
    control.observe(east(WorkerInput::Job(recipe_kind(), recipes(vec![]))), NOW);
    control.observe(east(WorkerInput::Capacity(list(vec![]))), NOW);
    control
}

fn body(step: &Decisions, purpose: &str) -> Value {
    let order = step.orders.iter().find(|order| order.ticket.purpose.name() == purpose);
    let order = order.unwrap_or_else(|| panic!("{purpose}: {:?}", orders(step)));
    serde_json::from_slice(order.write.request().body()).expect("JSON")
}

#[test]
fn a_job_is_copied_to_the_worker_and_its_status_back() {
    let spec = json!({"managedBy": "kueue.x-k8s.io/multikueue", "serves": 4});
    let mut control = manager(&spec);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east clone-create"]);
    done(&mut control, &step, "clone-create", clone("60", "Admitted"), NOW);
    let admitted = Change::Apply(shared(clone("60", "Admitted")));
    control.observe(east(WorkerInput::Workload(admitted)), NOW);
    let step = control.decide(NOW);
    done(&mut control, &step, "dispatched", of_recipe("31", Some("east")), NOW);

    let step = control.decide(NOW);
    let created = body(&step, "job-create");
    assert_eq!(created["spec"], json!({"serves": 4}), "the worker's own controller runs it");
    assert_eq!(created["metadata"]["annotations"]["kueue.x-k8s.io/prebuilt-workload-name"], "soup");
    let mut copy = recipe("61", &created["spec"], "Cooking");
    copy["metadata"]["labels"] = created["metadata"]["labels"].clone();
    copy["metadata"]["annotations"] = created["metadata"]["annotations"].clone();
    done(&mut control, &step, "job-create", copy.clone(), NOW);
    control.observe(east(WorkerInput::Job(recipe_kind(), recipes(vec![copy.clone()]))), NOW);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "others may follow at once");
    let step = control.decide(NOW + 1.second());
    let status = body(&step, "sync-status");
    assert_eq!(status["status"], json!({"phase": "Cooking"}));
    let stops = orders(&step).into_iter().filter(|one| one == "hub stop" || one == "hub start");
    assert_eq!(stops.count(), 0, "its program starts it");

    let (later, shown) = (NOW + 1.second(), recipe("70", &spec, "Cooking"));
    done(&mut control, &step, "sync-status", shown, later);
    // Its end is known by the clone alone.
    let finished = Change::Apply(shared(clone("71", "Finished")));
    control.observe(east(WorkerInput::Workload(finished)), later);
    let step = control.decide(later);
    assert!(orders(&step).contains(&"hub finish".to_owned()), "{:?}", orders(&step));
}

/// How the copy of a Workload that is gone is deleted. It has these annotations beside.
fn deletion(annotations: &Value) -> Value {
    let spec = json!({"managedBy": "kueue.x-k8s.io/multikueue", "serves": 4});
    let mut control = manager(&spec);
    let mut copy = recipe("61", &json!({"serves": 4}), "Cooking");
    copy["metadata"]["uid"] = json!("copy");
    copy["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] = json!("multikueue");
    copy["metadata"]["annotations"] = json!({
        "sluice.dev/epoch": "1", "sluice.dev/workload-uid": "wl-1",
        "kueue.x-k8s.io/prebuilt-workload-name": "soup",
    });
    json_merge(&mut copy["metadata"]["annotations"], annotations);
    control.observe(east(WorkerInput::Job(recipe_kind(), recipes(vec![copy]))), NOW);
    let key = Key { namespace: Some("ns".into()), name: "soup".into() };
    control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
    body(&control.decide(NOW), "job-delete")["propagationPolicy"].clone()
}

/// Its pods are unknown, and a worker without a garbage collector would keep a copy that waits for them for ever.
#[test]
fn a_copy_is_deleted_in_the_background() {
    assert_eq!(deletion(&json!({})), "Background");
}

/// Its absence proves that nothing of it runs any more.
#[test]
fn a_copy_under_exactly_once_is_deleted_in_the_foreground() {
    assert_eq!(deletion(&json!({"sluice.dev/lease": "3/7"})), "Foreground");
}
