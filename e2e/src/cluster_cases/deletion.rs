//! A job that is deleted while it runs leaves nothing.

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::DeleteParams;

use super::{CasePlace, place};
use crate::installation::TIMEOUT;
use crate::objects;

pub(super) async fn leaves_nothing(place: &CasePlace<'_>) -> Result<()> {
    place.queue(2).await?;
    place.submit(&place::job("endless", 2, objects::LONG)).await?;
    place.until_running("endless", 2).await?;
    let jobs: Api<Job> = place.hub.api(place.namespace);
    jobs.delete("endless", &DeleteParams::background()).await?;
    place.hub.until_gone(&jobs, "endless", TIMEOUT).await?;
    place.until_nothing_is_left().await
}
