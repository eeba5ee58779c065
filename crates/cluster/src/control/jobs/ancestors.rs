//! Children: jobs that another managed job controls (docs/reference/kueue.md §7.3, 0e to 0g).
//!
//! A child never gets a Workload, also when it carries the labels of its owner: its pods are those of the owner's Workload. It
//! may run while that is admitted. Owners are found among observed jobs; a kind that is not observed ends the search. A job with
//! an owner of an observed kind that is not there gets nothing: the garbage collector deletes it, or the owner is about to be seen.

use std::collections::BTreeSet;

use ::jobs::{
    GenericJob, JobObject,
    ancestor_search::{AncestorError, AncestorSearch, AncestorStep},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use runtime::events::EventType;

use super::{
    change::{JobChange, event, submit},
    inputs::JobsConfig,
    kind_availability::KindAvailability,
    owners::Owners,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ancestry {
    /// It has no managed ancestor.
    Top,
    /// This is its topmost managed ancestor.
    ChildOf(JobKey),
    /// The job that controls it, or that one's, does not exist.
    OwnerGone,
}

/// Children by the observed job that controls them.
#[derive(Debug, Default)]
pub(super) struct ChildJobs {
    by_owner: KeyMap<JobKey, KeySet<JobKey>>,
}

impl ChildJobs {
    pub(super) fn add(&mut self, owner: JobKey, child: &JobKey) {
        self.by_owner.entry(owner).or_default().insert(child.clone());
    }

    pub(super) fn remove(&mut self, owner: &JobKey, child: &JobKey) {
        self.by_owner.remove_member(owner, child);
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
    if !runs || !ctx.is_free(&Target::job(key), &tracked.stamp(), &waiter) {
        return;
    }
    let message = "Kueue managed child job suspended".to_owned();
    let suspended = event(job, EventType::Normal, "Suspended", message);
    let after = Box::new(job.suspended());
    if submit(key, tracked, &JobChange::spec(after, Purpose::Stop), ctx) {
        ctx.outbox.announce(suspended);
    }
}

/// What is known of the owners of jobs.
#[derive(Debug)]
pub(super) struct KnownOwners<'a> {
    pub(super) jobs: &'a KeyMap<JobKey, Tracked<JobObject>>,
    pub(super) owners: &'a Owners,
    pub(super) kinds: &'a KindAvailability,
    pub(super) config: &'a JobsConfig,
}

/// The topmost managed ancestor of a job that has a controller, among the observed jobs.
pub(super) fn ancestry(
    (key, job): (&JobKey, &JobObject),
    known: &KnownOwners<'_>,
) -> Result<Ancestry, AncestorError> {
    let KnownOwners { jobs, owners, kinds, config } = known;
    let below = |top: Option<OwnerReference>| {
        let top = top.and_then(|top| owners.owner_key(&key.key, &top));
        top.map_or(Ancestry::Top, Ancestry::ChildOf)
    };
    let (mut search, mut step) =
        AncestorSearch::begin(job.metadata(), &config.managed, config.without_queue_name);
    loop {
        let owner = match step {
            AncestorStep::Top(top) => return Ok(below(top)),
            AncestorStep::Read(owner) => owner,
        };
        let owner_key = owners.owner_key(&key.key, &owner);
        let observed = owner_key.as_ref().and_then(|key| jobs.get(key));
        let Some(observed) = observed else {
            let is_gone = owner_key.is_some_and(|key| kinds.lists(&key.kind));
            return Ok(match search.end() {
                None if is_gone => Ancestry::OwnerGone,
                top => below(top),
            });
        };
        step = search.owner_read(owner, observed.object().metadata())?;
    }
}
