//! The job of a clone whose child got no pods: a Job of a JobSet, a StatefulSet of a LeaderWorkerSet (docs/reference/dispatch.md §4).
//!
//! Children are not watched: there are many, and few are refused pods. The Event about one names it; its controller is read, and
//! the controller of that, until a job of a clone is found. Cost: a list of one name per step, none while no pod is refused.

use std::collections::{BTreeMap, BTreeSet};

use ::jobs::{Gvk, integrations::controller};
use crds::decode::from_value;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{ApiResource, GroupVersionKind};
use runtime::{watch::Key, writer::WriteOutcome};

use crate::control::{
    context::Context,
    outbox::{Subject, Ticket, listed_object},
    timers::Reevaluation,
};

/// The most owners between a child and its job: an AppWrapper of a RayJob has two.
const MOST_STEPS: u8 = 4;

/// Objects without a job of ours that are remembered, so that their next Event reads nothing.
const MOST_FOREIGN: usize = 1024;

/// An object, by its kind and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectName {
    pub(crate) api_version: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) key: Key,
}

/// An object that is read, and why.
#[derive(Debug, Clone)]
pub(crate) struct OwnerSearch {
    /// The uid of the object.
    pub(crate) uid: String,
    /// The words of the API server.
    pub(crate) message: String,
    /// The uid of the object that got no pods.
    child: String,
    n_steps: u8,
}

/// The searches for the jobs of objects that got no pods.
#[derive(Debug, Default)]
pub(crate) struct RefusedOwners {
    searches: BTreeMap<ObjectName, OwnerSearch>,
    /// Uids of objects that belong to no clone.
    foreign: BTreeSet<String>,
}

impl OwnerSearch {
    /// The search for the job of an object that got no pods.
    pub(crate) fn of(uid: &str, message: &str) -> Self {
        Self { uid: uid.to_owned(), message: message.to_owned(), child: uid.to_owned(), n_steps: 0 }
    }
}

impl RefusedOwners {
    /// Reads an object for its controller, unless it is known to belong to no clone.
    pub(crate) fn read(&mut self, object: ObjectName, search: OwnerSearch, ctx: &mut Context) {
        if self.foreign.contains(&search.child) {
            return;
        }
        if search.n_steps > MOST_STEPS {
            return self.give_up(search);
        }
        let resource = resource(&object);
        if ctx.read_owner(&resource, &object.key, Reevaluation::Report) {
            // As the answer names it.
            let api_version = resource.api_version.into();
            self.searches.insert(ObjectName { api_version, ..object }, search);
        }
    }

    /// Takes the answer to a read. Returns the controller of the object, and the search for the job.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: &WriteOutcome,
    ) -> Option<(ObjectName, OwnerSearch)> {
        let Subject::Owner { api_version, kind } = ticket.target.subject.clone() else {
            return None;
        };
        let key = ticket.target.key.clone();
        let namespace = key.namespace.clone();
        let search = self.searches.remove(&ObjectName { api_version, kind, key })?;
        // The next Event asks again after an answer that says nothing.
        let WriteOutcome::Done(list) = answer else {
            return None;
        };
        let metadata = listed_object(list)?.tree()["metadata"].take();
        let metadata = from_value::<ObjectMeta>(&metadata).ok()?;
        if metadata.uid.as_deref() != Some(&*search.uid) {
            return None;
        }
        let Some(OwnerReference { api_version, kind, name, uid, .. }) = controller(&metadata)
        else {
            self.give_up(search);
            return None;
        };
        let key = Key { namespace, name: name.as_str().into() };
        let owner = ObjectName {
            api_version: api_version.as_str().into(),
            kind: kind.as_str().into(),
            key,
        };
        Some((owner, OwnerSearch { uid: uid.clone(), n_steps: search.n_steps + 1, ..search }))
    }

    fn give_up(&mut self, search: OwnerSearch) {
        if self.foreign.len() >= MOST_FOREIGN {
            self.foreign.clear();
        }
        self.foreign.insert(search.child);
    }
}

/// The resource of an object, by the rule that names of resources follow.
fn resource(object: &ObjectName) -> ApiResource {
    let gvk = Gvk::of(&object.api_version, &object.kind);
    ApiResource::from_gvk(&GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind))
}
