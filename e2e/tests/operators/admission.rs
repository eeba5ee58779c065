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

/// An AppWrapper with a pod and a RoleBinding.
fn with_role_binding() -> Value {
    let mut both = wrapper(&pod());
    both["spec"]["components"] = json!([{"template": pod()}, {"template": role_binding()}]);
    both
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
    let earlier = objects_from_before_the_policies(&fixture).await?;
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

    let twice = groups_of_one_name(2);
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
        (wrapper(&service()), "components contains no podspecs"),
        (wrapper(&wide_cluster(8)), "components contains 9 podspecs; at most 8 are allowed"),
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
        wrapper(&wide_cluster(7)),
        wrapper(&kubeflow_job()),
    ] {
        let refused = refusal(worker, &object, &[]).await?;
        ensure!(refused.is_none(), "{object}: {refused:?}");
    }
    let earlier = (&earlier[..], fixture.space.namespace());
    objects_from_before_the_policies_change_and_go(&fixture.worker, earlier).await?;
    copies_of_the_manager_have_any_number_of_pod_sets(worker).await?;
    changes_are_refused_as_by_the_official_webhook(worker).await
}

/// A RayCluster with a long name and two groups of one name, and an AppWrapper with a pod of another namespace.
async fn objects_from_before_the_policies(fixture: &OperatorFixture) -> Result<[Value; 2]> {
    let mut cluster = ray("RayCluster", &"o".repeat(54), &groups_of_one_name(2));
    let mut foreign = pod();
    foreign["metadata"]["namespace"] = json!("kube-system");
    let mut wrapped = wrapper(&foreign);
    wrapped["metadata"]["name"] = json!("earlier");
    for object in [&mut cluster, &mut wrapped] {
        object["metadata"]["finalizers"] = json!(["sluice.dev/test"]);
        object["spec"]["suspend"] = json!(true);
        fixture.worker.apply(&object.to_string(), fixture.space.namespace()).await?;
    }
    Ok([cluster, wrapped])
}

fn groups_of_one_name(groups: usize) -> Value {
    let mut spec = cluster_spec(1);
    let group = spec["workerGroupSpecs"][0].clone();
    spec["workerGroupSpecs"] = json!(vec![group; groups]);
    spec
}

/// What a policy would refuse now is no obstacle to a change of something else, nor to the end.
async fn objects_from_before_the_policies_change_and_go(
    cluster: &Cluster,
    (earlier, namespace): (&[Value], &str),
) -> Result<()> {
    let patch = async |object: &Value, patch: Value| {
        let name = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
        let (kind, name) = (name(&object["kind"]), name(&object["metadata"]["name"]));
        let patch = patch.to_string();
        let arguments = ["-n", namespace, "patch", &kind, &name, "--type=merge", "-p", &patch];
        cluster.kubectl(&arguments).await.err().map(|error| error.to_string())
    };
    let groups = json!({"spec": {"workerGroupSpecs": groups_of_one_name(3)["workerGroupSpecs"]}});
    let refused = patch(&earlier[0], groups).await.unwrap_or_default();
    ensure!(refused.contains("worker group names must be unique"), "a third group: {refused}");
    for object in earlier {
        let refused = patch(object, json!({"metadata": {"labels": {"a": "b"}}})).await;
        ensure!(refused.is_none(), "a label: {refused:?}");
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        let (kind, name) = (kind.as_str().context("kind")?, name.as_str().context("name")?);
        let arguments = ["-n", namespace, "delete", kind, name, "--wait=false"];
        cluster.kubectl(&arguments).await?;
        let refused = patch(object, json!({"metadata": {"finalizers": null}})).await;
        ensure!(refused.is_none(), "the end: {refused:?}");
    }
    Ok(())
}

/// The manager cluster accepts more pod sets than the policy. A user gains nothing by the label of a copy.
async fn copies_of_the_manager_have_any_number_of_pod_sets(
    worker: (&OperatorFixture, &Cluster),
) -> Result<()> {
    let account = format!("--as=system:serviceaccount:{NAMESPACE}:sluice-hub");
    let mut copy = wrapper(&wide_cluster(8));
    copy["metadata"]["labels"] = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    copy["spec"]["suspend"] = json!(true);
    let refused = refusal(worker, &copy, &[&account]).await?;
    ensure!(refused.is_none(), "a copy: {refused:?}");
    let refused = refusal(worker, &copy, &[]).await?.unwrap_or_default();
    ensure!(refused.contains("components contains 9 podspecs"), "by a user: {refused}");
    Ok(())
}

fn service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
}

/// A RayCluster with so many worker groups, all of which are pod sets, and with one that has no template.
fn wide_cluster(groups: usize) -> Value {
    let mut spec = cluster_spec(1);
    let group = spec["workerGroupSpecs"][0].clone();
    let mut all = vec![group; groups];
    all.push(json!({"groupName": "bare"}));
    spec["workerGroupSpecs"] = json!(all);
    ray("RayCluster", "c", &spec)
}

fn kubeflow_job() -> Value {
    let roles = json!({"Master": {"template": pod()}, "Worker": {"replicas": 2}});
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j"},
        "spec": {"pytorchReplicaSpecs": roles},
    })
}

/// Of pod sets the path and the number are immutable; a number that is written where it was unset is the same one.
async fn changes_are_refused_as_by_the_official_webhook(
    (fixture, cluster): (&OperatorFixture, &Cluster),
) -> Result<()> {
    let namespace = fixture.space.namespace();
    let component = |pod_set: Value| json!([{"template": pod(), "podSets": [pod_set]}]);
    let mut stored = wrapper(&pod());
    stored["spec"] = json!({"suspend": true, "components": component(json!({"path": "template"}))});
    cluster.apply(&stored.to_string(), namespace).await?;
    let change = async |pod_set: Value| {
        let patch = json!({"spec": {"components": component(pod_set)}}).to_string();
        let arguments = ["-n", namespace, "patch", "appwrapper", "w", "--type=merge"];
        let arguments = [&arguments[..], &["--dry-run=server", "-p", &patch]].concat();
        cluster.kubectl(&arguments).await.err().map(|error| error.to_string())
    };
    for pod_set in [
        json!({"path": "template", "replicas": 1}),
        json!({"path": "template", "annotations": {"a": "b"}}),
    ] {
        let refused = change(pod_set.clone()).await;
        ensure!(refused.is_none(), "{pod_set}: {refused:?}");
    }
    for pod_set in [json!({"path": "template", "replicas": 2}), json!({"path": "template.spec"})] {
        let refused = change(pod_set.clone()).await.unwrap_or_default();
        ensure!(refused.contains("attempt to change immutable field"), "{pod_set}: {refused}");
    }
    Ok(())
}

/// The manager refuses declared pod sets that are not those of their object: its quota is for these. Without a queue they are left alone.
#[tokio::test]
async fn the_manager_refuses_pod_sets_that_contradict_their_object() -> Result<()> {
    let fixture = OperatorFixture::new("contradiction").await?;
    let hub = (&fixture, &fixture.hub);
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"parallelism": 100, "completions": 100, "template": {"spec": pod()["spec"]}},
    });
    let mut wrapped = wrapper(&job);
    wrapped["spec"]["components"][0]["podSets"] = json!([{"path": "template.spec.template"}]);
    let refused = refusal(hub, &wrapped, &[]).await?;
    ensure!(refused.is_none(), "without a queue: {refused:?}");
    wrapped["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "lq"});
    let refused = refusal(hub, &wrapped, &[]).await?.unwrap_or_default();
    let words = "spec.components[0].podSets: Invalid value: replica count 1 differs from inferred count 100";
    ensure!(refused.contains(words), "{refused}");
    wrapped["spec"]["components"][0]["podSets"][0]["replicas"] = json!(100);
    let refused = refusal(hub, &wrapped, &[]).await?;
    ensure!(refused.is_none(), "it agrees: {refused:?}");
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
    let refused = refusal(place, &with_role_binding(), bob).await?;
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
    let refused = refusal(place, &with_role_binding(), bob).await?;
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
