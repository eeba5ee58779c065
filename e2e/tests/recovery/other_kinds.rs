//! A JobSet, an AppWrapper around a Job, and a RayCluster. The controller of JobSets is played; the agents operate the others.

use anyhow::{Context, Result};
use crds::names::MULTI_KUEUE_CONTROLLER;
use e2e::{
    installation::{self, NAMESPACE, TIMEOUT},
    objects::{self, LONG},
};
use harness::{Cluster, PlayedOperator, annotation, resource_of};
use jobs::{Kind, Kinds};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

const JOB_SET: &str = "jobset.x-k8s.io/jobset";
const APP_WRAPPER: &str = "workload.codeflare.dev/appwrapper";
const RAY_CLUSTER: &str = "ray.io/raycluster";

/// The kinds as a configuration names them.
pub(crate) const FRAMEWORKS: [&str; 3] = [JOB_SET, APP_WRAPPER, RAY_CLUSTER];

/// One object of each.
const OBJECTS: [(&str, &str); 3] =
    [(JOB_SET, "set"), (APP_WRAPPER, "wrapper"), (RAY_CLUSTER, "ray")];

/// Number of their pods, each of one cpu.
pub(crate) const PODS: usize = 6;

const JOB_SET_CRD: &str = include_str!("../kinds/jobset-crd.yaml");

/// The kinds on a manager cluster. Workers have those that their agents operate.
pub(crate) async fn install(hub: &Cluster) -> Result<()> {
    installation::operated_kinds(hub).await?;
    hub.apply(JOB_SET_CRD, NAMESPACE).await.context("installing JobSet")
}

/// Installs JobSet on the workers and plays its controller there.
pub(crate) async fn play(workers: &[Cluster], namespace: &str) -> Result<Vec<PlayedOperator>> {
    let kind = kind(JOB_SET)?;
    let mut operators = Vec::new();
    for worker in workers {
        worker.apply(JOB_SET_CRD, NAMESPACE).await.context("installing JobSet")?;
        operators.push(PlayedOperator::start(worker, &kind, namespace));
    }
    Ok(operators)
}

/// Submits one object of each kind. Their pods run until the test ends them.
pub(crate) async fn submit(hub: &Cluster, namespace: &str) -> Result<()> {
    let specs = [job_set(), wrapper(namespace), ray_cluster()];
    for ((framework, name), spec) in OBJECTS.into_iter().zip(specs) {
        let kind = kind(framework)?;
        let mut object = json!({
            "apiVersion": kind.api_version(), "kind": kind.name(),
            "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": spec,
        });
        // The webhook may not know the new queue yet.
        let managed_by = kind.managed_by().context("managedBy")?;
        managed_by.at.set(&mut object, json!(MULTI_KUEUE_CONTROLLER));
        let object: DynamicObject = serde_json::from_value(object)?;
        let created = api(hub, namespace, framework)?.create(&PostParams::default(), &object).await;
        created.with_context(|| format!("submitting {name}"))?;
    }
    Ok(())
}

/// Waits until the manager shows that all pods run.
pub(crate) async fn until_running(hub: &Cluster, namespace: &str) -> Result<()> {
    let all_ready = |set: &DynamicObject| {
        let sets = set.data.pointer("/status/replicatedJobsStatus").and_then(Value::as_array);
        let ready = sets.into_iter().flatten().filter_map(|one| one["ready"].as_u64());
        ready.sum::<u64>() == 3
    };
    let with_pods = |one: &DynamicObject| has_condition(one, "PodsReady");
    let ready = |one: &DynamicObject| one.data.pointer("/status/state") == Some(&json!("ready"));
    let sets = api(hub, namespace, JOB_SET)?;
    hub.until(&sets, "set", "runs", 3 * TIMEOUT, all_ready).await?;
    let wrappers = api(hub, namespace, APP_WRAPPER)?;
    hub.until(&wrappers, "wrapper", "runs", 3 * TIMEOUT, with_pods).await?;
    let clusters = api(hub, namespace, RAY_CLUSTER)?;
    hub.until(&clusters, "ray", "is ready", 3 * TIMEOUT, ready).await?;
    Ok(())
}

/// What their submitter wrote, by kind: labels and spec. The webhooks have completed both.
pub(crate) async fn submitted(hub: &Cluster, namespace: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (framework, name) in OBJECTS {
        all.push(labels_and_spec(&api(hub, namespace, framework)?.get(name).await?));
    }
    Ok(all)
}

/// Waits until the new manager cluster has them as the lost one had them.
pub(crate) async fn until_restored(hub: &Cluster, namespace: &str, before: &[Value]) -> Result<()> {
    for ((framework, name), before) in OBJECTS.into_iter().zip(before) {
        let restored = |one: &DynamicObject| labels_and_spec(one) == *before;
        let what = format!("is again {before}");
        hub.until(&api(hub, namespace, framework)?, name, &what, TIMEOUT, restored).await?;
    }
    Ok(())
}

fn labels_and_spec(object: &DynamicObject) -> Value {
    json!({"labels": object.metadata.labels, "spec": object.data["spec"]})
}

/// The RayCluster, which has no end, is deleted on the manager cluster, and goes with its pods.
pub(crate) async fn delete_ray_cluster(
    hub: &Cluster,
    workers: &[Cluster],
    namespace: &str,
) -> Result<()> {
    let clusters = api(hub, namespace, RAY_CLUSTER)?;
    clusters.delete("ray", &DeleteParams::background()).await.context("deleting the RayCluster")?;
    hub.until_gone(&clusters, "ray", TIMEOUT).await?;
    for worker in workers {
        let pods: Api<Pod> = worker.api(namespace);
        let gone = <[Pod]>::is_empty;
        worker.until_all(&pods, "ray.io/cluster", "no pod of it is left", TIMEOUT, gone).await?;
    }
    Ok(())
}

/// The results of the JobSet and the AppWrapper arrive.
pub(crate) async fn expect_results(hub: &Cluster, namespace: &str) -> Result<()> {
    let completed = |one: &DynamicObject| has_condition(one, "Completed");
    let sets = api(hub, namespace, JOB_SET)?;
    hub.until(&sets, "set", "is completed", TIMEOUT, completed).await?;
    let succeeded =
        |one: &DynamicObject| one.data.pointer("/status/phase") == Some(&json!("Succeeded"));
    let wrappers = api(hub, namespace, APP_WRAPPER)?;
    hub.until(&wrappers, "wrapper", "has succeeded", TIMEOUT, succeeded).await?;
    Ok(())
}

/// No copy of any kind is left on a worker.
pub(crate) async fn expect_no_copy(workers: &[Cluster], namespace: &str) -> Result<()> {
    for worker in workers {
        for framework in FRAMEWORKS {
            let copies = api(worker, namespace, framework)?;
            let (what, gone) = (format!("no {framework} is left"), <[DynamicObject]>::is_empty);
            worker.until_all(&copies, "", &what, TIMEOUT, gone).await?;
        }
    }
    Ok(())
}

fn kind(framework: &str) -> Result<Kind> {
    let kind = Kinds::built_in().of_framework(framework).cloned();
    kind.with_context(|| format!("no kind {framework}"))
}

fn api(cluster: &Cluster, namespace: &str, framework: &str) -> Result<Api<DynamicObject>> {
    let resource = resource_of(&kind(framework)?);
    Ok(Api::namespaced_with(cluster.client(), namespace, &resource))
}

fn has_condition(object: &DynamicObject, condition: &str) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| one["type"] == condition && one["status"] == "True")
}

fn template(restart: &str) -> Value {
    json!({
        "metadata": {"annotations": {annotation::RUN_SECONDS: LONG.to_string()}},
        "spec": {
            "restartPolicy": restart, "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": "main",
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            }],
        },
    })
}

fn job_set() -> Value {
    let job = json!({"spec": {"parallelism": 1, "completions": 1, "template": template("Never")}});
    json!({"replicatedJobs": [
        {"name": "driver", "replicas": 1, "template": job},
        {"name": "worker", "replicas": 2, "template": job},
    ]})
}

fn wrapper(namespace: &str) -> Value {
    let mut job = objects::job("wrapped", 1, "1", LONG);
    job["metadata"] = json!({"name": "wrapped", "namespace": namespace});
    json!({"components": [{"template": job}]})
}

fn ray_cluster() -> Value {
    json!({
        "headGroupSpec": {"rayStartParams": {}, "template": template("Always")},
        "workerGroupSpecs": [{
            "groupName": "workers", "replicas": 1, "minReplicas": 0, "maxReplicas": 1,
            "rayStartParams": {}, "template": template("Always"),
        }],
    })
}
