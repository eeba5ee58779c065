//! Jobs whose pod templates stand in another object.

use anyhow::Result;
use k8s_openapi::api::events::v1::Event;

use crate::{
    fixture::KindFixture,
    kind_under_test::{JobPlan, KindUnderTest},
};
use e2e::installation::TIMEOUT;

#[tokio::test]
async fn a_job_waits_for_the_object_that_it_names() -> Result<()> {
    let fixture = KindFixture::new("waits", KindUnderTest::course()?).await?;
    fixture.room_on_hub(1).await?;
    let plan = JobPlan::of("train", 1);
    fixture.submit_alone(&plan).await?;
    let hub = fixture.hub();
    let explained = |all: &[Event]| {
        all.iter().any(|one| {
            one.reason.as_deref() == Some("NeededObjectMissing")
                && one.note.as_deref() == Some("Recipe.example.com \"train\" does not exist")
        })
    };
    let events = hub.api::<Event>(fixture.namespace());
    hub.until_all(&events, "", "an Event names the missing object", 2 * TIMEOUT, explained).await?;
    fixture.provide(&plan).await?;
    fixture.until_succeeded("train").await?;
    fixture.until_finished("train").await?;
    Ok(())
}
