//! A worker behind a proxy that can cut it off from the manager.

use anyhow::Result;
use harness::FaultProxy;
use serde_json::{Value, json};

use crate::fixture::DispatchFixture;

/// The second worker behind a proxy with nodes for two pods, and a queue with this `disconnection` of a DispatchPolicy.
pub(crate) async fn worker_behind_proxy(
    fixture: &DispatchFixture,
    disconnection: &Value,
) -> Result<FaultProxy> {
    let proxy = FaultProxy::start(fixture.worker(2)).await?;
    fixture.installation.register_behind(&proxy, fixture.worker(2)).await?;
    fixture.nodes(2, 1, "2").await?;
    fixture.queue_under("4", &json!({"disconnection": disconnection})).await?;
    Ok(proxy)
}

/// Registers the worker at its own address again.
pub(crate) async fn reconnect(fixture: &DispatchFixture, proxy: FaultProxy) -> Result<()> {
    drop(proxy);
    fixture.installation.register().await?;
    fixture.until_worker("worker-2", "is active again", |said| said.status).await?;
    Ok(())
}
