//! `drain --window`: the annotations of a MultiKueueCluster that drain it from a time until another one
//! (docs/reference/dispatch.md §3).

use crds::{
    meta::annotation,
    names::annotations::{DRAIN, DRAIN_DEADLINE, DRAIN_WINDOW},
    v1beta2::MultiKueueCluster,
    worker_drain::{DrainParseFailure, DrainWindow, WorkerDrain},
};
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{DeadlineArgument, DrainFailure};
use crate::requests::{RequestFailure, find};

/// A window on the command line.
///
/// # Errors
/// If the text is no window.
pub fn window_argument(text: &str) -> Result<DrainWindow, String> {
    DrainWindow::parse(text).map_err(|failure| failure.to_string())
}

/// The drain of a window. A deadline that is a duration counts from its beginning, or from now if it has none.
///
/// # Errors
/// If the deadline is not before the end of the window.
pub fn drain_in(
    window: DrainWindow,
    deadline: Option<DeadlineArgument>,
    now: Timestamp,
) -> Result<WorkerDrain, DrainParseFailure> {
    let Some(deadline) = deadline.map(|one| one.time(window.from.unwrap_or(now))) else {
        return Ok(WorkerDrain { window, deadline: None });
    };
    window.with_deadline(deadline, &deadline)
}

/// Drains a worker by annotations. Gives a line about it.
///
/// # Errors
/// If the worker does not exist, or a request fails.
pub async fn schedule(
    client: &Client,
    cluster: &str,
    drain: &WorkerDrain,
) -> Result<String, DrainFailure> {
    if find::<MultiKueueCluster>(client, cluster).await?.is_none() {
        return Err(DrainFailure::NoCluster(cluster.to_owned()));
    }
    annotate(client, cluster, &annotations(Some(drain))).await?;
    Ok(format!("MultiKueueCluster {cluster} is drained {}", describe(&drain.window)))
}

/// Ends the drain of a worker by annotations. Gives a line, if there was one.
pub(super) async fn end(
    client: &Client,
    cluster: &MultiKueueCluster,
) -> Result<Option<String>, RequestFailure> {
    let all = [DRAIN, DRAIN_WINDOW, DRAIN_DEADLINE];
    if all.iter().all(|name| annotation(&cluster.metadata, name).is_none()) {
        return Ok(None);
    }
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    annotate(client, name, &annotations(None)).await?;
    Ok(Some(format!("MultiKueueCluster {name} is not drained by annotations any more")))
}

async fn annotate(client: &Client, cluster: &str, fields: &Value) -> Result<(), RequestFailure> {
    let clusters: Api<MultiKueueCluster> = Api::all(client.clone());
    let failed = RequestFailure::of("change", format!("MultiKueueCluster {cluster}"));
    let patch = json!({"metadata": {"annotations": fields}});
    clusters
        .patch(cluster, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .map_err(failed)?;
    Ok(())
}

/// The annotations of a drain; `null` for those that go.
fn annotations(drain: Option<&WorkerDrain>) -> Value {
    let window = drain.map(|drain| {
        let text = |time: Option<Timestamp>| time.map(|one| one.to_string()).unwrap_or_default();
        format!("{}/{}", text(drain.window.from), text(drain.window.until))
    });
    let deadline = drain.and_then(|drain| drain.deadline).map(|time| time.to_string());
    json!({DRAIN: drain.map(|_| "true"), DRAIN_WINDOW: window, DRAIN_DEADLINE: deadline})
}

/// A window in words.
fn describe(window: &DrainWindow) -> String {
    let from = window.from.map(|time| format!("from {time}"));
    let until = window.until.map(|time| format!("until {time}"));
    from.into_iter().chain(until).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn drain(window: &str, deadline: Option<&str>) -> Result<Value, String> {
        let now = "2026-12-01T19:00:00Z".parse().expect("a time");
        let window = window_argument(window)?;
        let deadline = deadline.map(|text| text.parse().expect("a deadline"));
        let drain = drain_in(window, deadline, now).map_err(|failure| failure.to_string())?;
        Ok(annotations(Some(&drain)))
    }

    const WINDOW: &str = "2026-12-01T20:00:00Z/2026-12-01T22:00:00Z";

    #[test]
    fn a_window_becomes_annotations_that_the_manager_reads() {
        let with = |deadline: Option<&str>| {
            json!({"sluice.dev/drain": "true", "sluice.dev/drain-window": WINDOW,
                "sluice.dev/drain-deadline": deadline})
        };
        assert_eq!(drain(WINDOW, None), Ok(with(None)), "an earlier deadline goes");
        let half_past_nine = Ok(with(Some("2026-12-01T21:30:00Z")));
        assert_eq!(drain(WINDOW, Some("1h30m")), half_past_nine);
        assert_eq!(drain(WINDOW, Some("2026-12-01T21:30:00Z")), half_past_nine);
        let written = with(Some("2026-12-01T21:30:00Z"));
        let texts: std::collections::BTreeMap<String, String> =
            serde_json::from_value(written).expect("texts");
        let metadata = ObjectMeta { annotations: Some(texts), ..ObjectMeta::default() };
        let read = WorkerDrain::read(&metadata).expect("it is valid").expect("a drain");
        assert_eq!(describe(&read.window), "from 2026-12-01T20:00:00Z until 2026-12-01T22:00:00Z");
    }

    #[test]
    fn a_deadline_counts_from_now_if_the_window_has_no_beginning() {
        let open = drain("/2026-12-01T22:00:00Z", Some("1h")).expect("a drain");
        assert_eq!(open["sluice.dev/drain-deadline"], "2026-12-01T20:00:00Z");
    }

    #[test]
    fn what_the_manager_would_refuse_is_refused() {
        let refused = drain(WINDOW, Some("2h")).expect_err("it is after the window");
        assert!(refused.contains("is not before the end"), "{refused}");
        assert!(drain("tonight", None).is_err_and(|one| one.contains("is no window")));
    }

    #[test]
    fn the_end_of_a_drain_leaves_no_annotation() {
        let none = json!({"sluice.dev/drain": null, "sluice.dev/drain-window": null,
            "sluice.dev/drain-deadline": null});
        assert_eq!(annotations(None), none);
    }
}
