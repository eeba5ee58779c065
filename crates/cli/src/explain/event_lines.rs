//! Events about a Workload and its jobs.

use std::{cmp::Reverse, collections::HashSet};

use crds::{
    names::{
        reasons::{ADMISSION_EXPLAINED, CREATED_WORKLOAD},
        reporters,
    },
    v1beta2::Workload,
};
use jiff::Timestamp;
use k8s_openapi::api::{core::v1::ObjectReference, events::v1::Event};
use serde::Serialize;

use super::selection::{WorkloadQuery, owners};

/// The most events that are shown.
const MOST: usize = 20;

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventLine {
    /// When it happened last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// How often it happened.
    pub count: i32,
    /// `Normal` or `Warning`.
    pub r#type: String,
    /// Reason.
    pub reason: String,
    /// The object as `Kind/name`.
    pub object: String,
    /// Message.
    pub message: String,
}

/// The last events about the Workload and its jobs, newest last.
pub(super) fn about(workload: &Workload, events: &[Event]) -> Vec<EventLine> {
    let own = ("Workload", workload.metadata.name.as_deref().unwrap_or_default());
    let objects: Vec<(&str, &str)> = std::iter::once(own).chain(owners(workload)).collect();
    let concerned = events.iter().filter(|event| {
        let about = event.regarding.as_ref();
        let of = about.and_then(|about| Some((about.kind.as_deref()?, about.name.as_deref()?)));
        of.is_some_and(|of| objects.contains(&of))
    });
    let mut lines: Vec<EventLine> = concerned.map(EventLine::of).collect();
    lines.sort_by_key(|one| one.last);
    lines.split_off(lines.len().saturating_sub(MOST))
}

/// The text of the newest explanation of the Workload, if it is not older than `since`.
pub(super) fn explanation(
    workload: &Workload,
    events: &[Event],
    since: Option<Timestamp>,
) -> Option<String> {
    let explains = |event: &&Event| {
        let about = event.regarding.as_ref();
        let uid = about.and_then(|about| about.uid.as_ref());
        event.reason.as_deref() == Some(ADMISSION_EXPLAINED)
            && about.and_then(|about| about.name.as_ref()) == workload.metadata.name.as_ref()
            && uid == workload.metadata.uid.as_ref()
            && last(event) >= since
    };
    events.iter().filter(explains).max_by_key(|event| last(event))?.note.clone()
}

/// Why a job has no Workload.
#[derive(Clone, Debug)]
pub struct JobRefusal {
    /// The last Warning of its controller.
    pub line: EventLine,
    /// The job. It need not exist any more.
    pub job: ObjectReference,
}

/// Why jobs of this name have no Workload: one refusal for each of them, the newest first. A job that got a Workload after it has none.
#[must_use]
pub fn refusals(name: &WorkloadQuery, events: &[Event]) -> Vec<JobRefusal> {
    let is_of_job = |event: &&Event| {
        let about = event.regarding.as_ref();
        let kind = about.and_then(|about| about.kind.as_deref());
        let is_named = about.and_then(|about| about.name.as_deref()) == Some(name.name());
        let reporter = event.reporting_controller.as_deref().unwrap_or_default();
        is_named
            && kind.is_some_and(|kind| name.may_be(kind))
            && reporter.ends_with(reporters::OF_JOBS)
    };
    let tells = |event: &&Event| {
        event.type_.as_deref() == Some("Warning")
            || event.reason.as_deref() == Some(CREATED_WORKLOAD)
    };
    let mut telling: Vec<&Event> = events.iter().filter(is_of_job).filter(tells).collect();
    telling.sort_by_key(|event| Reverse(last(event)));
    let mut known = HashSet::new();
    let newest = telling.into_iter().filter_map(|event| {
        let job = event.regarding.clone()?;
        known.insert((job.kind.clone(), job.uid.clone())).then_some((event, job))
    });
    let refused = newest.filter(|(event, _)| event.reason.as_deref() != Some(CREATED_WORKLOAD));
    refused.map(|(event, job)| JobRefusal { line: EventLine::of(event), job }).collect()
}

impl EventLine {
    fn of(event: &Event) -> Self {
        let series = event.series.as_ref();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let regarding = event.regarding.clone().unwrap_or_default();
        Self {
            last: last(event),
            count: series.map(|one| one.count).or(event.deprecated_count).unwrap_or(1),
            r#type: text(&event.type_),
            reason: text(&event.reason),
            object: format!("{}/{}", text(&regarding.kind), text(&regarding.name)),
            message: text(&event.note),
        }
    }
}

/// The newest of the times that the two versions of events have.
fn last(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().map(|one| one.last_observed_time.0);
    let once = event.event_time.as_ref().map(|time| time.0);
    let deprecated = event.deprecated_last_timestamp.as_ref().map(|time| time.0);
    let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
    series.or(deprecated).or(once).or(created)
}
