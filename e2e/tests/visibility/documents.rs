//! Discovery, OpenAPI, the CA of the API, its switch, and its flow control.

use std::io::ErrorKind;

use anyhow::{Context, Result};
use e2e::installation::{TIMEOUT, root};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::fixture::{ApiResponse, BASE, VisibilityFixture, until_with};

/// What a client that wants the discovery of all groups at once accepts.
const AGGREGATED: &[(&str, &str)] =
    &[("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")];

#[tokio::test]
async fn the_api_server_knows_both_versions_and_their_lists() -> Result<()> {
    let fixture = VisibilityFixture::new("discovery").await?;
    let group = fixture.until(BASE, "has both versions", has_both_versions).await?;
    assert_eq!(group.body["preferredVersion"]["version"], "v1beta2");
    for version in ["v1beta1", "v1beta2"] {
        let list = fixture.get(&format!("{BASE}/{version}")).await?;
        let names = list.body["resources"].as_array().into_iter().flatten();
        let names: Vec<&str> = names.filter_map(|one| one["name"].as_str()).collect();
        let pending = "clusterqueues/pendingworkloads";
        assert!(names.contains(&pending), "{version}: {names:?}");
    }
    let hub = fixture.installation.hub.client();
    let in_one = |response: &ApiResponse| aggregated_versions(response) == ["v1beta2", "v1beta1"];
    until_with(&hub, "/apis", AGGREGATED, "have the group", in_one).await?;
    Ok(())
}

fn has_both_versions(response: &ApiResponse) -> bool {
    response.body["versions"].as_array().is_some_and(|versions| versions.len() == 2)
}

fn aggregated_versions(response: &ApiResponse) -> Vec<&str> {
    let groups = response.body["items"].as_array().into_iter().flatten();
    let mut groups = groups.filter(|one| one["metadata"]["name"] == "visibility.kueue.x-k8s.io");
    let versions = groups.next().and_then(|one| one["versions"].as_array());
    let current = versions.into_iter().flatten().filter(|one| one["freshness"] == "Current");
    current.filter_map(|one| one["version"].as_str()).collect()
}

#[tokio::test]
async fn the_schema_of_the_api_server_has_the_lists() -> Result<()> {
    let fixture = VisibilityFixture::new("schema").await?;
    let path = format!("{BASE}/v1beta2/clusterqueues/{{name}}/pendingworkloads");
    let below = |response: &ApiResponse, field: &str| response.body["paths"][field].is_object();
    fixture.until("/openapi/v2", "has the path", |response| below(response, &path)).await?;
    let group = "apis/visibility.kueue.x-k8s.io/v1beta2";
    let index = fixture.until("/openapi/v3", "has the group", |one| below(one, group)).await?;
    let url = index.body["paths"][group]["serverRelativeURL"].as_str().context("an address")?;
    let document = fixture.get(url).await?;
    assert!(below(&document, &path), "{:?}", document.body["paths"]);
    let schemas = document.body["components"]["schemas"].as_object().context("schemas")?;
    let is_item = |schema: &Value| schema["properties"]["positionInClusterQueue"].is_object();
    assert!(schemas.values().any(is_item));
    Ok(())
}

#[tokio::test]
async fn a_ca_that_was_taken_out_of_an_api_service_is_put_back() -> Result<()> {
    let fixture = VisibilityFixture::alone("trust").await?;
    let services = fixture.api_services();
    let name = "v1beta1.visibility.kueue.x-k8s.io";
    let before = services.get(name).await?.spec.and_then(|spec| spec.ca_bundle).context("a CA")?;
    let taken = Patch::Merge(json!({"spec": {"caBundle": null}}));
    let taken = services.patch(name, &PatchParams::default(), &taken).await?;
    assert!(taken.spec.is_some_and(|spec| spec.ca_bundle.is_none()));
    let mended = |service: &APIService| {
        service.spec.as_ref().and_then(|spec| spec.ca_bundle.as_ref()) == Some(&before)
    };
    let hub = &fixture.installation.hub;
    hub.until(&services, name, "trusts the CA again", TIMEOUT, mended).await?;
    let path = fixture.of_cluster_queue("v1beta1");
    fixture.until(&path, "is answered again", |response| response.code == 200).await?;
    Ok(())
}

#[tokio::test]
async fn without_its_feature_gate_nothing_is_served() -> Result<()> {
    let fixture = VisibilityFixture::new("gate").await?;
    let port = harness::free_port()?;
    let blocks = json!({
        "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": port},
        "featureGates": {"VisibilityOnDemand": false},
    });
    let manager = fixture.installation.further_manager_with(&blocks).await?;
    let refused = TcpStream::connect(("127.0.0.1", port)).await.map(drop);
    let refused = refused.map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::ConnectionRefused), "though the manager is ready");
    manager.process.terminate(TIMEOUT).await?;
    Ok(())
}

#[tokio::test]
async fn the_api_server_takes_the_flow_control_of_the_manifests() -> Result<()> {
    let fixture = VisibilityFixture::new("flow_control").await?;
    let folder = root().join("config/visibility/flow-control").display().to_string();
    let applied = ["apply", "--dry-run=server", "-k", &folder];
    let applied = fixture.installation.hub.kubectl(&applied).await?;
    assert_eq!(applied.lines().count(), 2, "{applied}");
    Ok(())
}
