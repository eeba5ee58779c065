//! What the account of the manager may do on a worker beyond its roles (config/worker/hub/policy.yaml).

use anyhow::{Result, bail, ensure};
use crds::{names::gates::MULTI_KUEUE, v1beta2::Workload};
use e2e::{
    installation::{NAMESPACE, TIMEOUT, root},
    local_webhooks,
};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, with_label},
    objects,
};

/// Of no manager, so that nothing deletes what is made here.
const ORIGIN: (&str, &str) = ("kueue.x-k8s.io/multikueue-origin", "a-test");

const SUSPENDED_ONLY: &str = "a manager makes only suspended jobs and gated pods";
const NO_ORIGIN: &str = "a manager makes only objects with the label";
const FOREIGN: &str = "a manager changes and deletes only objects with the label";
const NO_START: &str = "a manager starts no job: the agent does";
const NO_ADMISSION: &str = "a manager opens preemption gates and admits no Workload";

#[tokio::test]
async fn the_account_of_a_manager_makes_suspended_copies_and_touches_nothing_else() -> Result<()> {
    let fixture = DispatchFixture::shared("hub_account").await?;
    let worker = fixture.worker(1);
    let account = worker.kubeconfig_for(NAMESPACE, "sluice-hub").await?;
    let client = lab::kubeconfig::client(account).await?;
    let jobs: Api<Job> = Api::namespaced(client.clone(), fixture.namespace());
    let admins = worker.api::<Job>(fixture.namespace());

    expect_denied(create(&jobs, job("runs", false, true)).await, SUSPENDED_ONLY)?;
    expect_denied(create(&jobs, job("without-origin", true, false)).await, NO_ORIGIN)?;
    create(&jobs, job("copy", true, true)).await?;
    let start = json!({"spec": {"suspend": false}});
    expect_denied(merge(&jobs, "copy", &start).await, NO_START)?;
    let unmark = json!({"metadata": {"labels": {ORIGIN.0: null}}});
    expect_denied(merge(&jobs, "copy", &unmark).await, "cannot change")?;
    // The agent starts it, the manager stops and deletes it.
    merge(&admins, "copy", &start).await?;
    merge(&jobs, "copy", &json!({"metadata": {"annotations": {"a": "b"}}})).await?;
    merge(&jobs, "copy", &json!({"spec": {"suspend": true}})).await?;
    jobs.delete("copy", &DeleteParams::background()).await?;

    create(&admins, job("foreign", true, false)).await?;
    expect_denied(
        merge(&jobs, "foreign", &json!({"metadata": {"labels": {"a": "b"}}})).await,
        FOREIGN,
    )?;
    expect_denied(jobs.delete("foreign", &DeleteParams::background()).await, FOREIGN)?;
    of_other_kinds(&client, fixture.namespace()).await?;
    in_labelled_namespaces(&fixture, &jobs).await
}

/// The optional policy. Other tests have other namespaces.
async fn in_labelled_namespaces(fixture: &DispatchFixture, jobs: &Api<Job>) -> Result<()> {
    let (worker, namespace) = (fixture.worker(1), fixture.namespace());
    let folder = root().join("config/worker/labelled-namespaces").display().to_string();
    let mut objects = local_webhooks::objects(&worker.kubectl(&["kustomize", &folder]).await?)?;
    for binding in
        objects.iter_mut().filter(|one| one["kind"] == "ValidatingAdmissionPolicyBinding")
    {
        let names = json!({"kubernetes.io/metadata.name": namespace});
        binding["spec"]["matchResources"] = json!({"namespaceSelector": {"matchLabels": names}});
    }
    let manifests: Vec<String> = objects.iter().map(Value::to_string).collect();
    worker.apply(&manifests.join("\n---\n"), namespace).await?;
    // API servers obey a policy some time after it was made.
    let denied = async {
        loop {
            match create(jobs, job("outside", true, true)).await {
                Ok(_) => drop(jobs.delete("outside", &DeleteParams::background()).await?),
                denied => return expect_denied(denied, "has no label sluice.dev/dispatch=enabled"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, denied).await??;
    worker.kubectl(&["label", "namespace", namespace, "sluice.dev/dispatch=enabled"]).await?;
    let allowed = async { while create(jobs, job("inside", true, true)).await.is_err() {} };
    Ok(tokio::time::timeout(TIMEOUT, allowed).await?)
}

async fn of_other_kinds(client: &Client, namespace: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod = |name: &str, gates: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {ORIGIN.0: ORIGIN.1}},
            "spec": {"schedulingGates": gates, "containers": [{"name": "main", "image": "main"}]},
        })
    };
    expect_denied(create(&pods, pod("runs", json!([]))).await, SUSPENDED_ONLY)?;
    let other = json!([{"name": "example.com/other"}]);
    expect_denied(create(&pods, pod("gated-by-another", other)).await, SUSPENDED_ONLY)?;
    create(&pods, pod("copy", json!([{"name": "kueue.x-k8s.io/admission"}]))).await?;
    let ungate = json!({"spec": {"schedulingGates": null}});
    expect_denied(merge(&pods, "copy", &ungate).await, NO_START)?;
    pods.delete("copy", &DeleteParams::default()).await?;

    let workloads: Api<Workload> = Api::namespaced(client.clone(), namespace);
    let template = json!({"spec": {"containers": [{"name": "main", "image": "main"}]}});
    let clone = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "clone"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
    });
    expect_denied(create(&workloads, clone.clone()).await, NO_ORIGIN)?;
    create(&workloads, with_label(clone, ORIGIN.0, ORIGIN.1)).await?;
    status_of_clone(&workloads).await?;
    workloads.delete("clone", &DeleteParams::default()).await?;
    Ok(())
}

async fn status_of_clone(workloads: &Api<Workload>) -> Result<()> {
    let write = |status: Value| async move {
        let (parameters, fields) =
            (PatchParams::default(), Patch::Merge(json!({"status": status})));
        workloads.patch_status("clone", &parameters, &fields).await
    };
    let at = "2026-01-01T00:00:00Z";
    let gate = json!({"name": MULTI_KUEUE, "position": "Open", "lastTransitionTime": at});
    write(json!({"preemptionGates": [gate]})).await?;
    let admitted = json!({
        "type": "Admitted", "status": "True", "reason": "Admitted", "message": "", "lastTransitionTime": at,
    });
    expect_denied(write(json!({"conditions": [admitted]})).await, NO_ADMISSION)
}

fn job(name: &str, suspended: bool, with_origin: bool) -> Value {
    let mut job = objects::job(name, 1, "1", 1);
    job["spec"]["suspend"] = json!(suspended);
    if with_origin { with_label(job, ORIGIN.0, ORIGIN.1) } else { job }
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<K, kube::Error>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
    api.create(&PostParams::default(), &object).await
}

async fn merge<K>(api: &Api<K>, name: &str, change: &Value) -> Result<K, kube::Error>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await
}

fn expect_denied<T>(answer: Result<T, kube::Error>, because: &str) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) => {
            ensure!(
                status.message.contains(because),
                "{because:?} is expected: {}",
                status.message
            );
            Ok(())
        }
        Err(error) => bail!(error),
        Ok(_) => bail!("allowed, where {because:?} is expected"),
    }
}
