//! Single gated pods run on one worker, and their ends come back.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::{CasePlace, place};
use crate::{installation::TIMEOUT, objects};

/// What the pod that fails ends with.
const CODE: u32 = 7;

pub(super) async fn end_on_the_manager(place: &CasePlace<'_>) -> Result<()> {
    place.queue(2).await?;
    place.submit(&place::pod("good", 1)).await?;
    place.submit(&place::ending_with(place::pod("bad", 1), CODE)).await?;
    let pods: Api<Pod> = place.hub.api(place.namespace);
    for (name, phase, code) in [("good", "Succeeded", 0), ("bad", "Failed", CODE)] {
        let ended = |pod: &Pod| {
            let code = i32::try_from(code).ok();
            objects::phase(pod) == phase && place::ended(pod).map(|end| end.exit_code) == code
        };
        let what = format!("is {phase} with exit code {code}");
        place.hub.until(&pods, name, &what, 2 * TIMEOUT, ended).await?;
    }
    place.until_nothing_is_left().await?;
    place.ensure_pod_once("good", 1).await?;
    place.ensure_pod_once("bad", 0).await.map(drop)
}
