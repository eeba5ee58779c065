//! RayServices on the worker: one that is dispatched there, and one that is upgraded.

use anyhow::{Context, Result, ensure};
use e2e::{installation::TIMEOUT, objects::OWN};
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::fixture::{OperatorFixture, cluster_spec};

fn config(applications: &[&str]) -> String {
    let application = |name: &&str| {
        format!("- name: {name}\n  import_path: {name}:app\n  route_prefix: /{name}\n")
    };
    format!("applications:\n{}", applications.iter().map(application).collect::<String>())
}

fn ray_service(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayService",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "serveConfigV2": config(&["one"]), "rayClusterConfig": cluster_spec(1),
            "rayClusterDeletionDelaySeconds": 1,
        },
    })
}

/// The names of the applications in each configuration that heads of this namespace were sent.
fn sent(fixture: &OperatorFixture) -> Vec<Vec<String>> {
    let namespace = format!(".{}.svc.", fixture.space.namespace());
    let configs = fixture.heads().serve_configs().into_iter();
    let names = |config: Value| {
        let applications = config["applications"].as_array().cloned().unwrap_or_default();
        applications.iter().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    configs.filter(|it| it.head.contains(&namespace)).map(|it| names(it.config)).collect()
}

/// The spec of a cluster with pods on the nodes of this namespace, as Kueue would place them.
fn placed_cluster(fixture: &OperatorFixture, image: &str) -> Value {
    let namespace = fixture.space.namespace();
    let mut spec = cluster_spec(1);
    for group in ["/headGroupSpec", "/workerGroupSpecs/0"] {
        let pod = spec.pointer_mut(&format!("{group}/template/spec")).expect("a pod");
        pod["tolerations"] = json!([{"key": OWN, "value": namespace, "effect": "NoSchedule"}]);
        pod["nodeSelector"] = json!({OWN: namespace});
        pod["containers"][0]["image"] = json!(image);
    }
    spec
}

async fn patch(services: &Api<DynamicObject>, name: &str, spec: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": spec}));
    let patched = services.patch(name, &PatchParams::default(), &patch).await;
    patched.context("changing the RayService")?;
    Ok(())
}

/// It becomes ready on the worker and on the manager's object, takes a changed configuration over a killed agent, and leaves nothing.
#[tokio::test]
async fn a_ray_service_serves_on_a_worker_without_an_operator() -> Result<()> {
    let fixture = OperatorFixture::new("ray_service").await?;
    fixture.submit(&ray_service("rs", &json!({"kueue.x-k8s.io/queue-name": "queue"}))).await?;
    fixture
        .until_status(&fixture.hub, ("RayService", "rs"), "/status/serviceStatus", "Running")
        .await?;
    fixture.until_listed(2).await?;
    // More than once only if a test beside this one has killed the agent.
    let configs = sent(&fixture);
    ensure!(!configs.is_empty() && configs.iter().all(|it| it == &["one"]), "{configs:?}");
    fixture.restart_agent().await?;
    // The copy on the worker follows the object of the manager.
    let services = fixture.api(&fixture.hub, "RayService");
    patch(&services, "rs", &json!({"serveConfigV2": config(&["one", "two"])})).await?;
    let second = "/status/activeServiceStatus/applicationStatuses/two/status";
    fixture.until_status(&fixture.hub, ("RayService", "rs"), second, "RUNNING").await?;
    ensure!(sent(&fixture).last().is_some_and(|last| last == &["one", "two"]));
    let clusters = fixture.api(&fixture.worker, "RayCluster").list(&Default::default()).await?;
    ensure!(clusters.items.len() == 1, "another configuration needs no other cluster");
    fixture.delete("RayService", "rs").await?;
    fixture.until_nothing_left().await
}

/// A changed spec makes a second cluster, also when the agent is killed meanwhile; the Services move to it and the first one goes.
#[tokio::test]
async fn an_upgrade_replaces_the_cluster_and_leaves_one() -> Result<()> {
    let fixture = OperatorFixture::new("ray_service_upgrade").await?;
    let api = fixture.api(&fixture.worker, "RayService");
    let mut service = ray_service("rs", &json!({}));
    service["spec"]["rayClusterConfig"] = placed_cluster(&fixture, "ray:1");
    let service: DynamicObject = serde_json::from_value(service)?;
    api.create(&PostParams::default(), &service).await?;
    let running = fixture
        .until_status(&fixture.worker, ("RayService", "rs"), "/status/serviceStatus", "Running")
        .await?;
    let active = |service: &DynamicObject| {
        let name = service.data.pointer("/status/activeServiceStatus/rayClusterName");
        name.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let first = active(&running);
    ensure!(!first.is_empty());
    let spec = placed_cluster(&fixture, "ray:2");
    patch(&api, "rs", &json!({"rayClusterConfig": spec})).await?;
    fixture.restart_agent().await?;
    let moved = |service: &DynamicObject| {
        let is_pending = service.data.pointer("/status/pendingServiceStatus/rayClusterName");
        active(service) != first && is_pending.is_none()
    };
    let upgraded =
        fixture.worker.until(&api, "rs", "has another cluster", 2 * TIMEOUT, moved).await?;
    let second = active(&upgraded);
    let clusters = fixture.api(&fixture.worker, "RayCluster");
    let one = |all: &[DynamicObject]| all.len() == 1 && all[0].name_any() == second;
    fixture.worker.until_all(&clusters, "", "one cluster is left", 2 * TIMEOUT, one).await?;
    let services: Api<Service> = fixture.worker.api(fixture.space.namespace());
    for name in ["rs-head-svc", "rs-serve-svc"] {
        let selector = services.get(name).await?.spec.and_then(|spec| spec.selector);
        let cluster = selector.and_then(|mut it| it.remove("ray.io/cluster"));
        ensure!(cluster.as_ref() == Some(&second), "{name} selects {cluster:?}");
    }
    api.delete("rs", &DeleteParams::background()).await?;
    fixture.until_nothing_left().await?;
    let gone = |all: &[Service]| all.iter().all(|it| !it.name_any().starts_with("rs"));
    fixture.worker.until_all(&services, "", "no Service is left", 2 * TIMEOUT, gone).await?;
    Ok(())
}
