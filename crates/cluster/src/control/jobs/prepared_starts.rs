//! Starts of jobs that take two writes: what a start adds to the pods, and then the switch.
//!
//! ```text
//! (none) --additions written--> Written --all are stored--> Stored --switch written--> Switched --unsuspended--> (none)
//!                                 |  \--something is missing--> Lacking <--still suspended--/
//!                                 \<----- a pause that doubles ----/
//! ```
//! What else is stored may be of a webhook, or of an earlier start. After a write it is of a webhook, so the job starts with it.

use std::{collections::BTreeMap, time::Duration};

use ::jobs::{
    GenericJob, JobObject,
    declared::{StartAdditions, StartObstacle},
    reconcile::{JobStep, ReconcileStep},
};
use jiff::{SignedDuration, Timestamp};

use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::after,
    time::{doubled, moved},
    timers::Reevaluation,
};

/// The pause after the first answer that lacks something. It doubles with each further one: no version of the job ends it, since a
/// webhook may change the job in every write.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The starts in progress, by job.
#[derive(Debug, Default)]
pub(super) struct PreparedStarts {
    by_job: BTreeMap<JobKey, PreparedStart>,
}

#[derive(Debug)]
struct PreparedStart {
    written: Option<StartAdditions>,
    progress: StartProgress,
    /// Answers that lacked something.
    failures: u32,
}

#[derive(Debug, PartialEq)]
enum StartProgress {
    Written,
    /// The additions as they were stored.
    Stored(StartAdditions),
    Switched,
    /// No write before this time.
    Lacking(Timestamp),
}

impl PreparedStarts {
    /// Replaces the write of a start by the switch if its additions are stored, and removes it while it pauses.
    pub(super) fn revise(
        &mut self,
        key: &JobKey,
        job: &JobObject,
        steps: &mut Vec<ReconcileStep<JobObject>>,
        ctx: &mut Context,
    ) {
        if !job.kind().prepares_starts() {
            return;
        }
        let mut paused = None;
        for step in steps.iter_mut() {
            let ReconcileStep::Job(JobStep::Start(after)) = step else { continue };
            paused = self.pause(key, ctx.now);
            if paused.is_none() {
                self.send(key, job, after);
            }
        }
        if let Some(until) = paused {
            steps.retain(|step| !matches!(step, ReconcileStep::Job(JobStep::Start(_))));
            ctx.agenda.at(until, Reevaluation::Job(key.clone()));
        }
    }

    /// The end of the pause of a job, if it has one.
    fn pause(&self, key: &JobKey, now: Timestamp) -> Option<Timestamp> {
        match self.by_job.get(key)?.progress {
            StartProgress::Lacking(until) => Some(until).filter(|until| *until > now),
            _ => None,
        }
    }

    fn send(&mut self, key: &JobKey, job: &JobObject, after: &mut Box<JobObject>) {
        let written = after.start_additions();
        let new = || PreparedStart { written: None, progress: StartProgress::Written, failures: 0 };
        let start = self.by_job.entry(key.clone()).or_insert_with(new);
        if after.spec_suspended() {
            let is_stored = start.written == written
                && matches!(&start.progress, StartProgress::Stored(stored) if job.start_additions().as_ref() == Some(stored));
            if !is_stored {
                (start.written, start.progress) = (written, StartProgress::Written);
                return;
            }
            **after = job.to_unsuspended();
        }
        start.progress = StartProgress::Switched;
    }

    /// Takes the answer to a write of a start. Returns why it is repeated.
    pub(super) fn answered(
        &mut self,
        key: &JobKey,
        job: &JobObject,
        now: Timestamp,
    ) -> Option<StartObstacle> {
        if !job.spec_suspended() {
            self.by_job.remove(key);
            return None;
        }
        let start = self.by_job.get_mut(key)?;
        let stored = job.start_additions();
        let obstacle = match (&start.progress, &start.written) {
            (StartProgress::Switched, _) => Some(StartObstacle::not_stored("spec.suspend")),
            (_, Some(written)) => written.obstacle(stored.as_ref()),
            (_, None) => None,
        };
        start.progress = match (&obstacle, stored) {
            (None, Some(stored)) => StartProgress::Stored(stored),
            _ => StartProgress::Lacking(start.pause_from(now)),
        };
        obstacle
    }

    /// The clock jumped.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        for start in self.by_job.values_mut() {
            if let StartProgress::Lacking(until) = &mut start.progress {
                *until = moved(*until, by);
            }
        }
    }

    /// Forgets a job that is gone.
    pub(super) fn remove(&mut self, key: &JobKey) {
        self.by_job.remove(key);
    }
}

impl PreparedStart {
    fn pause_from(&mut self, now: Timestamp) -> Timestamp {
        let pause = doubled(FIRST_PAUSE, self.failures, LONGEST_PAUSE);
        self.failures += 1;
        after(now, pause)
    }
}

#[cfg(test)]
mod tests {
    use runtime::watch::Key;

    use super::*;

    #[test]
    fn a_pause_lasts_as_long_when_the_clock_is_set() {
        let now = Timestamp::UNIX_EPOCH;
        let key = JobKey::new(::jobs::job::kind(), &Key { namespace: None, name: "a".into() });
        for by in [3, -3].map(SignedDuration::from_hours) {
            let mut starts = PreparedStarts::default();
            let progress = StartProgress::Lacking(after(now, FIRST_PAUSE));
            let start = PreparedStart { written: None, progress, failures: 1 };
            starts.by_job.insert(key.clone(), start);
            starts.clock_jumped(by);
            assert!(starts.pause(&key, now + by).is_some(), "{by}");
            assert_eq!(starts.pause(&key, after(now + by, FIRST_PAUSE)), None, "{by}");
        }
    }
}
