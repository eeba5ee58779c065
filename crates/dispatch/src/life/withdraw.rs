//! Withdrawing a Workload that is being evicted, and what counts as stopped.
//!
//! A cluster is empty when it is live, nothing is there and nothing is on its way. One that cannot be reached counts
//! as empty if nothing was ever sent under this epoch, or when it is lost (KeepRunning: the old copy may still run). Only when
//! all are empty is the epoch raised, and only then is the quota released. Source: docs/reference/dispatch.md §6, §8.

use engine::Time;

use super::{Copy, Life, Link, Step, remove::removals, with_deadline};

/// Whether something can still run on a cluster.
pub(super) enum Quiet {
    /// No.
    Yes,
    /// It may, until it is deleted, or seen to be gone.
    No,
    /// It may until then.
    Until(Time),
}

impl Life<'_> {
    /// The steps that end with [`Step::Withdrawn`].
    pub(super) fn withdraw(&self) -> Vec<Step> {
        let steps = removals(self.copies.iter());
        match self.all_quiet(Copy::is_empty) {
            Quiet::Yes => vec![self.release()],
            Quiet::No => steps,
            Quiet::Until(due) => with_deadline(steps, [due]),
        }
    }

    /// The steps of a Workload that is to have nothing anywhere. Nobody but us says of a dispatched job that its pods are
    /// gone, and the core lets go of a Workload only when they are.
    pub(super) fn clean_up(&self) -> Vec<Step> {
        let steps = removals(self.copies.iter());
        if !self.hub.job.exists || !self.hub.job.active {
            return steps;
        }
        match self.all_quiet(Copy::is_empty) {
            Quiet::Yes => vec![Step::Idle],
            Quiet::No => steps,
            Quiet::Until(due) => with_deadline(steps, [due]),
        }
    }

    fn release(&self) -> Step {
        if !self.hub.raised {
            Step::RaiseEpoch
        } else if self.hub.job.exists && self.hub.job.active {
            Step::Idle
        } else {
            Step::Withdrawn
        }
    }

    /// Whether nothing can run anywhere. `done` says it of a live cluster.
    pub(super) fn all_quiet(&self, done: impl Fn(&Copy) -> bool) -> Quiet {
        let unknown = |cluster| self.copy(cluster).is_none();
        let mut open = self.hub.nominated.iter().chain(&self.hub.recorded).any(|&one| unknown(one));
        let mut due = None;
        for copy in self.copies {
            match self.quiet(copy, &done) {
                Quiet::Yes => {}
                Quiet::No => open = true,
                Quiet::Until(time) => due = Some(due.map_or(time, |old: Time| old.min(time))),
            }
        }
        match (due, open) {
            (Some(due), _) => Quiet::Until(due),
            (None, true) => Quiet::No,
            (None, false) => Quiet::Yes,
        }
    }

    fn quiet(&self, copy: &Copy, done: impl Fn(&Copy) -> bool) -> Quiet {
        match copy.link {
            Link::Live if copy.settled && done(copy) => Quiet::Yes,
            Link::Live | Link::Unlisted => Quiet::No,
            Link::Lost { since } => self.written_off(copy, since),
        }
    }

    /// Whether a cluster that cannot be reached may be given up. What an earlier epoch left there was given up before.
    fn written_off(&self, copy: &Copy, since: Time) -> Quiet {
        let chosen = self.hub.nominated.iter().chain(&self.hub.recorded);
        let matters = self.is_current(copy) || chosen.into_iter().any(|&one| one == copy.cluster);
        let due = self.lost_at(since);
        if !matters || !self.hub.sent || self.now >= due { Quiet::Yes } else { Quiet::Until(due) }
    }
}

impl Copy {
    /// Nothing is seen there.
    pub(super) fn is_empty(&self) -> bool {
        self.clone.is_none() && self.job.is_none()
    }
}
