//! What carries our origin on a worker and is unknown on the hub (docs/reference/dispatch.md §9).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use e2e::world::SOON;
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use crate::{
    house::House,
    place,
    rights::asked,
    site::{Site, with_label},
};

/// As in the manager's configuration.
const ORIGIN: (&str, &str) = ("kueue.x-k8s.io/multikueue-origin", "multikueue");

/// A clone that no hub asked for, and a Job that names nothing.
fn strangers() -> [Value; 2] {
    let job = with_label(place::job("nobodys", 1, "1", 3600), ORIGIN.0, ORIGIN.1);
    let template = job["spec"]["template"].clone();
    let clone = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "nobodys", "labels": {ORIGIN.0: ORIGIN.1}},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
    });
    [clone, job]
}

/// How often the manager has asked a worker what is there of ours.
fn looks(site: &Site, kind: &str) -> Result<usize> {
    let all = asked(site.worker(1), "sluice-hub", Some(200))?;
    let list = format!("\"list\" \"/apis/{kind}?");
    let whole = |one: &&String| one.starts_with(&list) && one.contains("labelSelector=");
    Ok(all.iter().filter(whole).count())
}

#[tokio::test]
async fn what_nobody_asked_for_goes_and_looking_for_more_disturbs_nothing() -> Result<()> {
    let site = Site::alone("garbage").await?;
    let mut manager = House::alone().await?.manager.lock().await;
    manager.take().context("a manager")?.process.terminate(SOON).await?;
    let often = json!({"multiKueue": {
        "dispatcherName": "sluice.dev/capacity", "workerLostTimeout": "60s", "gcInterval": "4s",
    }});
    let running = manager.insert(site.world.manager_with(true, &often, &[]).await?);
    site.nodes(1, 1, "2").await?;
    site.queue("2").await?;
    site.submit(&place::job("train", 2, "1", 15)).await?;
    site.until_running("train", 2, 1).await?;
    let before =
        [looks(&site, "kueue.x-k8s.io/v1beta2/workloads")?, looks(&site, "batch/v1/jobs")?];

    let [clone, job] = strangers();
    let worker = site.worker(1);
    worker.apply(&format!("{clone}\n---\n{job}\n"), site.namespace()).await?;
    worker.until_gone(&worker.api::<Workload>(site.namespace()), "nobodys", SOON).await?;
    worker.until_gone(&worker.api::<Job>(site.namespace()), "nobodys", SOON).await?;

    site.expect_once("train", 2).await?;
    let after = [looks(&site, "kueue.x-k8s.io/v1beta2/workloads")?, looks(&site, "batch/v1/jobs")?];
    ensure!(
        before.iter().zip(after).all(|(before, after)| before + 1 < after),
        "{before:?} {after:?}"
    );
    let log = running.process.log_tail(100_000);
    ensure!(!log.contains("did not tell"), "nothing was lost, and something is said to be");

    manager.take().context("the manager")?.process.terminate(SOON).await?;
    *manager = Some(site.world.manager(true, &[]).await?);
    Ok(())
}
