//! Applying manifests.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};

use crate::{TIMEOUT, lab};

const DEFINITION: &str = "
apiVersion: example.sluice.dev/v1
kind: Boat
metadata: {name: one}
spec: {masts: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.sluice.dev}
spec:
  group: example.sluice.dev
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat, listKind: BoatList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {masts: {type: integer, maximum: 7}}}
";

#[tokio::test]
async fn a_definition_is_applied_before_the_objects_of_its_kind() -> Result<()> {
    let space = lab().await?.space("definition").await?;
    let cluster = space.worker(1)?;
    cluster.apply(DEFINITION, space.namespace()).await?;

    let kind = GroupVersionKind::gvk("example.sluice.dev", "v1", "Boat");
    let resource = ApiResource::from_gvk(&kind);
    let boats: Api<DynamicObject> =
        Api::namespaced_with(cluster.client(), space.namespace(), &resource);
    assert_eq!(boats.get("one").await?.data["spec"]["masts"], 3);

    let refused =
        cluster.apply(&DEFINITION.replace("masts: 3", "masts: 9"), space.namespace()).await;
    let message = format!("{:?}", refused.err());
    assert!(message.contains("should be less than or equal to 7"), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_directory_and_a_kustomization_are_applied() -> Result<()> {
    let space = lab().await?.space("directory").await?;
    let cluster = space.worker(1)?;
    let directory = tempfile::tempdir()?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n";
    std::fs::write(directory.path().join("map.yaml"), map)?;
    let kustomization = "resources: [map.yaml]\nnamePrefix: my-\n";
    std::fs::write(directory.path().join("kustomization.yaml"), kustomization)?;

    cluster.apply_directory(directory.path(), space.namespace()).await?;
    cluster.apply_kustomization(directory.path(), space.namespace()).await?;

    let maps: Api<ConfigMap> = cluster.api(space.namespace());
    for name in ["settings", "my-settings"] {
        cluster.until(&maps, name, "is there", TIMEOUT, |map| map.data.is_some()).await?;
    }
    Ok(())
}
