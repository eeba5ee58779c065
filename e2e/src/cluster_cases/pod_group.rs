//! A group of pods runs on one worker.

use anyhow::{Result, ensure};
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
    let succeeded =
        |all: &[Pod]| all.iter().filter(|pod| objects::phase(pod) == "Succeeded").count() == 2;
    place.hub.until_all(&pods, "", "both succeeded", 2 * TIMEOUT, succeeded).await?;
    place.until_nothing_is_left().await?;
    let (a, b) = (place.ensure_pod_once("a", 1).await?, place.ensure_pod_once("b", 1).await?);
    ensure!(a.runs[0].cluster == b.runs[0].cluster, "{a}{b}");
    Ok(())
}
