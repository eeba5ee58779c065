//! A kind of `multiKueue.externalFrameworks`: another program, played here, makes its Workloads and starts its jobs
//! (docs/reference/multikueue.md §2.7).

use anyhow::{Context, Result, ensure};
use crds::{
    meta::is_true,
    names::{MULTI_KUEUE_CONTROLLER, conditions::FINISHED, labels::PREBUILT_WORKLOAD_NAME},
    v1beta2::Workload,
};
use e2e::installation::{NAMESPACE, TIMEOUT};
use harness::Cluster;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// Its name in the configuration.
pub(crate) const NAME: &str = "Dish.v1.kitchen.example.com";

const GROUP: &str = "kitchen.example.com";

/// Serves the kind, and grants the accounts of the manager what docs/kinds.md asks for.
pub(crate) async fn serve(hub: &Cluster, workers: &[Cluster]) -> Result<()> {
    let on_hub = [("dishes", &["list", "watch"][..]), ("dishes/status", &["patch"])];
    let on_worker = [("dishes", &["create", "delete", "list", "watch"][..])];
    hub.apply(&objects("sluice-manager", &on_hub), NAMESPACE).await?;
    for worker in workers {
        worker.apply(&objects("sluice-hub", &on_worker), NAMESPACE).await?;
    }
    Ok(())
}

fn objects(account: &str, rights: &[(&str, &[&str])]) -> String {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": free, "status": free}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("dishes.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Dish", "plural": "dishes", "singular": "dish", "listKind": "DishList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let rule = |(resource, verbs): &(&str, &[&str])| json!({"apiGroups": [GROUP], "resources": [resource], "verbs": verbs});
    let name = json!({"name": format!("{account}-dishes")});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": name,
        "rules": rights.iter().map(rule).collect::<Vec<_>>(),
    });
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": name,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": format!("{account}-dishes")},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    });
    [crd, role, binding].map(|one| format!("---\n{one}\n")).concat()
}

fn dishes(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, "v1", "Dish");
    let resource = ApiResource::from_gvk_with_plural(&kind, "dishes");
    Api::namespaced_with(cluster.client(), namespace, &resource)
}

/// Creates a dish, and its Workload as the program of the kind does.
async fn create(hub: &Cluster, namespace: &str, name: &str, managed_by: &str) -> Result<()> {
    let dish = serde_json::from_value(json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Dish", "metadata": {"name": name},
        "spec": {"managedBy": managed_by, "serves": 4},
    }))?;
    let dish = dishes(hub, namespace).create(&PostParams::default(), &dish).await?;
    let owner = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Dish", "name": name,
        "uid": dish.metadata.uid, "controller": true,
    });
    let container = json!({
        "name": "cook", "image": "busybox", "resources": {"requests": {"cpu": "1"}},
    });
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let workload = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "queueName": "queue", "active": true,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
    });
    let workloads: Api<Workload> = hub.api(namespace);
    workloads.create(&PostParams::default(), &serde_json::from_value(workload)?).await?;
    Ok(())
}

async fn set_phase(cluster: &Cluster, namespace: &str, name: &str, phase: &str) -> Result<()> {
    let fields = Patch::Merge(json!({"status": {"phase": phase}}));
    dishes(cluster, namespace).patch_status(name, &PatchParams::default(), &fields).await?;
    Ok(())
}

/// A job is copied to the worker that admits its clone, its status comes back, and its end is that of the clone.
pub(crate) async fn is_mirrored(hub: &Cluster, worker: &Cluster, namespace: &str) -> Result<()> {
    create(hub, namespace, "soup", MULTI_KUEUE_CONTROLLER).await?;
    let copies = dishes(worker, namespace);
    let copy = worker.until(&copies, "soup", "is copied", 2 * TIMEOUT, |_| true).await?;
    ensure!(copy.data["spec"] == json!({"serves": 4}), "{:?}", copy.data);
    let prebuilt = copy.annotations().get(PREBUILT_WORKLOAD_NAME).map(String::as_str);
    ensure!(prebuilt == Some("soup"), "{:?}", copy.metadata);

    for phase in ["Cooking", "Served"] {
        set_phase(worker, namespace, "soup", phase).await?;
        let shows = |dish: &DynamicObject| phase_of(dish) == Some(phase);
        let what = format!("is {phase}");
        hub.until(&dishes(hub, namespace), "soup", &what, TIMEOUT, shows).await?;
    }
    finish(worker, namespace, "soup").await?;
    let over = |workload: &Workload| is_true(&workload.status.conditions, FINISHED);
    let workloads: Api<Workload> = hub.api(namespace);
    let workload = hub.until(&workloads, "soup", "is over", 2 * TIMEOUT, over).await?;
    ensure!(workload.status.cluster_name.as_deref() == Some(worker.name()), "{workload:?}");
    worker.until_gone(&copies, "soup", 2 * TIMEOUT).await?;
    let dish = dishes(hub, namespace).get("soup").await?;
    ensure!(phase_of(&dish) == Some("Served"), "{:?}", dish.data);
    Ok(())
}

fn phase_of(dish: &DynamicObject) -> Option<&str> {
    dish.data.pointer("/status/phase").and_then(Value::as_str)
}

/// The program of the kind finishes the clone of its job.
async fn finish(worker: &Cluster, namespace: &str, name: &str) -> Result<()> {
    let clones: Api<Workload> = worker.api(namespace);
    let clone = clones.get(name).await?;
    let mut conditions = serde_json::to_value(&clone.status.conditions)?;
    let finished = json!({
        "type": FINISHED, "status": "True", "reason": "Succeeded", "message": "served",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    conditions.as_array_mut().context("conditions")?.push(finished);
    let fields = Patch::Merge(json!({"status": {"conditions": conditions}}));
    clones.patch_status(name, &PatchParams::default(), &fields).await?;
    Ok(())
}

/// A job that another controller runs goes nowhere; its Workload says so.
pub(crate) async fn of_another_controller_is_refused(hub: &Cluster, namespace: &str) -> Result<()> {
    create(hub, namespace, "salad", "example.com/cook").await?;
    let named =
        "Expecting .spec.managedBy to be \"kueue.x-k8s.io/multikueue\" not \"example.com/cook\"";
    let refused = |workload: &Workload| {
        let checks = &workload.status.admission_checks;
        let conditions = &workload.status.conditions;
        let texts = checks.iter().map(|one| one.message.as_str());
        texts
            .chain(conditions.iter().map(|one| one.message.as_str()))
            .any(|text| text.contains(named))
    };
    let workloads: Api<Workload> = hub.api(namespace);
    hub.until(&workloads, "salad", "is refused with the field", TIMEOUT, refused).await?;
    Ok(())
}
