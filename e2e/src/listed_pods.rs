//! The pods of a Workload as the manager lists them, from the cluster that runs it.

use anyhow::{Context, Result, ensure};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::Value;
use tokio::time::timeout;

use crate::installation::{Installation, TIMEOUT, first_user};

/// Waits until the manager lists so many pods of a Workload; each of them is one of the namespace on the cluster that it names.
///
/// # Errors
/// If it lists others.
pub async fn are_listed(
    installation: &Installation<'_>,
    (namespace, workload): (&str, &str),
    number: usize,
) -> Result<()> {
    let user = first_user(installation.hub.kubeconfig()?)?;
    let port = installation.ports().visibility();
    let client = installation.client_of("kueue-webhook-server-cert", port, user).await?;
    let path = format!(
        "/apis/visibility.sluice.dev/v1alpha1/namespaces/{namespace}/workloads/{workload}/pods"
    );
    let mut last = String::new();
    let listed = async {
        loop {
            let request = Request::get(&path).body(Vec::new())?;
            match client.request::<Value>(request).await {
                Ok(list) if names(&list).len() == number => return anyhow::Ok(list),
                Ok(list) => last = list.to_string(),
                Err(error) => last = error.to_string(),
            }
        }
    };
    let listed = timeout(TIMEOUT, listed).await;
    let list = listed.with_context(|| format!("{number} pods are not listed: {last}"))??;
    let cluster = list["cluster"].as_str().unwrap_or_default();
    let mut workers = installation.workers.iter();
    let place = match cluster {
        "" => &installation.hub,
        name => workers.find(|worker| worker.name() == name).context("a worker")?,
    };
    let pods: Api<Pod> = place.api(namespace);
    let there = pods.list(&ListParams::default()).await?.items;
    let there: Vec<String> = there.iter().map(ResourceExt::name_any).collect();
    ensure!(names(&list).iter().all(|name| there.contains(name)), "{list} is not of {there:?}");
    Ok(())
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}
