//! Metadata of owners of jobs whose kinds are not observed: external frameworks, disabled integrations, ReplicaSets.
//!
//! The search for the ancestor of a job passes through them (docs/reference/kueue.md §7.3 row 0e). There are many, and few own a
//! job, so each is read when a search reaches it, as the webhooks do. A search that waits for a read decides nothing: without the
//! ancestor a child would get a Workload of its own.

use std::{collections::BTreeMap, time::Duration};

use ::jobs::integrations::{OwnerKind, controller};
use crds::{decode::from_value, names::labels::QUEUE_NAME};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{ApiResource, GroupVersionKind};
use runtime::{write::Write, writer::WriteOutcome};

use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::{Intent, Purpose, Settled, Stamp, Subject, Target, after},
    timers::Reevaluation,
};

/// How long a read is used. The labels of an owner may change.
const READ_LASTS: Duration = Duration::from_secs(600);

/// The most owners that are remembered.
const MOST_OWNERS: usize = 16_384;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnobservedOwners {
    /// By uid.
    owners: BTreeMap<Box<str>, OwnerRead>,
}

/// What a read has shown.
#[derive(Debug)]
struct OwnerRead {
    /// `None` if no object has the uid.
    metadata: Option<ObjectMeta>,
    until: Timestamp,
}

impl UnobservedOwners {
    /// What the last read has shown: `None` before it, and inside it if the owner does not exist.
    pub(super) fn get(
        &self,
        owner: &OwnerReference,
        now: Timestamp,
    ) -> Option<Option<&ObjectMeta>> {
        let read = self.owners.get(&*owner.uid).filter(|read| read.until > now)?;
        Some(read.metadata.as_ref())
    }

    /// Reads an owner of a job, unless it is being read. The job is evaluated after the answer.
    pub(super) fn read(
        &self,
        (job, owner): (&JobKey, &OwnerReference),
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
        if !ctx.is_free(&target, &base, &waiter) {
            return;
        }
        let intent = Intent { target, purpose: Purpose::Ancestor, base, waiter };
        let resource = resource(kind);
        ctx.outbox.submit(intent, |purpose, key| Write::of(purpose, &resource).metadata(key));
    }

    /// Takes the answer to a read. One that says nothing about the owner leaves it to be read again.
    pub(super) fn answered(&mut self, answer: &WriteOutcome, settled: &Settled, now: Timestamp) {
        let Some(uid) = settled.base.as_ref().and_then(|base| base.uid.clone()) else {
            return;
        };
        let metadata = match answer {
            WriteOutcome::Done(object) => {
                let metadata = from_value::<ObjectMeta>(&object.tree()["metadata"]).ok();
                // Another object of the name: the owner is gone.
                metadata.filter(|found| found.uid.as_deref() == Some(&*uid))
            }
            WriteOutcome::Gone => None,
            _ => return,
        };
        if self.owners.len() >= MOST_OWNERS {
            self.owners.clear();
        }
        let metadata = metadata.as_ref().map(searched);
        self.owners.insert(uid, OwnerRead { metadata, until: after(now, READ_LASTS) });
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

/// The resource of a kind. That of an external framework is named by the rule that names of resources follow.
fn resource(kind: &OwnerKind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    match kind.plural {
        Some(plural) => ApiResource::from_gvk_with_plural(&gvk, plural),
        None => ApiResource::from_gvk(&gvk),
    }
}
