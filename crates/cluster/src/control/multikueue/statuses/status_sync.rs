//! When the status of a copy is written to the hub's job.
//!
//! A status changes several times within moments: pods are created, become ready, end, are counted. Every copy of it is a
//! write on the hub, so changes that others follow are not copied alone: counts wait a little for what follows, and are copied
//! at most once a second. That pods run, that all are ready, and the end are copied at once: three writes for a job that runs
//! undisturbed (docs/reference/dispatch.md §10 counts the first two as one, but Kubernetes itself reports readiness a second
//! late).

use std::time::Duration;

use ::jobs::{GenericJob, JobObject, bounded_status::LARGEST};
use crds::names::reasons::STATUS_TOO_LARGE;
use jiff::{SignedDuration, Timestamp};
use runtime::events::{EventRecord, EventType};

use crate::control::{jobs::event, outbox::after, time::moved};

/// The least time between two copies of counts.
const PERIOD: Duration = Duration::from_secs(1);

/// How long counts wait for what follows them, and the least time between two changes of readiness.
const SETTLE: Duration = Duration::from_millis(250);

/// What a copy's status has that the hub's job does not show yet. The most urgent is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StatusNews {
    /// The job is over.
    Finished,
    /// It has pods, or all of them are ready, or not any more.
    PodsReady,
    /// Anything else.
    Counts,
}

impl StatusNews {
    /// Compares the hub's job with the same job that has the status of its copy.
    pub(crate) fn between<J: GenericJob>(hub: &J, copy: &J) -> Self {
        let begins = copy.is_active() && !hub.is_active();
        match (copy.finished(), begins || copy.pods_ready() != hub.pods_ready()) {
            (Some(_), _) => Self::Finished,
            (None, true) => Self::PodsReady,
            (None, false) => Self::Counts,
        }
    }
}

/// The Event about a job with a copy that has a status over the limit.
pub(crate) fn too_large(job: &JobObject, cluster: &str) -> EventRecord {
    let note = format!(
        "The status of the job on worker cluster \"{cluster}\" is larger than {} KiB; its largest fields and long texts of its conditions are not copied",
        LARGEST / 1024
    );
    event(job, EventType::Warning, STATUS_TOO_LARGE, note)
}

/// When a job's status was copied. Lost in a restart, it costs one write at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StatusSyncThrottle {
    last: Option<Timestamp>,
    /// Since when there is something to copy.
    news_since: Option<Timestamp>,
}

impl StatusSyncThrottle {
    /// Records a copy.
    pub(crate) fn copied(&mut self, now: Timestamp) {
        *self = Self { last: Some(now), news_since: None };
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { last, news_since } = self;
        for at in [last, news_since] {
            *at = at.map(|at| moved(at, by));
        }
    }

    /// Until when a change is kept back; `None` if it is copied now.
    pub(crate) fn keep_back(&mut self, news: StatusNews, now: Timestamp) -> Option<Timestamp> {
        let since = *self.news_since.get_or_insert(now);
        let after_last = |pause| self.last.map(|at| after(at, pause));
        let until = match news {
            StatusNews::Finished => None,
            StatusNews::PodsReady => after_last(SETTLE),
            StatusNews::Counts => Some(after(since, SETTLE)).max(after_last(PERIOD)),
        };
        until.filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a time")
    }

    /// Times of copies, in ms, of changes that become known at these times.
    fn copies(news: &[(i64, StatusNews)]) -> Vec<i64> {
        let (mut throttle, mut times) = (StatusSyncThrottle::default(), Vec::new());
        let mut open = None;
        let mut coming = news.iter().peekable();
        for now in 0..5_000 {
            if let Some((_, news)) = coming.next_if(|(at, _)| *at == now) {
                open = Some(*news);
            }
            if open.is_some_and(|news| throttle.keep_back(news, at(now)).is_none()) {
                throttle.copied(at(now));
                times.push(now);
                open = None;
            }
        }
        times
    }

    #[test]
    fn a_status_is_copied_when_pods_run_when_they_are_ready_and_when_the_job_is_over() {
        use StatusNews::{Counts, Finished, PodsReady};
        let life = [
            (10, PodsReady),
            (1_050, PodsReady),
            (1_900, Counts),
            (2_500, Counts),
            (2_560, Finished),
        ];
        assert_eq!(copies(&life), [10, 1_050, 2_150, 2_560]);
        let quick = [(10, PodsReady), (1_050, PodsReady), (2_000, Counts), (2_060, Finished)];
        assert_eq!(copies(&quick), [10, 1_050, 2_060], "counts are not copied just before the end");
    }

    #[test]
    fn counts_alone_wait_a_little_and_then_come_once_a_second() {
        let counts: Vec<(i64, StatusNews)> =
            (0..25).map(|number| (number * 100, StatusNews::Counts)).collect();
        assert_eq!(copies(&counts), [250, 1_250, 2_250, 3_250]);
    }

    #[test]
    fn changing_readiness_is_copied_four_times_a_second_at_most() {
        let flaps: Vec<(i64, StatusNews)> =
            (0..100).map(|number| (number * 10, StatusNews::PodsReady)).collect();
        assert_eq!(copies(&flaps), [0, 250, 500, 750, 1_000]);
    }

    #[test]
    fn the_end_is_copied_at_once() {
        assert_eq!(copies(&[(10, StatusNews::PodsReady), (11, StatusNews::Finished)]), [10, 11]);
    }
}
