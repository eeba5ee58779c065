//! A group of pods runs on one worker.

use anyhow::{Result, ensure};
use harness::Cluster;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::{CasePlace, place};
use crate::{installation::TIMEOUT, objects};

/// Long enough to be seen running.
const A_WHILE: u32 = 10;

pub(super) async fn runs_on_one_worker(place: &CasePlace<'_>) -> Result<()> {
    place.queue(2).await?;
    for name in ["a", "b"] {
        place.submit(&objects::in_group(place::pod(name, A_WHILE), "team", 2)).await?;
    }
    let pods: Api<Pod> = place.hub.api(place.namespace);
    let succeeded = |all: &[Pod]| {
        let phases = all.iter().filter_map(|pod| pod.status.as_ref()?.phase.as_deref());
        phases.filter(|phase| *phase == "Succeeded").count() == 2
    };
    place.hub.until_all(&pods, "", "both succeeded", 2 * TIMEOUT, succeeded).await?;
    place.until_nothing_is_left().await?;
    place.observer.catch_up(TIMEOUT).await?;
    let ledger = place.observer.ledger();
    let ran_on = |name| {
        let ran = |worker: &&Cluster| {
            ledger.pod(worker.name(), name).is_some_and(|pod| pod.started.is_some())
        };
        place.workers.iter().filter(ran).map(Cluster::name).collect::<Vec<_>>()
    };
    let (first, second) = (ran_on("a"), ran_on("b"));
    ensure!(first.len() == 1 && first == second, "a ran on {first:?}, b on {second:?}");
    Ok(())
}
