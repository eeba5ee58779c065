//! When a job is told how its copy stands.
//!
//! A status changes several times within moments: pods are made, get ready, end, are counted. Every copy of it is a
//! write on the hub, so news that others follow is not told by itself: counts wait a little for what comes next, and are
//! told once a second at most. That pods run, that all are ready, and the end wait for nobody: a job that runs undisturbed is
//! told of three times (docs/reference/dispatch.md §10 counts the first two as one, but Kubernetes itself tells of readiness a second late).

use std::time::Duration;

use ::jobs::GenericJob;
use jiff::Timestamp;

use crate::control::held::after;

/// The least time between two copies of counts.
const PERIOD: Duration = Duration::from_secs(1);

/// How long counts wait for what follows them, and what keeps pods that get ready again and again in bounds.
const LULL: Duration = Duration::from_millis(250);

/// What a status says that is not on the hub yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The job is over.
    End,
    /// It has pods, or all of them are ready, or not any more.
    Pods,
    /// Anything else.
    Counts,
}

impl News {
    /// What the status of a copy adds to what the hub's job says.
    pub(super) fn of<J: GenericJob>(hub: &J, copy: &J) -> Self {
        let begins = copy.is_active() && !hub.is_active();
        match (copy.finished(), begins || copy.pods_ready() != hub.pods_ready()) {
            (Some(_), _) => Self::End,
            (None, true) => Self::Pods,
            (None, false) => Self::Counts,
        }
    }
}

/// When a job was told what. Forgotten in a restart, it costs a write at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// The last time.
    at: Option<Timestamp>,
    /// Since when there is something to tell.
    news_since: Option<Timestamp>,
}

impl Told {
    /// It is told now.
    pub(super) fn tell(&mut self, now: Timestamp) {
        *self = Self { at: Some(now), news_since: None };
    }

    /// There is news; until when it is kept back, if it is.
    pub(super) fn keep_back(&mut self, news: News, now: Timestamp) -> Option<Timestamp> {
        let since = *self.news_since.get_or_insert(now);
        let after_last = |pause| self.at.map(|at| after(at, pause));
        let until = match news {
            News::End => None,
            News::Pods => after_last(LULL),
            News::Counts => Some(after(since, LULL)).max(after_last(PERIOD)),
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

    /// Says at which times, in ms, what is told, when it becomes known at these times.
    fn told(news: &[(i64, News)]) -> Vec<i64> {
        let (mut told, mut times) = (Told::default(), Vec::new());
        let mut open = None;
        let mut coming = news.iter().peekable();
        for now in 0..5_000 {
            if let Some((_, news)) = coming.next_if(|(at, _)| *at == now) {
                open = Some(*news);
            }
            if open.is_some_and(|news| told.keep_back(news, at(now)).is_none()) {
                told.tell(at(now));
                times.push(now);
                open = None;
            }
        }
        times
    }

    #[test]
    fn a_job_is_told_of_when_it_runs_when_it_is_ready_and_when_it_is_over() {
        use News::{Counts, End, Pods};
        let life = [(10, Pods), (1_050, Pods), (1_900, Counts), (2_500, Counts), (2_560, End)];
        assert_eq!(told(&life), [10, 1_050, 2_150, 2_560]);
        let quick = [(10, Pods), (1_050, Pods), (2_000, Counts), (2_060, End)];
        assert_eq!(told(&quick), [10, 1_050, 2_060], "counts are not told just before the end");
    }

    #[test]
    fn counts_alone_wait_a_little_and_then_come_once_a_second() {
        let counts: Vec<(i64, News)> = (0..25).map(|number| (number * 100, News::Counts)).collect();
        assert_eq!(told(&counts), [250, 1_250, 2_250, 3_250]);
    }

    #[test]
    fn pods_that_come_and_go_are_kept_in_bounds() {
        let flaps: Vec<(i64, News)> = (0..100).map(|number| (number * 10, News::Pods)).collect();
        assert_eq!(told(&flaps), [0, 250, 500, 750, 1_000]);
    }

    #[test]
    fn the_end_is_told_at_once() {
        assert_eq!(told(&[(10, News::Pods), (11, News::End)]), [10, 11]);
    }
}
