//! Which Workloads belong to which job: by controller reference, or by the name that the job gives. A Workload may have many
//! jobs, and a job many Workloads.

use ::jobs::{
    GenericJob, JobGates, JobObject, Kind, Kinds, equivalence, integrations::controller,
    pods::group, reconcile::is_clone,
};
use crds::{
    meta::{is_deleting, is_true},
    names::conditions::FINISHED,
    v1beta2::Workload,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use runtime::watch::Key;

use super::inputs::WorkloadEffect;
use crate::control::{
    context::Context,
    job_key::JobKey,
    key_map::KeyMap,
    key_set::KeySet,
    timers::Reevaluation,
    workloads::{Transition, WorkloadCommand, Workloads},
};

/// A job that is not observed any more.
pub(super) struct Abandoned<'a> {
    pub(super) job: &'a JobKey,
    /// What becomes of its Workloads; `None` if nothing is known about the job.
    pub(super) command: Option<WorkloadCommand>,
    /// The uid, if its deletion was observed and they are to be finished.
    pub(super) gone: Option<String>,
}

/// The Workloads of each job.
#[derive(Debug)]
pub(super) struct Owners {
    kinds: Kinds,
    /// Those of them with jobs that are sets of pods.
    sets: Kinds,
    /// Workloads by the job that owns them.
    owned: KeyMap<JobKey, KeySet<Key>>,
    /// Jobs by the Workload that they name.
    naming: KeyMap<Key, KeySet<JobKey>>,
}

impl Owners {
    /// Owners of these kinds.
    pub(super) fn new(kinds: Kinds) -> Self {
        let sets = kinds.iter().filter(|kind| kind.members().is_some()).cloned();
        Self { sets: Kinds::new(sets), kinds, owned: KeyMap::new(), naming: KeyMap::new() }
    }

    /// Records the owners of a Workload.
    pub(super) fn add_workload(&mut self, key: &Key, workload: &Workload) {
        let owners: Vec<JobKey> = self.owners(key, workload).map(|(job, _)| job).collect();
        for owner in owners {
            self.owned.entry(owner).or_default().insert(key.clone());
        }
    }

    /// Forgets a Workload. Returns the jobs that owned it.
    pub(super) fn remove_workload(&mut self, key: &Key, workload: &Workload) -> Vec<JobKey> {
        let owners: Vec<JobKey> = self.owners(key, workload).map(|(job, _)| job).collect();
        for owner in &owners {
            self.owned.remove_member(owner, key);
        }
        owners
    }

    /// Records that a job names a Workload.
    pub(super) fn add_name(&mut self, workload: Key, job: &JobKey) {
        self.naming.entry(workload).or_default().insert(job.clone());
    }

    /// Forgets that a job names a Workload.
    pub(super) fn remove_name(&mut self, workload: &Key, job: &JobKey) {
        self.naming.remove_member(workload, job);
    }

    /// Workloads that a job owns, in the order of their names.
    pub(super) fn owned_by(&self, job: &JobKey) -> impl Iterator<Item = &Key> {
        self.owned.get(job).into_iter().flatten()
    }

    /// The Workloads that may be a job's: the one that it names, or those that it owns.
    pub(super) fn workloads_of<'a>(
        &self,
        (key, job): (&JobKey, &JobObject),
        (prebuilt, gates): (Option<&Key>, JobGates),
        workloads: &'a Workloads,
    ) -> Vec<&'a Workload> {
        // A job with a prebuilt Workload never gets one of its own (docs/reference/kueue.md §7.4).
        let of_job: Vec<&Key> = match prebuilt {
            Some(named) => vec![named],
            None => self.owned_by(key).collect(),
        };
        let records = of_job.into_iter().filter_map(|key| workloads.get(key));
        let objects = records.map(|record| &**record.object());
        // The references name an owner by name: they may be those of an earlier job.
        let how = (prebuilt.is_some(), gates);
        objects.filter(|workload| belongs_to(job, workload, how)).collect()
    }

    /// What follows for the Workloads of a job that is gone, except those of a group.
    pub(super) fn abandon(
        &self,
        abandoned: Abandoned<'_>,
        workloads: &Workloads,
        ctx: &mut Context,
    ) -> Vec<(Key, WorkloadEffect)> {
        let Abandoned { job, command, gone } = abandoned;
        let Some(command) = command else {
            return Vec::new();
        };
        let mut effects = Vec::new();
        for owned in self.owned_by(job) {
            let workload = workloads.get(owned).map(|record| &**record.object());
            // Other members still own it.
            if workload.is_some_and(group::is_group_workload) {
                ctx.agenda.now(Reevaluation::PodGroup(owned.clone()));
                continue;
            }
            effects.push((owned.clone(), WorkloadEffect::Perform(command.clone(), None)));
            let ends = |workload| gone.as_ref().is_some_and(|uid| ends_with_job(workload, uid));
            if workload.is_some_and(ends) {
                let finish = WorkloadEffect::Propose(Transition::owner_not_found());
                effects.push((owned.clone(), finish));
            }
        }
        effects
    }

    /// Lets deleted Workloads of an earlier job of the name go. What followed the end of that job may have been refused, and the end is
    /// not seen again once the next job is there. A Workload that is not deleted may be that of a job that the watch does not show yet.
    pub(super) fn let_former_go(
        &self,
        key: &JobKey,
        job: &JobObject,
        workloads: &Workloads,
    ) -> Vec<(Key, WorkloadEffect)> {
        let is_former = |workload: &Workload| {
            is_deleting(&workload.metadata)
                && has_former_controller(workload, job)
                && !group::is_group_workload(workload)
        };
        let former = self
            .owned_by(key)
            .filter(|owned| workloads.get(owned).is_some_and(|record| is_former(record.object())));
        let effect = || WorkloadEffect::Perform(WorkloadCommand::RemoveFinalizer, None);
        former.map(|owned| (owned.clone(), effect())).collect()
    }

    /// Workloads of an earlier job of the name, but for the one that the job names. The garbage collector may take long to delete them,
    /// and meanwhile they hold quota.
    pub(super) fn of_former_job<'a>(
        &self,
        key: &JobKey,
        job: &JobObject,
        prebuilt: Option<&Key>,
        workloads: &'a Workloads,
    ) -> Vec<&'a Workload> {
        let others = self.owned_by(key).filter(|owned| Some(*owned) != prebuilt);
        let objects = others.filter_map(|owned| Some(&**workloads.get(owned)?.object()));
        objects.filter(|workload| is_of_former_job(workload, job)).collect()
    }

    /// Jobs of a kind that own Workloads.
    pub(super) fn of_kind(&self, kind: &Kind) -> impl Iterator<Item = &JobKey> {
        self.owned.keys().filter(move |job| job.kind == *kind)
    }

    pub(super) fn owns_any(&self, job: &JobKey) -> bool {
        self.owned.contains_key(job)
    }

    /// Jobs that name a Workload.
    pub(super) fn naming(&self, workload: &Key) -> impl Iterator<Item = &JobKey> {
        self.naming.get(workload).into_iter().flatten()
    }

    /// The owners of a Workload and the jobs that name it.
    pub(super) fn jobs_of<'a>(
        &'a self,
        key: &'a Key,
        workload: &'a Workload,
    ) -> impl Iterator<Item = JobKey> {
        self.owners(key, workload).map(|(job, _)| job).chain(self.naming(key).cloned())
    }

    /// Jobs that own a Workload, each with its uid: the controller alone, or every owner of a group without one.
    ///
    /// A group has thousands of owners, and most callers need the first: keys are made one after the other.
    pub(super) fn owners<'w>(
        &self,
        key: &'w Key,
        workload: &'w Workload,
    ) -> impl Iterator<Item = (JobKey, &'w str)> {
        let references = self.references(workload).iter();
        references.filter_map(|owner| Some((self.owner_key(key, owner)?, owner.uid.as_str())))
    }

    /// Those of them that are sets of pods.
    pub(super) fn sets_of<'w>(
        &self,
        key: &'w Key,
        workload: &'w Workload,
    ) -> impl Iterator<Item = (JobKey, &'w str)> {
        let references = self.references(workload).iter();
        references.filter_map(|owner| Some((job_key(&self.sets, key, owner)?, owner.uid.as_str())))
    }

    /// The controller alone, if it is a job, or all owners.
    fn references<'a>(&self, workload: &'a Workload) -> &'a [OwnerReference] {
        let owners = workload.metadata.owner_references.as_deref().unwrap_or_default();
        let is_job =
            |owner: &OwnerReference| self.kinds.find(&owner.api_version, &owner.kind).is_some();
        match controller(&workload.metadata) {
            Some(controller) if is_job(controller) => std::slice::from_ref(controller),
            _ => owners,
        }
    }

    /// The job that an owner reference of an object in a namespace names.
    pub(super) fn owner_key(&self, owned: &Key, owner: &OwnerReference) -> Option<JobKey> {
        job_key(&self.kinds, owned, owner)
    }
}

/// Whether a Workload that goes on ends when the job with this uid is gone. That of a successor of the name goes on.
fn ends_with_job(workload: &Workload, uid: &str) -> bool {
    let goes_on = !is_true(&workload.status.conditions, FINISHED);
    let is_its = controller(&workload.metadata).is_some_and(|owner| owner.uid == uid);
    // Other members own that of a group. About a clone its manager decides, which dispatches it again.
    goes_on && is_its && !is_clone(workload)
}

/// Whether the controller of a Workload, which is not deleted, is an earlier job of the name of this one.
fn is_of_former_job(workload: &Workload, job: &JobObject) -> bool {
    let made = |metadata: &ObjectMeta| metadata.creation_timestamp.as_ref().map(|time| time.0);
    // The watch may not show a later job of the name yet, with a Workload of its own: that one is not older than this job.
    let is_older = || {
        let times = made(&workload.metadata).zip(made(job.metadata()));
        times.is_some_and(|(workload, job)| workload < job)
    };
    let others_decide = || group::is_group_workload(workload) || is_clone(workload);
    has_former_controller(workload, job)
        && is_older()
        && !others_decide()
        && !is_deleting(&workload.metadata)
}

/// Whether an earlier job of the name of this one is the controller of a Workload. With an object of another kind as its controller a
/// Workload may list the job among its owners.
fn has_former_controller(workload: &Workload, job: &JobObject) -> bool {
    let uid = job.metadata().uid.as_ref();
    controller(&workload.metadata)
        .is_some_and(|owner| equivalence::is_name_of(owner, job) && Some(&owner.uid) != uid)
}

/// The job of one of these kinds that an owner reference names.
fn job_key(kinds: &Kinds, owned: &Key, owner: &OwnerReference) -> Option<JobKey> {
    let kind = kinds.find(&owner.api_version, &owner.kind)?;
    let key = Key { namespace: owned.namespace.clone(), name: owner.name.as_str().into() };
    Some(JobKey::new(kind, &key))
}

/// Whether a Workload can be this job's. One that the job only names must be of the same epoch, and no other job's.
pub(super) fn belongs_to(
    job: &JobObject,
    workload: &Workload,
    (prebuilt, gates): (bool, JobGates),
) -> bool {
    // A Workload with a controller belongs to that, whichever jobs name it.
    if prebuilt && !equivalence::has_controller(workload) {
        let epoch = ::jobs::remote_objects::epoch;
        return epoch(job.metadata()) == epoch(&workload.metadata);
    }
    equivalence::owned_by(workload, job, gates)
}
