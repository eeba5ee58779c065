//! Metadata of owners of kinds that are not observed: external frameworks, disabled integrations, ReplicaSets.
//!
//! The search for the ancestor of a job passes through them (docs/reference/kueue.md §7.3 row 0e). There are many, and few own a
//! job, so each is read when a search reaches it, as the webhooks do. A search that waits for a first read decides nothing: without
//! the ancestor a child would get a Workload of its own. An old read counts until the next one is answered. An owner that the API
//! server refuses to show, or of a resource that it does not serve, counts as an object of an unknown kind.

use std::{collections::BTreeMap, time::Duration};

use ::jobs::integrations::{OwnerKind, controller};
use crds::{decode::from_value, names::labels::QUEUE_NAME};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{ApiResource, GroupVersionKind};
use runtime::{write::Write, writer::WriteOutcome};

use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::{Intent, Purpose, Settled, Stamp, Subject, Target, after},
    time::moved,
    timers::Reevaluation,
};

/// How old a read is before the next one. The labels of an owner may change.
const READ_LASTS: Duration = Duration::from_secs(600);

/// The most owners that are remembered.
const MOST_OWNERS: usize = 16_384;

/// Owners of kinds that are not observed, by uid.
#[derive(Debug, Default)]
pub(super) struct UnobservedOwners {
    /// By uid.
    owners: BTreeMap<Box<str>, OwnerRead>,
}

/// The last answer to a read.
#[derive(Debug)]
pub(super) struct OwnerRead {
    pub(super) shown: ShownOwner,
    /// It is read again from here on.
    pub(super) until: Timestamp,
}

/// What a read has shown.
#[derive(Debug)]
pub(super) enum ShownOwner {
    Exists(Box<ObjectMeta>),
    /// No object has the uid.
    Gone,
    /// The read was refused.
    Refused,
}

impl UnobservedOwners {
    /// The last answer about an owner.
    pub(super) fn get(&self, owner: &OwnerReference) -> Option<&OwnerRead> {
        self.owners.get(&*owner.uid)
    }

    /// The clock jumped: reads are as old as before.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.owners.values_mut().for_each(|read| read.until = moved(read.until, by));
    }

    /// Reads an owner of a job, unless it is being read. The job is evaluated after the answer.
    pub(super) fn read(
        &self,
        job: &JobKey,
        owner: &OwnerReference,
        kind: &OwnerKind,
        ctx: &mut Context,
    ) {
        let subject = Subject::Owner {
            api_version: owner.api_version.as_str().into(),
            kind: owner.kind.as_str().into(),
        };
        let target = Target::home(subject, &job.in_namespace(&owner.name));
        // The uid tells an answer about another object of the name.
        let base = Stamp { version: 0, uid: Some(owner.uid.as_str().into()) };
        let waiter = Reevaluation::Job(job.clone());
        if !ctx.free_or_wait(&target, &base, &waiter) {
            return;
        }
        let intent = Intent { target, purpose: Purpose::Ancestor, base, waiter };
        let resource = resource(kind);
        ctx.outbox.submit(intent, |purpose, key| Write::of(purpose, &resource).get_metadata(key));
    }

    /// Takes the answer to a read. One that says nothing about the owner leaves it to be read again.
    pub(super) fn answered(&mut self, answer: &WriteOutcome, settled: &Settled, now: Timestamp) {
        let Some(uid) = settled.base.as_ref().and_then(|base| base.uid.clone()) else {
            return;
        };
        let shown = match answer {
            WriteOutcome::Done(object) => {
                // Metadata that cannot be decoded shows nothing by the next read either.
                from_value::<ObjectMeta>(&object.tree()["metadata"])
                    .map_or(ShownOwner::Refused, |found| self.take_found(&uid, &found, now))
            }
            WriteOutcome::Gone => ShownOwner::Gone,
            WriteOutcome::Refused { code, message, .. } => {
                tracing::warn!(
                    code,
                    message,
                    uid = &*uid,
                    "an owner of jobs cannot be read; they count as jobs without it"
                );
                ShownOwner::Refused
            }
            WriteOutcome::Exists
            | WriteOutcome::Stale
            | WriteOutcome::Unknown(_)
            | WriteOutcome::UnnamedNotFound(_) => return,
        };
        self.insert(uid, shown, now);
    }

    /// Records the object that a read has shown. Returns what that means for the owner with this uid.
    fn take_found(&mut self, uid: &str, found: &ObjectMeta, now: Timestamp) -> ShownOwner {
        let exists = ShownOwner::Exists(Box::new(searched(found)));
        match found.uid.as_deref() {
            Some(found) if found == uid => exists,
            // Another object of the name: the owner is gone.
            Some(another) => {
                self.insert(another.into(), exists, now);
                ShownOwner::Gone
            }
            None => ShownOwner::Gone,
        }
    }

    fn insert(&mut self, uid: Box<str>, shown: ShownOwner, now: Timestamp) {
        if self.owners.len() >= MOST_OWNERS {
            self.owners.clear();
        }
        self.owners.insert(uid, OwnerRead { shown, until: after(now, READ_LASTS) });
    }
}

/// The part of the metadata that the search looks at.
fn searched(metadata: &ObjectMeta) -> ObjectMeta {
    let queue = metadata.labels.as_ref().and_then(|labels| labels.get_key_value(QUEUE_NAME));
    ObjectMeta {
        uid: metadata.uid.clone(),
        labels: queue.map(|(key, name)| BTreeMap::from([(key.clone(), name.clone())])),
        owner_references: controller(metadata).map(|owner| vec![owner.clone()]),
        ..ObjectMeta::default()
    }
}

/// The resource of a kind. If its name is not known, it is named by the rule that names of resources follow.
fn resource(kind: &OwnerKind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    match &kind.plural {
        Some(plural) => ApiResource::from_gvk_with_plural(&gvk, plural),
        None => ApiResource::from_gvk(&gvk),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bounded_number_of_owners_is_remembered() {
        let mut owners = UnobservedOwners::default();
        for number in 0..=MOST_OWNERS {
            let uid = number.to_string();
            let base = Stamp { version: 0, uid: Some(uid.as_str().into()) };
            let settled = Settled { base: Some(base), retry_at: None };
            let answer = WriteOutcome::done(json!({"metadata": {"uid": uid}}));
            owners.answered(&answer, &settled, Timestamp::UNIX_EPOCH);
            let owner = OwnerReference { uid, ..OwnerReference::default() };
            assert!(owners.get(&owner).is_some(), "the last one is remembered");
        }
        assert!(owners.owners.len() <= MOST_OWNERS);
    }
}
