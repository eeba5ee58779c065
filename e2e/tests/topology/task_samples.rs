//! The samples of `docs/tasks`, applied as its pages say.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::{
    meta::{self, is_true},
    names::{
        annotations::POD_SET_REQUIRED_TOPOLOGY,
        conditions::{ACTIVE, FINISHED},
        labels::QUEUE_NAME,
    },
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{
    installation::{NAMESPACE, TIMEOUT, root},
    waits,
};
use harness::{Cluster, NodeSpec};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, Pod},
};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::fixture::{node_of, shared};

/// Between two tries.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The node label of a rack in the sample of a topology.
const SAMPLE_RACK: &str = "example.com/rack";

/// The ClusterQueues of the samples.
const CLUSTER_QUEUES: [&str; 4] = ["vision", "speech", "simulation", "opted-in"];

/// The Jobs of the samples, with their namespaces, in the order of the pages.
const JOBS: [(&str, &str); 5] = [
    ("speech", "transcribe"),
    ("vision", "report"),
    ("vision", "all-reduce"),
    ("simulation", "halo-exchange"),
    ("nightly", "backup"),
];

#[tokio::test]
async fn jobs_of_the_task_samples_are_queued_and_end() -> Result<()> {
    let lab = shared().await?;
    let _answers = lab.keep_manager().await;
    let hub = lab.installation().await?.hub.clone();
    add_racks(&hub).await?;
    for folder in ["quotas", "priorities", "gangs", "topology", "namespaces"] {
        apply(&hub, folder).await?;
    }
    for queue in CLUSTER_QUEUES {
        let active = |queue: &ClusterQueue| is_true(&queue.status.conditions, ACTIVE);
        hub.until(&hub.cluster_api(), queue, "is active", TIMEOUT, active).await?;
    }
    until_queued_by_default(&hub).await?;
    apply(&hub, "namespaces/jobs").await?;
    for (namespace, name) in JOBS {
        let ended = waits::until_job_ended((&hub, namespace), (name, "Complete"), 2 * TIMEOUT);
        ensure!(ended.await?.0.labels().contains_key(QUEUE_NAME), "{name} has a queue");
        let place = (&hub, namespace);
        let finished = |one: &Workload| is_true(&one.status.conditions, FINISHED);
        let workload = waits::until_workload(place, (name, "finishes"), TIMEOUT, finished).await?;
        let result = meta::find(&workload.status.conditions, FINISHED).context("a result")?;
        ensure!(result.reason == "Succeeded", "{name}: {result:?}");
        let priority = if name == "report" { 1000 } else { 0 };
        ensure!(workload.spec.priority == Some(priority), "{name}: {:?}", workload.spec);
    }
    runs_in_one_rack(&hub).await
}

#[tokio::test]
async fn the_policy_of_the_task_samples_refuses_jobs_without_a_queue() -> Result<()> {
    let lab = shared().await?;
    let _answers = lab.keep_manager().await;
    let hub = lab.installation().await?.hub.clone();
    let policy = root().join("config/samples/tasks/namespaces/policy.yaml");
    let policy = policy.display().to_string();
    hub.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &policy]).await?;
    hub.kubectl(&["create", "namespace", "undecided"]).await?;
    hub.kubectl(&["label", "namespace", "undecided", "example.com/queued=true"]).await?;
    let message = "ValidatingAdmissionPolicy 'jobs-have-a-queue' with binding 'jobs-have-a-queue' denied request: \
                   a Job in this namespace needs the label kueue.x-k8s.io/queue-name";
    let create = ["create", "--dry-run=server", "-n", "undecided", "job", "hello", "--image=a"];
    let refused = async || {
        let said = hub.kubectl(&create).await.err().map(|error| error.to_string());
        said.is_some_and(|said| said.contains(message))
    };
    until(refused).await.context("a Job without a queue is refused")
}

#[tokio::test]
async fn the_rights_of_the_task_samples_suffice_for_an_external_kind() -> Result<()> {
    let hub = shared().await?.installation().await?.hub.clone();
    hub.apply(&experiments().to_string(), NAMESPACE).await?;
    apply(&hub, "external").await?;
    apply(&hub, "external/worker").await?;
    for (account, verb, subresource) in [
        ("sluice-manager", "get", ""),
        ("sluice-manager", "list", ""),
        ("sluice-manager", "watch", ""),
        ("sluice-manager", "patch", "status"),
        ("sluice-hub", "create", ""),
        ("sluice-hub", "delete", ""),
        ("sluice-hub", "list", ""),
        ("sluice-hub", "watch", ""),
    ] {
        let user = format!("--as=system:serviceaccount:{NAMESPACE}:{account}");
        let part = format!("--subresource={subresource}");
        let asked = ["auth", "can-i", verb, "experiments.example.com", "-A", &part, &user];
        // The API server sees a new role shortly after its creation.
        let may = until(async || hub.kubectl(&asked).await.is_ok_and(|may| may.trim() == "yes"));
        may.await.with_context(|| format!("{account} may {verb} {subresource}"))?;
    }
    Ok(())
}

/// The kind that the page names. kubectl asks for the rights of kinds that it knows.
fn experiments() -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": free, "status": free}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "experiments.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Experiment", "plural": "experiments"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// Two racks that hold the Job of a topology each, without a taint: the pods of the other samples run there as well.
async fn add_racks(hub: &Cluster) -> Result<()> {
    for rack in ["b1-r1", "b1-r2"] {
        let labels =
            [("example.com/pool", "racks"), ("example.com/block", "b1"), (SAMPLE_RACK, rack)];
        let spec = NodeSpec {
            prefix: format!("samples-{rack}"),
            count: 2,
            cpu: "16".to_owned(),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ..NodeSpec::default()
        };
        hub.add_nodes(&spec).await?;
    }
    Ok(())
}

async fn apply(hub: &Cluster, folder: &str) -> Result<()> {
    let folder = root().join("config/samples/tasks").join(folder).display().to_string();
    hub.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &folder]).await?;
    Ok(())
}

/// The webhook gives a new Job of the namespace the LocalQueue `default`, once its watch has shown it.
async fn until_queued_by_default(hub: &Cluster) -> Result<()> {
    let output = "-o=jsonpath={.metadata.labels.kueue\\.x-k8s\\.io/queue-name}";
    let create =
        ["create", "--dry-run=server", output, "-n", "nightly", "job", "hello", "--image=a"];
    let queued = async || hub.kubectl(&create).await.is_ok_and(|queue| queue == "default");
    until(queued).await.context("a new Job has the default queue")
}

async fn until(holds: impl AsyncFn() -> bool) -> Result<()> {
    let polled = async {
        while !holds().await {
            sleep(POLL_INTERVAL).await;
        }
    };
    Ok(timeout(TIMEOUT, polled).await?)
}

/// The Job asks for one rack.
async fn runs_in_one_rack(hub: &Cluster) -> Result<()> {
    let jobs: Api<Job> = hub.api("simulation");
    let job = jobs.get("halo-exchange").await?;
    let template = job.spec.and_then(|spec| spec.template.metadata).unwrap_or_default();
    let annotations = template.annotations.unwrap_or_default();
    let required = annotations.get(POD_SET_REQUIRED_TOPOLOGY).map(String::as_str);
    ensure!(required == Some(SAMPLE_RACK), "{annotations:?}");
    let pods: Api<Pod> = hub.api("simulation");
    let nodes: Api<Node> = hub.cluster_api();
    let mut racks = BTreeSet::new();
    for pod in pods.list(&ListParams::default()).await? {
        racks.extend(nodes.get(&node_of(&pod)).await?.labels().get(SAMPLE_RACK).cloned());
    }
    ensure!(racks.len() == 1, "{racks:?}");
    Ok(())
}
