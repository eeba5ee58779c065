//! The fault proxy, between a client and an API server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use harness::{Fault, FaultProxy, secs};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use kube::api::WatchParams;
use tokio::time::timeout;

use crate::{TIMEOUT, lab};

#[tokio::test]
async fn the_proxy_forwards_delays_hangs_and_forwards_again() -> Result<()> {
    let space = lab().await?.space("delay").await?;
    let proxy = FaultProxy::start(space.worker(1)?).await?;
    let namespaces: Api<Namespace> = Api::all(proxy.client().await?);
    timeout(TIMEOUT, namespaces.get(space.namespace())).await??;
    assert!(proxy.passed() > 0);

    proxy.set(Fault::Delay(Duration::from_millis(300)));
    let begun = Instant::now();
    timeout(TIMEOUT, namespaces.get(space.namespace())).await??;
    // Round trip: a faster response did not pass through the proxy.
    assert!(begun.elapsed() >= Duration::from_millis(600), "{:?}", begun.elapsed());

    proxy.set(Fault::Hang);
    let hanging = namespaces.get(space.namespace());
    tokio::pin!(hanging);
    assert!(timeout(secs(1), &mut hanging).await.is_err(), "nothing may come through");
    proxy.set(Fault::None);
    timeout(TIMEOUT, hanging).await??;
    Ok(())
}

#[tokio::test]
async fn the_proxy_refuses_and_serves_again_at_the_same_address() -> Result<()> {
    let space = lab().await?.space("refuse").await?;
    let proxy = FaultProxy::start(space.worker(1)?).await?;
    let namespaces: Api<Namespace> = Api::all(proxy.client().await?);
    timeout(TIMEOUT, namespaces.get(space.namespace())).await??;

    proxy.set(Fault::Refuse);
    let refused = timeout(TIMEOUT, namespaces.get(space.namespace())).await?;
    assert!(refused.is_err(), "{refused:?}");
    // Once it has refused one connection it refuses all.
    let again = timeout(TIMEOUT, namespaces.get(space.namespace())).await?.err();
    let message = format!("{:?}", again.context("it still refuses")?);
    assert!(message.contains("refused"), "{message}");

    proxy.set(Fault::None);
    let served = async { while namespaces.get(space.namespace()).await.is_err() {} };
    timeout(TIMEOUT, served).await?;
    Ok(())
}

#[tokio::test]
async fn a_cut_ends_an_open_watch_and_a_new_one_is_served() -> Result<()> {
    use futures::StreamExt;

    let space = lab().await?.space("cut").await?;
    let proxy = FaultProxy::start(space.worker(1)?).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(proxy.client().await?, space.namespace());
    let mut events = accounts.watch(&WatchParams::default(), "0").await?.boxed();
    timeout(TIMEOUT, events.next()).await?.context("the first event")??;

    proxy.cut();
    let drained = async { while let Some(Ok(_)) = events.next().await {} };
    timeout(TIMEOUT, drained).await.context("the watch ends when it is cut")?;

    let mut events = accounts.watch(&WatchParams::default(), "0").await?.boxed();
    timeout(TIMEOUT, events.next()).await?.context("the first event of the next watch")??;
    Ok(())
}
