//! Logs of dispatched Jobs come back, to users with the right to read them, and of no other pod.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use crds::v1beta2::Workload;
use e2e::{installation::TIMEOUT, waits};
use harness::program;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

use crate::{
    fixture::{UnregisteredInstallation, queue_and_nodes},
    objects,
    played_kubelet::PlayedKubelet,
};

/// Where the API has the Workloads of a namespace.
fn path(namespace: &str, rest: &str) -> String {
    format!("/apis/visibility.sluice.dev/v1alpha1/namespaces/{namespace}/workloads/{rest}")
}

#[tokio::test]
async fn logs_of_a_dispatched_job_come_back() -> Result<()> {
    let fixture = UnregisteredInstallation::start_apart("logs").await?;
    let joined = fixture.join(1, &["--allow-loopback"]).await?;
    ensure!(joined.code == 0, "{joined:?}");
    queue_and_nodes(&fixture).await?;
    fixture.installation.aggregate_visibility().await?;
    let kubelet = PlayedKubelet::start().await?;
    for node in objects::own_nodes(fixture.space.namespace(), 2, "2").names() {
        kubelet.serve(fixture.worker(1), &node).await?;
    }
    fixture.submit(objects::job("train", 2, "1", 600)).await?;
    fixture.until_running("train", 1).await?;
    let pods = until_two_are_listed(&fixture).await?;

    of_the_job(&fixture, &pods).await?;
    followed(&fixture, &kubelet, &pods[0]).await?;
    of_nothing_else(&fixture).await?;
    of_users(&fixture).await?;
    without_the_role(&fixture).await
}

/// The names of the pods of the Job, as the manager lists them.
async fn until_two_are_listed(fixture: &UnregisteredInstallation) -> Result<[String; 2]> {
    let (hub, namespace) = (fixture.hub(), fixture.space.namespace());
    let placed = |one: &Workload| one.status.cluster_name.is_some();
    let place = (hub, namespace);
    let workload = waits::until_workload(place, ("train", "has a worker"), TIMEOUT, placed).await?;
    let path = path(namespace, &format!("{}/pods", workload.name_any()));
    let mut last = Value::Null;
    let listed = async {
        loop {
            let list: Value = serde_json::from_str(&hub.kubectl(&["get", "--raw", &path]).await?)?;
            last = list.clone();
            let names = list["items"].as_array().into_iter().flatten();
            let names: Vec<String> =
                names.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect();
            if let Ok(both) = <[String; 2]>::try_from(names) {
                ensure!(list["cluster"] == "worker-1", "{list}");
                return Ok(both);
            }
        }
    };
    match timeout(TIMEOUT, listed).await {
        Ok(listed) => listed,
        Err(_) => bail!("two pods are not listed: {last}"),
    }
}

/// The logs of the Job, one and both.
async fn of_the_job(fixture: &UnregisteredInstallation, pods: &[String; 2]) -> Result<()> {
    let namespace = fixture.space.namespace();
    let one = fixture.run(&["logs", "job/train", "-n", namespace, "--tail", "5"]).await?;
    let line = |pod: &str| format!("{namespace}/{pod}/main?tailLines=5\n");
    ensure!(one.code == 0 && one.out == line(&pods[0]), "{one:?}");
    let note = format!("Defaulted pod {} out of: {}", pods[0], pods.join(", "));
    ensure!(one.errors.contains(&note), "{one:?}");
    let both = ["logs", "train", "-n", namespace, "--all-pods", "--tail", "5"];
    let both = fixture.succeed(&both).await?;
    let expected: String = pods.iter().map(|pod| format!("[{pod}] {}", line(pod))).collect();
    ensure!(both == expected, "{both}");
    Ok(())
}

/// A log that is followed arrives line by line.
async fn followed(
    fixture: &UnregisteredInstallation,
    kubelet: &PlayedKubelet,
    pod: &str,
) -> Result<()> {
    let namespace = fixture.space.namespace();
    let mut command = Command::new(program("sluicectl")?);
    command.env("KUBECONFIG", fixture.hub().state().kubeconfig()).kill_on_drop(true);
    command.args(["logs", "job/train", "-n", namespace, "-f", "--pod", pod]);
    // The end of the caller reaches the kubelet, through both API servers and the manager.
    let mut left = command.stdout(Stdio::piped()).spawn()?;
    kubelet.until_followed(1).await?;
    left.kill().await?;
    kubelet.until_followed(0).await?;
    let mut run = command.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(run.stdout.take().context("an output")?).lines();
    let first = timeout(TIMEOUT, lines.next_line()).await??.unwrap_or_default();
    ensure!(first.ends_with("main?follow=true"), "{first}");
    kubelet.go_on();
    let last = timeout(TIMEOUT, lines.next_line()).await??;
    ensure!(last.as_deref() == Some("the end"), "{last:?}");
    ensure!(timeout(TIMEOUT, run.wait()).await??.success());
    Ok(())
}

/// A pod with copied labels on the worker, and Workloads that run nowhere.
async fn of_nothing_else(fixture: &UnregisteredInstallation) -> Result<()> {
    let (hub, worker, namespace) = (fixture.hub(), fixture.worker(1), fixture.space.namespace());
    let pods: Api<Pod> = worker.api(namespace);
    let all = pods.list(&ListParams::default()).await?.items;
    let model = all.into_iter().next().context("a pod")?;
    // Not those of the Job controller, which would adopt it.
    let mut labels = model.metadata.labels.unwrap_or_default();
    labels.retain(|key, _| key.starts_with("kueue.x-k8s.io/"));
    ensure!(!labels.is_empty(), "the pods of the Job have no labels of Kueue");
    let thief = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "thief", "labels": labels, "annotations": model.metadata.annotations,
        },
        "spec": {
            "containers": [{"name": "main", "image": "main"}],
            "nodeName": model.spec.and_then(|spec| spec.node_name),
        },
    });
    worker.apply(&thief.to_string(), namespace).await?;
    let refused = fixture.run(&["logs", "train", "-n", namespace, "--pod", "thief"]).await?;
    refused.expect_failure(1, "has no pod thief on cluster worker-1")?;
    let workloads: Api<Workload> = hub.api(namespace);
    let workload = workloads.list(&ListParams::default()).await?.items;
    let workload = workload.first().context("a Workload")?.name_any();
    let raw = path(namespace, &format!("{workload}/log?pod=thief"));
    expect(hub.kubectl(&["get", "--raw", &raw]).await, "has no pod \"thief\"")?;

    // The other group with the name is no rival of Kueue's.
    let names = hub.kubectl(&["get", "workloads", "-n", namespace, "-o", "name"]).await?;
    ensure!(names.starts_with("workload.kueue.x-k8s.io/"), "{names}");

    fixture.submit(objects::job("larger", 1, "3", 1)).await?;
    let pending = |one: &Workload| !one.status.conditions.is_empty();
    fixture.until_workload("larger", "is pending", pending).await?;
    let waits = fixture.run(&["logs", "job/larger", "-n", namespace]).await?;
    waits.expect_failure(1, "has no pods yet: it is pending")
}

/// A user needs the right on pods and the right on this API.
async fn of_users(fixture: &UnregisteredInstallation) -> Result<()> {
    let (hub, namespace) = (fixture.hub(), fixture.space.namespace());
    hub.kubectl(&["create", "serviceaccount", "reader", "-n", namespace]).await?;
    let account = format!("--serviceaccount={namespace}:reader");
    let kubeconfig = hub.kubeconfig_for(namespace, "reader").await?;
    let client = lab::kubeconfig::client(kubeconfig).await?;
    let workloads: Api<Workload> = hub.api(namespace);
    let all = workloads.list(&ListParams::default()).await?.items;
    let train = all.iter().map(ResourceExt::name_any).find(|name| name.starts_with("job-train"));
    let raw = path(namespace, &format!("{}/pods", train.context("a Workload")?));
    let ask = async || {
        let request = http::Request::get(&raw).body(Vec::new())?;
        anyhow::Ok(client.request_text(request).await.map_err(|error| error.to_string()))
    };
    let refused = ask().await?.err().context("allowed without a role")?;
    ensure!(refused.contains("cannot get resource \"workloads/pods\""), "{refused}");
    let bind = ["create", "rolebinding", "-n", namespace, &account];
    let role = "--clusterrole=sluice-workload-logs-viewer-role";
    hub.kubectl(&[&bind[..], &["api", role]].concat()).await?;
    let needs_pods = async {
        loop {
            match ask().await? {
                Err(text) if text.contains("cannot list resource \"pods\"") => return Ok(()),
                Err(_) => {}
                Ok(list) => bail!("listed without a right on pods: {list}"),
            }
        }
    };
    timeout(TIMEOUT, needs_pods).await.context("the API needs no right on pods")??;
    hub.kubectl(&[&bind[..], &["view", "--clusterrole=view"]].concat()).await?;
    let allowed = async {
        while ask().await?.is_err() {}
        anyhow::Ok(())
    };
    timeout(TIMEOUT, allowed).await.context("a viewer is refused")?
}

/// The worker takes the right away from the manager.
async fn without_the_role(fixture: &UnregisteredInstallation) -> Result<()> {
    let (worker, namespace) = (fixture.worker(1), fixture.space.namespace());
    worker.kubectl(&["delete", "clusterrolebinding", "sluice-hub-logs"]).await?;
    let refused = async {
        loop {
            let result = fixture.run(&["logs", "job/train", "-n", namespace]).await?;
            if result.code != 0 {
                let text = "may not get pods/log on cluster \"worker-1\": see the ClusterRole sluice-hub-logs";
                return result.expect_failure(1, text);
            }
        }
    };
    timeout(TIMEOUT, refused).await.context("the right is not missing")?
}

fn expect<E: std::fmt::Display>(answer: Result<String, E>, text: &str) -> Result<()> {
    match answer {
        Err(error) if error.to_string().contains(text) => Ok(()),
        Err(error) => bail!("not about {text:?}: {error}"),
        Ok(answer) => bail!("answered: {answer}"),
    }
}
