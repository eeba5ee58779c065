//! What is remembered of a Workload's dispatch.
//!
//! All of it may be lost: after a restart the cautious values hold until the API servers say more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use engine::ids::ClusterId;
use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;
use serde_json::Value;

use super::status_sync::StatusSyncThrottle;
use crate::control::{
    job_key::JobKey,
    outbox::after,
    time::{doubled, moved},
};

/// A cluster, and a job; `None` is the clone.
pub(super) type CreatedObject = (ClusterId, Option<JobKey>);

/// How long a Workload may be observed later than its copy: longer than a watch without events takes to notice that its
/// connection is dead. After that a person decides.
pub(super) const NEWER_COPY_GRACE: Duration = Duration::from_secs(360);

/// The longest pause between two creates of one object.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A move of queued work to a cluster with room.
#[derive(Debug)]
pub(super) struct QueuedMove {
    /// When it was decided.
    pub(super) at: Timestamp,
    /// It was reported.
    pub(super) announced: bool,
}

impl QueuedMove {
    /// One that is decided now.
    pub(super) fn begun(now: Timestamp) -> Self {
        Self { at: now, announced: false }
    }
}

/// A copy that holds a name, and that the hub may have made before this process observes its Workload.
#[derive(Debug)]
pub(super) struct NewerHolder {
    pub(super) cluster: ClusterId,
    /// The Workload of the copy.
    pub(super) owner: Key,
    pub(super) since: Timestamp,
}

impl NewerHolder {
    /// Until when it is awaited.
    pub(super) fn until(&self) -> Timestamp {
        after(self.since, NEWER_COPY_GRACE)
    }
}

/// The creates of one object on a cluster.
#[derive(Debug)]
struct SentCreates {
    times: u32,
    last: Timestamp,
    /// The epoch of the last one.
    epoch: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct DispatchState {
    /// Since when the recorded worker has admitted the Workload and not started it.
    pub(super) start_awaited_since: Option<Timestamp>,
    /// Since when the clone there is finished, while a copy of its job may be there that is not observed.
    pub(super) end_awaited_since: Option<Timestamp>,
    /// Since when a copy for another Workload holds the name of a job on the worker that is to get it.
    pub(super) name_held_since: Option<Timestamp>,
    /// Such copies that are newer than their Workloads as this process observes them.
    pub(super) newer_holders: Vec<NewerHolder>,
    /// A create may have been sent under the present epoch.
    pub(super) sent: bool,
    /// A former leader may have created copies.
    pub(super) of_former: bool,
    /// Clusters on which the copies were read since the hub Lease has the term of this leader.
    pub(super) read_on: BTreeSet<ClusterId>,
    /// The highest epoch of any copy that was observed.
    pub(super) highest_epoch: u64,
    /// Since when a copy has a higher epoch than the observed Workload.
    pub(super) newer_copy_since: Option<Timestamp>,
    creates: BTreeMap<CreatedObject, SentCreates>,
    /// The fields of the last size that was sent for each object.
    pushed: BTreeMap<CreatedObject, Value>,
    /// The epoch was raised for the withdrawal that is under way.
    pub(super) epoch_raised: bool,
    /// Nothing of the Workload runs on any worker.
    pub(super) withdrawn: bool,
    /// Clusters without reports race for it.
    pub(super) races: bool,
    /// It waits for queues of workers, as this process knows.
    pub(super) queued: bool,
    /// Its last move to a cluster with room.
    pub(super) moved: Option<QueuedMove>,
    /// It waits for further clusters to race.
    pub(super) awaits_clusters: bool,
    /// When the status of its job was copied to the hub.
    pub(super) throttle: StatusSyncThrottle,
    /// Since when it is nominated, as far as this process knows.
    pub(super) nominated_at: Timestamp,
}

impl DispatchState {
    /// Of a Workload that this process observes for the first time: a create may be on its way.
    pub(super) fn unknown(now: Timestamp) -> Self {
        Self { sent: true, of_former: true, ..Self::fresh(now) }
    }

    /// Of a Workload that gets or gives back quota now.
    pub(super) fn fresh(now: Timestamp) -> Self {
        Self {
            sent: false,
            of_former: false,
            read_on: BTreeSet::new(),
            start_awaited_since: None,
            end_awaited_since: None,
            name_held_since: None,
            newer_holders: Vec::new(),
            highest_epoch: 0,
            newer_copy_since: None,
            creates: BTreeMap::new(),
            pushed: BTreeMap::new(),
            epoch_raised: false,
            withdrawn: false,
            races: false,
            queued: false,
            moved: None,
            awaits_clusters: false,
            throttle: StatusSyncThrottle::default(),
            nominated_at: now,
        }
    }
}

impl DispatchState {
    /// Until when a copy of a higher epoch may be that of a Workload which is observed late. `newer` says whether there is one.
    pub(super) fn newer_copy_until(&mut self, newer: bool, now: Timestamp) -> Option<Timestamp> {
        let since = newer.then(|| self.newer_copy_since.unwrap_or(now));
        self.newer_copy_since = since;
        since.map(|since| after(since, NEWER_COPY_GRACE))
    }

    /// The clock jumped.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.nominated_at = moved(self.nominated_at, by);
        let times = [
            &mut self.newer_copy_since,
            &mut self.start_awaited_since,
            &mut self.end_awaited_since,
            &mut self.name_held_since,
        ];
        for at in times {
            *at = at.map(|at| moved(at, by));
        }
        self.newer_holders.iter_mut().for_each(|one| one.since = moved(one.since, by));
        self.moved.iter_mut().for_each(|one| one.at = moved(one.at, by));
        self.creates.values_mut().for_each(|one| one.last = moved(one.last, by));
    }

    /// Until when an object is not created again: what vanishes as fast as it is created is created more and more slowly.
    pub(super) fn create_not_before(&self, object: &CreatedObject) -> Option<Timestamp> {
        let SentCreates { times, last, .. } = self.creates.get(object)?;
        let pause = doubled(Duration::from_secs(1), times.saturating_sub(1), LONGEST_PAUSE);
        Some(after(*last, pause))
    }

    /// Records that a create of this epoch is sent.
    pub(super) fn created(&mut self, object: CreatedObject, epoch: u64, now: Timestamp) {
        let times = self.creates.get(&object).map_or(0, |one| one.times).saturating_add(1);
        self.creates.insert(object, SentCreates { times, last: now, epoch });
    }

    /// Records that a size of an object is sent.
    pub(super) fn size_pushed(&mut self, object: CreatedObject, fields: Value) {
        self.pushed.insert(object, fields);
    }

    /// The size that an answer is about: of one object only one is in flight.
    pub(super) fn pushed_size(&self, object: &CreatedObject) -> Option<&Value> {
        self.pushed.get(object)
    }

    /// The epoch of the create that an answer is about: of one object only one is in flight. `None` if it was sent for an earlier
    /// Workload of the name, or before its quota was given back.
    pub(super) fn sent_epoch(&self, object: &CreatedObject) -> Option<u64> {
        self.creates.get(object).map(|one| one.epoch)
    }
}
