//! Components are paused, killed and restarted, and waits report it.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};
use e2e::objects::phase;
use harness::{Component, secs};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::time::timeout;

use crate::{TIMEOUT, job, lab, submit};

fn config_map(name: &str) -> Result<ConfigMap> {
    Ok(serde_json::from_value(json!({"metadata": {"name": name}, "data": {"colour": "green"}}))?)
}

#[tokio::test]
async fn a_wait_on_a_paused_api_server_reports_it_with_the_object() -> Result<()> {
    let space = lab().await?.space_alone("paused").await?;
    let cluster = space.worker(2)?;
    let maps: Api<ConfigMap> = cluster.api(space.namespace());
    maps.create(&PostParams::default(), &config_map("settings")?).await?;

    let red = |map: &ConfigMap| map.data.iter().flatten().any(|(_, value)| value == "red");
    let refused = cluster.until(&maps, "settings", "is red", secs(1), red).await;
    let message = refused.err().context("nothing made it red")?.to_string();
    assert!(message.contains("gave up after 1s on worker-2: settings is red"), "{message}");
    assert!(message.contains("colour: green"), "{message}");
    assert!(!message.contains("is paused"), "{message}");

    cluster.pause(Component::ApiServer)?;
    let refused = cluster.until(&maps, "settings", "is red", secs(1), red).await;
    let message = refused.err().context("the API server is paused")?.to_string();
    assert!(message.contains("kube-apiserver of worker-2 is paused"), "{message}");
    assert!(message.contains("the API server did not answer"), "{message}");

    cluster.resume(Component::ApiServer)?;
    cluster.until(&maps, "settings", "is there", TIMEOUT, |_| true).await?;
    Ok(())
}

#[tokio::test]
async fn a_restarted_api_server_keeps_its_objects() -> Result<()> {
    let space = lab().await?.space_alone("killed").await?;
    let cluster = space.worker(2)?;
    let maps: Api<ConfigMap> = cluster.api(space.namespace());
    maps.create(&PostParams::default(), &config_map("settings")?).await?;

    cluster.kill(Component::ApiServer)?;
    let refused = cluster.until(&maps, "other", "is there", secs(1), |_| true).await;
    let message = refused.err().context("the API server is dead")?.to_string();
    assert!(message.contains("kube-apiserver of worker-2 is dead"), "{message}");
    assert!(cluster.kill(Component::ApiServer).is_err(), "what is dead cannot be killed");

    cluster.restart(Component::ApiServer).await?;
    cluster.until(&maps, "settings", "is there", TIMEOUT, |_| true).await?;
    Ok(())
}

#[tokio::test]
async fn a_restarted_kwok_continues_existing_pods() -> Result<()> {
    let space = lab().await?.space_alone("kwok_restart").await?;
    let cluster = space.worker(2)?;
    cluster.kill(Component::Kwok)?;
    submit(&space, 2, &job("train", 2, &[])?).await?;
    let pods: Api<Pod> = cluster.api(space.namespace());
    let have_nodes = |pods: &[Pod]| {
        let has_node = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        pods.len() == 2 && pods.iter().all(has_node)
    };
    let waiting =
        cluster.until_all(&pods, "job-name=train", "have nodes", TIMEOUT, have_nodes).await?;
    assert!(waiting.iter().all(|pod| phase(pod) == "Pending"), "no kubelet, no run");

    cluster.restart(Component::Kwok).await?;
    let succeeded =
        |pods: &[Pod]| pods.len() == 2 && pods.iter().all(|pod| phase(pod) == "Succeeded");
    cluster.until_all(&pods, "job-name=train", "succeed", TIMEOUT, succeeded).await?;
    space.observer().until("train", 2, harness::RunVerdict::Once, TIMEOUT).await?;
    Ok(())
}

#[tokio::test]
async fn a_component_whose_port_was_taken_says_so_and_starts_once_it_is_free() -> Result<()> {
    let space = lab().await?.space_alone("port_taken").await?;
    let cluster = space.worker(2)?;
    cluster.kill(Component::Scheduler)?;
    let port = cluster.state().scheduler_port;
    let bound = async {
        loop {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                Ok(listener) => break listener,
                // The killed process is ending.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let other = timeout(TIMEOUT, bound).await.context("the port is not free")?;
    let refused = cluster.restart(Component::Scheduler).await;
    let message = refused.err().context("the port is taken")?.to_string();
    let expected =
        format!("port {port} of kube-scheduler of worker-2 is in use by another program");
    assert!(message.contains(&expected), "{message}");

    drop(other);
    cluster.restart(Component::Scheduler).await?;
    Ok(())
}

#[tokio::test]
async fn a_full_store_refuses_writes_and_serves_reads() -> Result<()> {
    let space = lab().await?.space_alone("full_store").await?;
    let cluster = space.worker(2)?;
    let maps: Api<ConfigMap> = cluster.api(space.namespace());
    let before = config_map("before")?;
    maps.create(&PostParams::default(), &before).await?;

    cluster.fill_store().await?;
    let refused = async {
        loop {
            match maps.create(&PostParams::default(), &config_map("after")?).await {
                Err(error) if error.to_string().contains("database space exceeded") => {
                    return Ok(());
                }
                // The API server's connections to the store of before end first.
                Err(_) => tokio::task::yield_now().await,
                Ok(_) => bail!("a full store took a write"),
            }
        }
    };
    timeout(TIMEOUT, refused).await.context("the store never said that it is full")??;
    cluster.until(&maps, "before", "is there", TIMEOUT, |_| true).await?;

    cluster.empty_store().await?;
    let after = config_map("after")?;
    let taken = async { while maps.create(&PostParams::default(), &after).await.is_err() {} };
    timeout(TIMEOUT, taken).await.context("the store has room and takes nothing")?;
    Ok(())
}
