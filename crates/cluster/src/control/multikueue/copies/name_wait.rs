//! Since when a Workload waits for the names of its jobs on workers, as this process remembers it.

use std::time::Duration;

use engine::ids::ClusterId;
use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;

use crate::control::{outbox::after, time::moved};

/// How long a Workload may be observed later than its copy: longer than a watch without events takes to notice that its
/// connection is dead. After that a person decides.
pub(crate) const NEWER_COPY_GRACE: Duration = Duration::from_secs(360);

/// A copy that holds a name, and that the hub may have made before this process observes its Workload.
#[derive(Debug)]
pub(crate) struct NewerHolder {
    pub(crate) cluster: ClusterId,
    /// The Workload of the copy.
    pub(crate) owner: Key,
    pub(crate) since: Timestamp,
}

impl NewerHolder {
    /// Until when it is awaited.
    pub(crate) fn until(&self) -> Timestamp {
        after(self.since, NEWER_COPY_GRACE)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct NameWait {
    /// Since when a copy for another Workload holds the name of a job on the worker that is to get it.
    since: Option<Timestamp>,
    /// Such copies that are newer than their Workloads as this process observes them.
    newer: Vec<NewerHolder>,
}

impl NameWait {
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// A name is held. The first time counts until none is.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
    }

    /// No name is held.
    pub(crate) fn end(&mut self) {
        self.since = None;
    }

    /// The copy for a Workload on a cluster, if it is newer than that.
    pub(crate) fn newer(&self, cluster: ClusterId, owner: &Key) -> Option<&NewerHolder> {
        self.newer.iter().find(|one| one.cluster == cluster && one.owner == *owner)
    }

    /// Replaces the copies that are newer than their Workloads.
    pub(crate) fn set_newer(&mut self, newer: Vec<NewerHolder>) {
        self.newer = newer;
    }

    /// When the first of these copies is not awaited any more.
    pub(crate) fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.newer.iter().map(NewerHolder::until).filter(|until| *until > now).min()
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { since, newer } = self;
        *since = since.map(|at| moved(at, by));
        newer.iter_mut().for_each(|one| one.since = moved(one.since, by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn the_first_time_counts_until_no_name_is_held() {
        let mut wait = NameWait::default();
        wait.begin(at(10));
        wait.begin(at(20));
        assert_eq!(wait.since(), Some(at(10)));
        wait.clock_jumped(SignedDuration::from_secs(5));
        assert_eq!(wait.since(), Some(at(15)));
        wait.end();
        wait.begin(at(30));
        assert_eq!(wait.since(), Some(at(30)));
    }

    #[test]
    fn newer_copies_are_awaited_for_six_minutes() {
        let mut wait = NameWait::default();
        let owner = Key { namespace: Some("a".into()), name: "w".into() };
        let holder = |cluster, since| NewerHolder { cluster, owner: owner.clone(), since };
        wait.set_newer(vec![holder(ClusterId(1), at(0)), holder(ClusterId(2), at(60))]);
        assert_eq!(wait.next_end(at(0)), Some(at(360)));
        assert_eq!(wait.next_end(at(360)), Some(at(420)));
        assert_eq!(wait.next_end(at(420)), None);
        assert_eq!(wait.newer(ClusterId(2), &owner).map(|one| one.since), Some(at(60)));
        assert!(wait.newer(ClusterId(3), &owner).is_none());
    }
}
