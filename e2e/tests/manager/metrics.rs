//! Metrics need authorization.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Config, config::AuthInfo};
use serde_json::json;

use crate::{NAMESPACE, TIMEOUT, World, world};

/// Between two scrapes that fail.
const POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// A client of the metrics of a manager, with the CA of its webhooks.
async fn client(world: &World, port: u16, token: Option<String>) -> Result<Client> {
    let secrets: Api<Secret> = world.cluster.api(NAMESPACE);
    let secret = secrets.get("kueue-webhook-server-cert").await?;
    let ca = secret.data.as_ref().and_then(|data| data.get("ca.crt")).context("a CA")?;
    let path = world.lab.state().directory.join(format!("metrics-{port}.crt"));
    std::fs::write(&path, &ca.0)?;
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
    config.root_cert_file = Some(path);
    config.auth_info = AuthInfo { token: token.map(Into::into), ..AuthInfo::default() };
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// The status of a scrape.
pub(crate) async fn get(world: &World, port: u16, token: Option<String>) -> Result<u16> {
    let request = http::Request::get("/metrics").body(kube::client::Body::empty())?;
    let response = client(world, port, token).await?.send(request).await?;
    Ok(response.status().as_u16())
}

/// The response of a scrape.
async fn text(world: &World, port: u16, token: String) -> Result<String> {
    let request = http::Request::get("/metrics").body(vec![])?;
    Ok(client(world, port, Some(token)).await?.request_text(request).await?)
}

async fn token(world: &World, account: &str) -> Result<String> {
    let token = world.cluster.kubectl(&["create", "token", account]).await?;
    Ok(token.trim().to_owned())
}

#[tokio::test]
async fn metrics_need_authorization() -> Result<()> {
    let world = world().await?;
    let port = world.manager.metrics;
    for account in ["scraper", "nobody"] {
        world.cluster.kubectl(&["create", "serviceaccount", account]).await?;
    }
    let role = "--clusterrole=kueue-metrics-reader";
    let account = "--serviceaccount=default:scraper";
    world.cluster.kubectl(&["create", "clusterrolebinding", "scraper", role, account]).await?;
    assert_eq!(get(&world, port, None).await?, 401);
    assert_eq!(get(&world, port, Some("forged".to_owned())).await?, 401);
    assert_eq!(get(&world, port, Some(token(&world, "nobody").await?)).await?, 403);
    let text = text(&world, port, token(&world, "scraper").await?).await?;
    assert!(text.contains("kueue_build_info{"), "{text}");
    let watch = "sluice_watch_unreadable_objects{watch=\"localqueues\"} 0";
    assert!(text.contains(watch), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_replica_that_serves_nothing_else_has_a_certificate_for_its_metrics() -> Result<()> {
    let world = world().await?;
    let replica = world.another_of("core,jobs,scheduler", json!({})).await?;
    // It is ready without the certificate, which is loaded meanwhile.
    let scraped = async {
        loop {
            match get(&world, replica.metrics, None).await {
                Ok(status) => return status,
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    };
    assert_eq!(tokio::time::timeout(TIMEOUT, scraped).await.context("the scrape")?, 401);
    Ok(())
}
