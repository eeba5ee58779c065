//! The policies of `config/worker/admission` and `config/appwrapper-rights`: what they refuse, and for which users.

use anyhow::{Context, Result, ensure};
use e2e::installation::{NAMESPACE, TIMEOUT, root};
use harness::Cluster;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::fixture::{OperatorFixture, cluster_spec};

/// Tries an object as a user, without storing it. The refusal is the answer, if there is one.
async fn refusal(
    (fixture, cluster): (&OperatorFixture, &Cluster),
    object: &Value,
    user: &[&str],
) -> Result<Option<String>> {
    let file = tempfile::NamedTempFile::new().context("a file")?;
    std::fs::write(file.path(), object.to_string()).context("writing the object")?;
    let path = file.path().display().to_string();
    let namespace = fixture.space.namespace();
    let mut arguments = vec!["-n", namespace, "create", "--dry-run=server", "-f", &path];
    arguments.extend(user);
    Ok(cluster.kubectl(&arguments).await.err().map(|error| error.to_string()))
}

fn ray(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn wrapper(template: &Value) -> Value {
    json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "w"}, "spec": {"components": [{"template": template}]},
    })
}

fn pod() -> Value {
    let containers = json!([{"name": "c", "image": "i"}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
}

fn role_binding() -> Value {
    let rbac = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "bob"}],
    })
}

/// Names, groups, timeouts and components are refused with the words of the official webhooks.
#[tokio::test]
async fn policies_refuse_what_official_webhooks_refuse() -> Result<()> {
    let fixture = OperatorFixture::new("admission").await?;
    fixture.worker.apply_kustomization(&root().join("config/worker/admission"), NAMESPACE).await?;
    let worker = (&fixture, &fixture.worker);
    let long = ray("RayCluster", &"n".repeat(54), &cluster_spec(1));
    let end = Instant::now() + TIMEOUT;
    // A policy holds a moment after it was stored.
    let refused = loop {
        match refusal(worker, &long, &[]).await? {
            Some(refused) => break refused,
            None if Instant::now() > end => anyhow::bail!("the policies do not hold"),
            None => sleep(std::time::Duration::from_millis(200)).await,
        }
    };
    ensure!(refused.contains("RayCluster name should be no more than 53 characters"), "{refused}");

    let mut twice = cluster_spec(1);
    let group = twice["workerGroupSpecs"][0].clone();
    twice["workerGroupSpecs"] = json!([group, group]);
    let mut late = ray("RayService", "s", &json!({"rayClusterConfig": cluster_spec(1)}));
    late["metadata"]["annotations"] = json!({"ray.io/initializing-timeout": "soon"});
    let job = json!({"entrypoint": "x", "rayClusterSpec": cluster_spec(1)});
    let mut foreign = pod();
    foreign["metadata"]["namespace"] = json!("kube-system");
    for (object, words) in [
        (
            ray("RayCluster", "c.d", &cluster_spec(1)),
            "RayCluster name should be a valid DNS1035 label",
        ),
        (ray("RayCluster", "c", &twice), "worker group names must be unique"),
        (
            ray("RayJob", &"n".repeat(48), &job),
            "The RayJob metadata is invalid: RayJob name should be no more than 47 characters",
        ),
        (late.clone(), "ray.io/initializing-timeout has invalid format: soon"),
        (wrapper(&wrapper(&pod())), "Nested AppWrappers are forbidden"),
        (wrapper(&foreign), "AppWrappers cannot create objects in other namespaces"),
    ] {
        let refused = refusal(worker, &object, &[]).await?;
        ensure!(refused.as_ref().is_some_and(|it| it.contains(words)), "{words}: {refused:?}");
    }
    late["metadata"]["annotations"] = json!({"ray.io/initializing-timeout": "1h30m"});
    for object in [
        ray("RayCluster", &"n".repeat(53), &cluster_spec(1)),
        ray("RayJob", &"n".repeat(47), &job),
        late,
        wrapper(&pod()),
    ] {
        let refused = refusal(worker, &object, &[]).await?;
        ensure!(refused.is_none(), "{object}: {refused:?}");
    }

    Ok(())
}

/// A user wraps only what the user may make, on the manager cluster and on a worker, without a further manifest.
#[tokio::test]
async fn an_app_wrapper_has_only_components_that_its_submitter_may_make() -> Result<()> {
    let fixture = OperatorFixture::new("wrapper_rights").await?;
    for cluster in [&fixture.hub, &fixture.worker] {
        bob_wraps_only_pods((&fixture, cluster)).await?;
    }
    Ok(())
}

async fn bob_wraps_only_pods(place: (&OperatorFixture, &Cluster)) -> Result<()> {
    let namespace = place.0.space.namespace();
    let bob = &["--as=bob"];
    let words = "user \"bob\" may not create every component";
    grant(place, "appwrappers.workload.codeflare.dev").await?;
    let end = Instant::now() + TIMEOUT;
    // A role holds a moment after it was stored.
    let refused = loop {
        match refusal(place, &wrapper(&pod()), bob).await? {
            Some(refused) if refused.contains(words) => break refused,
            other => ensure!(Instant::now() < end, "in {namespace}: {other:?}"),
        }
        sleep(std::time::Duration::from_millis(200)).await;
    };
    ensure!(refused.contains("Forbidden"), "{refused}");
    let refused = refusal(place, &wrapper(&role_binding()), bob).await?;
    ensure!(refused.as_ref().is_some_and(|it| it.contains(words)), "{refused:?}");

    grant(place, "pods").await?;
    let end = Instant::now() + TIMEOUT;
    while let Some(refused) = refusal(place, &wrapper(&pod()), bob).await? {
        ensure!(Instant::now() < end, "bob may make pods: {refused}");
        sleep(std::time::Duration::from_millis(200)).await;
    }
    let mut many = wrapper(&pod());
    let components = many["spec"]["components"].as_array_mut().context("components")?;
    for index in 0..7 {
        let mut pod = pod();
        pod["metadata"]["name"] = json!(format!("p{index}"));
        components.push(json!({"template": pod}));
    }
    let refused = refusal(place, &many, bob).await?;
    ensure!(refused.is_none(), "eight pods: {refused:?}");
    // Rights for one kind of component are none for another one.
    let refused = refusal(place, &wrapper(&role_binding()), bob).await?;
    ensure!(refused.as_ref().is_some_and(|it| it.contains(words)), "{refused:?}");
    Ok(())
}

/// Lets bob create and get objects of a resource.
async fn grant((fixture, cluster): (&OperatorFixture, &Cluster), resource: &str) -> Result<()> {
    let namespace = fixture.space.namespace();
    let name = format!("bob-{}", resource.split('.').next().unwrap_or_default());
    let resource = format!("--resource={resource}");
    cluster
        .kubectl(&["-n", namespace, "create", "role", &name, "--verb=create,get", &resource])
        .await?;
    let role = format!("--role={name}");
    cluster
        .kubectl(&["-n", namespace, "create", "rolebinding", &name, &role, "--user=bob"])
        .await?;
    Ok(())
}
