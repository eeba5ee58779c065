//! Children: jobs that another managed job controls (docs/reference/kueue.md §7.3, 0e to 0g).
//!
//! A child never gets a Workload, also when it carries the labels of its owner: its pods are those of the owner's Workload. It
//! may run while that is admitted. Owners of observed kinds are found among the observed jobs; those of other known kinds are
//! read (`unobserved_owners`). A child of an ancestor that is not observed is left alone: another controller starts and stops it.
//! A job with an owner that does not exist gets nothing: the garbage collector deletes it, or the owner is about to be seen. Only a
//! read shows that the owner is gone; until then a Workload that the job has from before stays.
//! What a child has from before it was one is in `own_workloads`.

use std::collections::BTreeSet;

use ::jobs::{
    GenericJob, JobObject,
    ancestor_search::{AncestorError, AncestorSearch, AncestorStep},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use runtime::events::EventType;

use super::{
    change::{JobChange, event, submit},
    inputs::JobsConfig,
    kind_availability::KindAvailability,
    owners::Owners,
    unobserved_owners::{ShownOwner, UnobservedOwners},
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    key_map::KeyMap,
    key_set::KeySet,
    outbox::{Purpose, Target, Tracked},
    timers::Reevaluation,
};

/// Where a job stands among others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ancestry {
    /// It has no managed ancestor.
    Top,
    /// This is its topmost managed ancestor.
    ChildOf(JobKey),
    /// Its topmost managed ancestor is not observed: an object of an external framework.
    ChildOfUnobserved,
    /// The object that controls it, or that one's, does not exist.
    OwnerGone,
    /// The watch does not show the object that controls it, or that one's. It may be late.
    OwnerUnseen,
    /// An owner is to be read first.
    Unread,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundAncestry {
    pub(crate) ancestry: Ancestry,
    pub(super) reads: OwnerReads,
}

impl FoundAncestry {
    /// A job without an ancestor, of which nothing is read.
    pub(crate) fn top() -> Self {
        Self { ancestry: Ancestry::Top, reads: OwnerReads::default() }
    }

    /// Whether an owner is to be read, now or later.
    pub(crate) fn reads_owners(&self) -> bool {
        self.reads != OwnerReads::default()
    }
}

/// What a search needs to be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OwnerReads {
    /// This owner, now: it was never read, or long ago.
    pub(super) now: Option<OwnerReference>,
    /// The owner that the search did not get past, at this time.
    pub(super) later: Option<Timestamp>,
}

/// Children by the observed job that controls them, or that is their ancestor above owners that are not observed.
#[derive(Debug, Default)]
pub(super) struct ChildJobs {
    by_owner: KeyMap<JobKey, KeySet<JobKey>>,
    /// By child: the ancestor above owners that are not observed.
    distant: KeyMap<JobKey, JobKey>,
}

impl ChildJobs {
    pub(super) fn add(&mut self, owner: JobKey, child: &JobKey) {
        self.by_owner.entry(owner).or_default().insert(child.clone());
    }

    pub(super) fn remove(&mut self, owner: &JobKey, child: &JobKey) {
        self.by_owner.remove_member(owner, child);
    }

    /// Records the ancestor of a child that no observed job controls; `None` if it has none.
    pub(super) fn set_distant(&mut self, child: &JobKey, ancestor: Option<&JobKey>) {
        if self.distant.get(child) == ancestor {
            return;
        }
        if let Some(before) = self.distant.remove(child) {
            self.remove(&before, child);
        }
        if let Some(ancestor) = ancestor {
            self.distant.insert(child.clone(), ancestor.clone());
            self.add(ancestor.clone(), child);
        }
    }

    /// Children of a job, and theirs. An owner that is its own descendant ends the walk.
    pub(super) fn descendants(&self, job: &JobKey) -> BTreeSet<JobKey> {
        let mut found = BTreeSet::new();
        let mut next = vec![job];
        while let Some(owner) = next.pop() {
            for child in self.by_owner.get(owner).into_iter().flatten() {
                if found.insert(child.clone()) {
                    next.push(child);
                }
            }
        }
        found
    }
}

/// Suspends a child that runs without its ancestor. Only the switch is written, as its owner would: a child has no templates to
/// restore.
pub(super) fn stop_child(key: &JobKey, tracked: &Tracked<JobObject>, ctx: &mut Context) {
    let (job, waiter) = (tracked.object(), Reevaluation::Job(key.clone()));
    // A set has no switch: its pods are held by an annotation that the webhook has written.
    let runs = !job.spec_suspended()
        && job.finished().is_none()
        && job.set_size().is_none()
        && !job.is_skipped();
    if !runs || !ctx.free_or_wait(&Target::job(key), &tracked.stamp(), &waiter) {
        return;
    }
    let message = "Kueue managed child job suspended".to_owned();
    let suspended = event(job, EventType::Normal, "Suspended", message);
    let after = Box::new(job.to_suspended());
    if submit(key, tracked, &JobChange::spec(after, Purpose::Stop), ctx) {
        ctx.outbox.announce(suspended);
    }
}

/// What is known of the owners of jobs.
#[derive(Debug)]
pub(super) struct KnownOwners<'a> {
    pub(super) jobs: &'a KeyMap<JobKey, Tracked<JobObject>>,
    pub(super) owners: &'a Owners,
    pub(super) unobserved: &'a UnobservedOwners,
    pub(super) kinds: &'a KindAvailability,
    pub(super) config: &'a JobsConfig,
    pub(super) now: Timestamp,
}

/// What is known of one owner.
enum KnownOwner<'a> {
    Exists(&'a ObjectMeta),
    Gone,
    /// The watch of its kind does not show it.
    Unseen,
    /// Nothing, and it is not read.
    Unknown,
    Unread,
}

impl KnownOwners<'_> {
    /// What is known of the owner of a job, or of an owner of that.
    fn find(
        &self,
        key: &JobKey,
        job: &JobObject,
        owner: &OwnerReference,
        reads: &mut OwnerReads,
    ) -> KnownOwner<'_> {
        let observed = self.owners.owner_key(&key.key, owner);
        let found = observed.as_ref().and_then(|key| self.jobs.get(key));
        let metadata = match found {
            Some(found) => Some(found.object().metadata()),
            None if observed.as_ref().is_some_and(|key| self.kinds.lists(&key.kind)) => None,
            // An agent may not read owners, and the manager of a clone has followed them. A pod is no child of an object that is
            // not observed: a pod of a managed Deployment has its own Workload.
            None if observed.is_some()
                || !self.config.creates_workloads
                || job.as_pod().is_some() =>
            {
                return KnownOwner::Unknown;
            }
            None => return self.find_unobserved(owner, reads),
        };
        // Another object of the name may be one from before the owner.
        let exists = metadata.filter(|metadata| metadata.uid.as_ref() == Some(&owner.uid));
        exists.map_or(KnownOwner::Unseen, KnownOwner::Exists)
    }

    fn find_unobserved(&self, owner: &OwnerReference, reads: &mut OwnerReads) -> KnownOwner<'_> {
        let Some(read) = self.unobserved.get(owner) else {
            // Before an old one: the search waits for it.
            reads.now = Some(owner.clone());
            return KnownOwner::Unread;
        };
        // An old read counts until the next one is answered: the API server may not answer for long.
        if read.until <= self.now {
            reads.now.get_or_insert_with(|| owner.clone());
        }
        if let ShownOwner::Exists(metadata) = &read.shown {
            return KnownOwner::Exists(metadata);
        }
        // No watch shows that the owner can be found by then.
        reads.later = Some(read.until).filter(|until| *until > self.now);
        match &read.shown {
            ShownOwner::Refused => KnownOwner::Unknown,
            ShownOwner::Gone | ShownOwner::Exists(_) => KnownOwner::Gone,
        }
    }
}

/// The topmost managed ancestor of a job that has a controller.
pub(super) fn ancestry(
    key: &JobKey,
    job: &JobObject,
    known: &KnownOwners<'_>,
) -> Result<FoundAncestry, AncestorError> {
    let mut reads = OwnerReads::default();
    search(key, job, known, &mut reads).map(|ancestry| FoundAncestry { ancestry, reads })
}

fn search(
    key: &JobKey,
    job: &JobObject,
    known: &KnownOwners<'_>,
    reads: &mut OwnerReads,
) -> Result<Ancestry, AncestorError> {
    let below = |top: Option<OwnerReference>| match top {
        None => Ancestry::Top,
        Some(top) => {
            let observed = known.owners.owner_key(&key.key, &top);
            observed.map_or(Ancestry::ChildOfUnobserved, Ancestry::ChildOf)
        }
    };
    let config = known.config;
    let (mut search, mut step) =
        AncestorSearch::begin(job.metadata(), &config.managed, config.without_queue_name);
    loop {
        let owner = match step {
            AncestorStep::Top(top) => return Ok(below(top)),
            AncestorStep::Read(owner) => owner,
        };
        match known.find(key, job, &owner, reads) {
            KnownOwner::Exists(metadata) => step = search.owner_read(owner, metadata)?,
            KnownOwner::Unread => return Ok(Ancestry::Unread),
            KnownOwner::Unknown => return Ok(below(search.end())),
            KnownOwner::Gone => {
                let top = search.end();
                return Ok(top.map_or(Ancestry::OwnerGone, |top| below(Some(top))));
            }
            KnownOwner::Unseen => {
                let top = search.end();
                return Ok(top.map_or(Ancestry::OwnerUnseen, |top| below(Some(top))));
            }
        }
    }
}
