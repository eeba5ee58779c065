//! Objects that pod sets of jobs need, as they were observed, and which jobs need them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ::jobs::{
    GenericJob, JobObject,
    lookups::{FoundObjects, LookupFailure, LookupKind, NeededObject},
};
use kube::core::DynamicObject;
use runtime::watch::{Change, Key, Unavailable};

use crate::control::{change::for_each_object, context::Context, job_key::JobKey, key_map::KeyMap};

/// The objects that pod sets of jobs need.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    found: FoundObjects,
    needed_by: BTreeMap<NeededObject, BTreeSet<JobKey>>,
    needs: KeyMap<JobKey, Vec<NeededObject>>,
}

impl Lookups {
    /// Records what a job needs; `None` if the job is gone.
    pub(super) fn observe_job(&mut self, key: &JobKey, job: Option<&JobObject>) {
        let needed = job.map(GenericJob::needed_objects).unwrap_or_default();
        let before = self.needs.remove(key).unwrap_or_default();
        for object in before.iter().filter(|object| !needed.contains(object)) {
            if let Some(jobs) = self.needed_by.get_mut(object) {
                jobs.remove(key);
                if jobs.is_empty() {
                    self.needed_by.remove(object);
                }
            }
        }
        for object in &needed {
            self.needed_by.entry(object.clone()).or_default().insert(key.clone());
        }
        if !needed.is_empty() {
            self.needs.insert(key.clone(), needed);
        }
    }

    /// Records a change of objects of a kind. Jobs that need one of these are evaluated.
    pub(super) fn observe(
        &mut self,
        kind: &LookupKind,
        change: Change<DynamicObject>,
        ctx: &mut Context,
    ) {
        self.observe_availability(kind, &change, ctx);
        for_each_object(change, |key, object| {
            let needed = needed_object(kind, &key);
            ctx.agenda.jobs(self.needed_by.get(&needed).into_iter().flatten().cloned());
            self.found.observe(needed, object);
        });
    }

    fn observe_availability(
        &mut self,
        kind: &LookupKind,
        change: &Change<DynamicObject>,
        ctx: &mut Context,
    ) {
        let failure = match change {
            Change::Unavailable { reason: Unavailable::NotServed, .. } => {
                Some(LookupFailure::NotServed)
            }
            Change::Unavailable { reason: Unavailable::Forbidden, .. } => {
                Some(LookupFailure::Forbidden)
            }
            Change::Reset { .. } => None,
            Change::Apply(_) | Change::Delete(_) => return,
        };
        if let Some(failure) = failure {
            tracing::warn!(%kind, ?failure, "objects that jobs need cannot be observed");
        }
        self.found.observe_failure(kind, failure);
        // What a job waits for has another reason now.
        let of_kind = self.needed_by.iter().filter(|(needed, _)| needed.kind == *kind);
        ctx.agenda.jobs(of_kind.flat_map(|(_, jobs)| jobs).cloned());
    }

    /// The job with what its pod sets need.
    pub(super) fn complete(&self, key: &JobKey, job: &Arc<JobObject>) -> Arc<JobObject> {
        // Most jobs need nothing and share their object.
        if !self.needs.contains_key(key) {
            return Arc::clone(job);
        }
        Arc::new(job.with_objects(&self.found))
    }
}

fn needed_object(kind: &LookupKind, key: &Key) -> NeededObject {
    NeededObject {
        kind: kind.clone(),
        namespace: key.namespace.as_deref().map(str::to_owned),
        name: key.name.to_string(),
    }
}
