//! The certificate of the webhooks, and its CA in the API server.

use anyhow::{Context, Result};
use k8s_openapi::{
    api::core::v1::Secret,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{NAMESPACE, TIMEOUT, World, world};

/// Creates a flavor through its webhooks and gives what was stored.
async fn create_flavor(world: &World, name: &str) -> Result<Value> {
    let flavor = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
        "metadata": {"name": name}, "spec": {"nodeLabels": {"pool": "a"}},
    });
    world.cluster.apply(&flavor.to_string(), "default").await?;
    let stored = world.cluster.kubectl(&["get", "resourceflavor", name, "-o", "json"]).await?;
    serde_json::from_str(&stored).context("an object")
}

#[tokio::test]
async fn webhooks_are_called_with_no_more_than_the_roles_in_the_manifests() -> Result<()> {
    let world = world().await?;
    let flavor = create_flavor(&world, "called").await?;
    assert_eq!(flavor["metadata"]["finalizers"], json!(["kueue.x-k8s.io/resource-in-use"]));
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue",
        "metadata": {"name": "converted"}, "spec": {"cohort": "c"},
    });
    world.cluster.apply(&queue.to_string(), "default").await?;
    let path = "jsonpath={.spec.cohortName}";
    let arguments = ["get", "clusterqueues.v1beta2.kueue.x-k8s.io", "converted", "-o", path];
    assert_eq!(world.cluster.kubectl(&arguments).await?, "c");
    Ok(())
}

#[tokio::test]
async fn a_replica_uses_the_certificate_that_is_there() -> Result<()> {
    let world = world().await?;
    let secrets: Api<Secret> = world.cluster.api(NAMESPACE);
    let before = secrets.get("kueue-webhook-server-cert").await?;
    let _replica = world.another(json!({})).await?;
    let after = secrets.get("kueue-webhook-server-cert").await?;
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
    Ok(())
}

#[tokio::test]
async fn a_ca_that_was_taken_out_is_put_back() -> Result<()> {
    let world = world().await?;
    let name = "multikueueclusters.kueue.x-k8s.io";
    let crds: Api<CustomResourceDefinition> = world.cluster.cluster_api();
    let config = "/spec/conversion/webhook/clientConfig";
    let bundle = |crd: &CustomResourceDefinition| {
        let config = crd.spec.conversion.as_ref()?.webhook.as_ref()?.client_config.as_ref()?;
        config.ca_bundle.clone()
    };
    let before = bundle(&crds.get(name).await?).context("a CA")?;
    let taken = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}});
    let patched = crds.patch(name, &PatchParams::default(), &Patch::Merge(taken)).await?;
    assert!(bundle(&patched).is_none(), "{config} has no CA any more");
    let what = "trusts the CA again";
    let mended = |crd: &CustomResourceDefinition| bundle(crd) == Some(before.clone());
    world.cluster.until(&crds, name, what, TIMEOUT, mended).await?;
    Ok(())
}

#[tokio::test]
async fn a_mounted_certificate_is_served() -> Result<()> {
    let world = world().await?;
    let secrets: Api<Secret> = world.cluster.api(NAMESPACE);
    let secret = secrets.get("kueue-webhook-server-cert").await?;
    let dir = tempfile::tempdir()?;
    for file in ["tls.crt", "tls.key"] {
        let data = secret.data.as_ref().and_then(|data| data.get(file)).context("a file")?;
        std::fs::write(dir.path().join(file), &data.0)?;
    }
    let settings = json!({
        "internalCertManagement": {"enable": false},
        "webhook": {"certDir": dir.path()},
    });
    let mounted = world.another(settings).await?;
    assert_eq!(crate::metrics::get(&world, mounted.metrics, None).await?, 401);
    Ok(())
}
