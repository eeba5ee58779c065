//! Garbage collection: objects with the manager's origin on a worker that the manager does not know (docs/reference/dispatch.md §9).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use e2e::{audit_log::asked, installation::TIMEOUT};
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, with_label},
    objects,
};

/// As in the manager's configuration.
const ORIGIN: (&str, &str) = ("kueue.x-k8s.io/multikueue-origin", "multikueue");

/// A remote copy without a Workload on the manager, and a Job without owner.
fn strangers() -> [Value; 2] {
    let job = with_label(objects::job("nobodys", 1, "1", 3600), ORIGIN.0, ORIGIN.1);
    let template = job["spec"]["template"].clone();
    let clone = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "nobodys", "labels": {ORIGIN.0: ORIGIN.1}},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
    });
    [clone, job]
}

/// The number of consistency lists that the manager sent to a worker.
fn looks(fixture: &DispatchFixture, kind: &str) -> Result<usize> {
    let all = asked(fixture.worker(1), "sluice-hub", Some(200))?;
    let list = format!("\"list\" \"/apis/{kind}?");
    let whole = |one: &&String| one.starts_with(&list) && one.contains("labelSelector=");
    Ok(all.iter().filter(whole).count())
}

#[tokio::test]
async fn garbage_on_a_worker_is_deleted_and_consistency_lists_have_no_effect() -> Result<()> {
    let fixture = DispatchFixture::alone("garbage").await?;
    let mut manager = fixture.shared.manager.lock().await;
    manager.take().context("a manager")?.process.terminate(TIMEOUT).await?;
    let often = json!({"multiKueue": {
        "dispatcherName": "sluice.dev/capacity", "workerLostTimeout": "60s", "gcInterval": "4s",
    }});
    let running = manager.insert(fixture.installation.first_manager_with(&often).await?);
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&objects::job("train", 2, "1", 15)).await?;
    fixture.until_running("train", 2, 1).await?;
    let before =
        [looks(&fixture, "kueue.x-k8s.io/v1beta2/workloads")?, looks(&fixture, "batch/v1/jobs")?];

    let [clone, job] = strangers();
    let worker = fixture.worker(1);
    worker.apply(&format!("{clone}\n---\n{job}\n"), fixture.namespace()).await?;
    worker.until_gone(&worker.api::<Workload>(fixture.namespace()), "nobodys", TIMEOUT).await?;
    worker.until_gone(&worker.api::<Job>(fixture.namespace()), "nobodys", TIMEOUT).await?;

    fixture.expect_once("train", 2).await?;
    let after =
        [looks(&fixture, "kueue.x-k8s.io/v1beta2/workloads")?, looks(&fixture, "batch/v1/jobs")?];
    ensure!(
        before.iter().zip(after).all(|(before, after)| before + 1 < after),
        "{before:?} {after:?}"
    );
    let log = running.process.log_tail(100_000);
    ensure!(!log.contains("did not tell"), "nothing was lost, and something is said to be");

    manager.take().context("the manager")?.process.terminate(TIMEOUT).await?;
    *manager = Some(fixture.installation.first_manager().await?);
    Ok(())
}
