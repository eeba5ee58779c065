//! Creates and changes of a Workload's copies that this process has sent.

use std::{collections::BTreeMap, time::Duration};

use engine::ids::ClusterId;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::control::{
    job_key::JobKey,
    outbox::after,
    time::{doubled, moved},
};

/// A cluster, and a job; `None` is the clone.
pub(crate) type CreatedObject = (ClusterId, Option<JobKey>);

/// The longest pause between two creates of one object.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The creates of one object on a cluster.
#[derive(Debug)]
struct SentCreates {
    times: u32,
    last: Timestamp,
    /// The epoch of the last one.
    epoch: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SentCopies {
    /// A create may have been sent under the present epoch.
    pub(crate) any: bool,
    creates: BTreeMap<CreatedObject, SentCreates>,
    /// The generation of the Workload that the last clone was created from, by cluster.
    generations: BTreeMap<ClusterId, Option<i64>>,
    /// The fields of the last change that was sent for each object.
    changes: BTreeMap<CreatedObject, Value>,
    /// The uid of the last clone that was sent a deletion, by cluster.
    deleted_clones: BTreeMap<ClusterId, String>,
}

impl SentCopies {
    /// Until when an object is not created again: what vanishes as fast as it is created is created more and more slowly.
    pub(crate) fn create_not_before(&self, object: &CreatedObject) -> Option<Timestamp> {
        let SentCreates { times, last, .. } = self.creates.get(object)?;
        let pause = doubled(Duration::from_secs(1), times.saturating_sub(1), LONGEST_PAUSE);
        Some(after(*last, pause))
    }

    /// Records that a create of this epoch is sent.
    pub(crate) fn created(&mut self, object: CreatedObject, epoch: u64, now: Timestamp) {
        let times = self.creates.get(&object).map_or(0, |one| one.times).saturating_add(1);
        self.creates.insert(object, SentCreates { times, last: now, epoch });
    }

    /// Records that a clone is created from this generation of the Workload.
    pub(crate) fn clone_created(&mut self, cluster: ClusterId, generation: Option<i64>) {
        self.generations.insert(cluster, generation);
    }

    /// Whether the last clone on a cluster was created from this generation of the Workload.
    pub(crate) fn is_clone_of(&self, cluster: ClusterId, generation: Option<i64>) -> bool {
        self.generations.get(&cluster) == Some(&generation)
    }

    /// Records that the deletion of a clone is sent.
    pub(crate) fn clone_deleted(&mut self, cluster: ClusterId, uid: String) {
        self.deleted_clones.insert(cluster, uid);
    }

    /// Whether the deletion of this clone was sent.
    pub(crate) fn is_clone_deleted(&self, cluster: ClusterId, uid: Option<&str>) -> bool {
        self.deleted_clones.get(&cluster).is_some_and(|sent| Some(sent.as_str()) == uid)
    }

    /// Records that a change of an object is sent.
    pub(crate) fn change_sent(&mut self, object: CreatedObject, fields: Value) {
        self.changes.insert(object, fields);
    }

    /// The change that an answer is about: of one object only one is in flight.
    pub(crate) fn sent_change(&self, object: &CreatedObject) -> Option<&Value> {
        self.changes.get(object)
    }

    /// The epoch of the create that an answer is about: of one object only one is in flight. `None` if it was sent for an earlier
    /// Workload of the name, or before its quota was given back.
    pub(crate) fn sent_epoch(&self, object: &CreatedObject) -> Option<u64> {
        self.creates.get(object).map(|one| one.epoch)
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { any: _, creates, generations: _, changes: _, deleted_clones: _ } = self;
        creates.values_mut().for_each(|one| one.last = moved(one.last, by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn an_object_that_vanishes_is_created_more_and_more_slowly() {
        let (mut sent, clone) = (SentCopies::default(), (ClusterId(1), None));
        assert_eq!(sent.create_not_before(&clone), None);
        for (epoch, pause) in [1, 2, 4, 8, 16, 30, 30].into_iter().enumerate() {
            sent.created(clone.clone(), epoch as u64, at(100));
            assert_eq!(sent.create_not_before(&clone), Some(at(100 + pause)));
            assert_eq!(sent.sent_epoch(&clone), Some(epoch as u64));
        }
        sent.clock_jumped(SignedDuration::from_secs(7));
        assert_eq!(sent.create_not_before(&clone), Some(at(137)));
        assert_eq!(sent.create_not_before(&(ClusterId(2), None)), None);
    }
}
