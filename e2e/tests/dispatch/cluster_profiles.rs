//! A worker that a ClusterProfile describes, and a command that gives its credential (docs/reference/multikueue.md §2.9).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::MultiKueueCluster;
use e2e::installation::{Installation, NAMESPACE};
use harness::Cluster;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::fixture::until_worker;

const GROUP: &str = "multicluster.x-k8s.io";

/// The configuration: a command that finds the token of a cluster in a file named after it.
pub(crate) fn configuration(installation: &Installation<'_>) -> Value {
    let folder = installation.lab.state().directory.join("tokens");
    // What the command is given has the name of the file in the extension of the profile.
    let script = format!(
        r#"name=$(printf %s "$KUBERNETES_EXEC_INFO" | sed 's/.*"file":"\([^"]*\)".*/\1/')
printf '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"%s"}}}}' "$(cat '{}'/"$name")""#,
        folder.display()
    );
    let command = json!({
        "command": "/bin/sh", "args": ["-c", script], "provideClusterInfo": true,
        "apiVersion": "client.authentication.k8s.io/v1",
    });
    json!({"accessProviders": [{"name": "files", "execConfig": command}]})
}

/// Serves ClusterProfiles on the hub.
pub(crate) async fn serve(hub: &Cluster) -> Result<()> {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": free, "status": free}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("clusterprofiles.{GROUP}"),
            // The API server asks for it below this group.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {
                "kind": "ClusterProfile", "plural": "clusterprofiles",
                "singular": "clusterprofile", "listKind": "ClusterProfileList",
            },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    Ok(hub.apply(&crd.to_string(), NAMESPACE).await?)
}

/// Replaces the registration of a worker by one with a ClusterProfile, and waits for the connection.
pub(crate) async fn register(installation: &Installation<'_>, worker: &str) -> Result<()> {
    let hub = &installation.hub;
    let secrets: Api<Secret> = hub.api(NAMESPACE);
    let text = secrets.get(worker).await?.data.unwrap_or_default();
    let text = text.get("kubeconfig").context("a kubeconfig")?;
    let kubeconfig: Value = serde_json::from_slice(&text.0)?;
    let token = kubeconfig.pointer("/users/0/user/token").and_then(Value::as_str);
    let folder = installation.lab.state().directory.join("tokens");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(worker), token.context("a token")?)?;
    // Nothing but the profile leads to the worker.
    secrets.delete(worker, &DeleteParams::default()).await?;

    let profile = format!("{worker}-profile");
    let object = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ClusterProfile",
        "metadata": {"name": profile}, "spec": {"clusterManager": {"name": "lab"}},
    });
    hub.apply(&object.to_string(), NAMESPACE).await?;
    let source = json!({"kubeConfig": null, "clusterProfileRef": {"name": profile}});
    change_source(hub, worker, &source).await?;
    until(hub, worker, "BadClusterProfile").await?;

    let mut cluster = kubeconfig.pointer("/clusters/0/cluster").context("a cluster")?.clone();
    cluster["extensions"] =
        json!([{"name": "client.authentication.k8s.io/exec", "extension": {"file": worker}}]);
    let status = json!({"status": {"accessProviders": [{"name": "files", "cluster": cluster}]}});
    let kind = GroupVersionKind::gvk(GROUP, "v1alpha1", "ClusterProfile");
    let resource = ApiResource::from_gvk_with_plural(&kind, "clusterprofiles");
    let profiles: Api<DynamicObject> = Api::namespaced_with(hub.client(), NAMESPACE, &resource);
    profiles.patch_status(&profile, &PatchParams::default(), &Patch::Merge(status)).await?;
    until(hub, worker, "Active").await
}

/// Registers the worker with a Secret again.
pub(crate) async fn unregister(installation: &Installation<'_>, worker: &str) -> Result<()> {
    let secret = json!({"locationType": "Secret", "location": worker});
    let source = json!({"kubeConfig": secret, "clusterProfileRef": null});
    change_source(&installation.hub, worker, &source).await?;
    installation.register().await
}

async fn change_source(hub: &Cluster, worker: &str, source: &Value) -> Result<()> {
    let registrations = hub.cluster_api::<MultiKueueCluster>();
    let fields = Patch::Merge(json!({"spec": {"clusterSource": source}}));
    registrations.patch(worker, &PatchParams::default(), &fields).await?;
    Ok(())
}

async fn until(hub: &Cluster, worker: &str, reason: &str) -> Result<()> {
    let what = format!("is reported {reason}");
    let said = until_worker(hub, (worker, &what), |said| said.reason == reason).await?;
    ensure!(said.status == (reason == "Active"), "{said:?}");
    Ok(())
}
