//! Jobs of the composition's own cluster, and the objects that they need.
//!
//! A kind costs one watch while it has no job: objects that its jobs need are watched from the first job on. A job waits here until they
//! are listed, so that none is taken for one that does not exist.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use jobs::{JobObject, Kind, Kinds, lookups::LookupKind};
use kube::core::DynamicObject;
use runtime::watch::{Change, Store, Stores, WatchSource};
use tokio::sync::watch;

use crate::{
    input_queues::InputSource,
    job_watch::{job_watch, lookup_watch},
    sources::{Sources, has_some},
};

/// How changes of jobs and of the objects that they need become inputs.
pub(crate) type InputForms<I> =
    (fn(Kind, Change<JobObject>) -> I, fn(LookupKind, Change<DynamicObject>) -> I);

type Ready = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<I: InputSource> Sources<I> {
    /// A store for each kind of job, and for each kind of objects that jobs need.
    pub(crate) fn jobs(
        &mut self,
        stores: &mut Stores,
        kinds: &Kinds,
        source: &WatchSource,
        (of_job, of_needed): InputForms<I>,
    ) {
        let start = |kind: &Kind| {
            let watch = job_watch("", kind, source, stores.metrics());
            (kind.clone(), stores.start(watch))
        };
        let jobs: Vec<(Kind, Store<JobObject>)> = kinds.iter().map(start).collect();
        let mut listed = BTreeMap::new();
        for needed in kinds.looked_up() {
            let needs =
                |kind: &Kind| kind.lookups().iter().any(|rule| rule.object_kind() == needed);
            let users = jobs.iter().filter(|(kind, _)| needs(kind));
            let users: Vec<Store<JobObject>> = users.map(|(_, store)| store.clone()).collect();
            listed.insert(needed.clone(), self.needed(stores, needed.clone(), users, of_needed));
        }
        for (kind, store) in jobs {
            let awaited = kind.lookups().iter().map(|rule| rule.object_kind());
            let awaited = awaited.filter_map(|needed| listed.get(&needed).cloned()).collect();
            self.jobs_after(awaited, kind, store, of_job);
        }
    }

    /// Objects that jobs need, from the first job on. Without a job nothing is needed. Returns whether they were listed.
    fn needed(
        &mut self,
        stores: &mut Stores,
        kind: LookupKind,
        users: Vec<Store<JobObject>>,
        wrap: fn(LookupKind, Change<DynamicObject>) -> I,
    ) -> watch::Receiver<bool> {
        let watch = lookup_watch(&kind, &stores.source(), stores.metrics());
        let first = first_of(users.iter().map(first_job).collect());
        let store = stores.start_after(Box::pin(first), watch);
        let (listed, is_listed) = watch::channel(false);
        self.push(Box::new(move |inputs| {
            Box::pin(async move {
                let mut changes = store.subscribe();
                if !have_jobs(&users).await {
                    let nothing = Change::Reset { objects: Vec::new(), removed: Vec::new() };
                    // An error means that the control loop has ended; the next send says so as well.
                    let _ = inputs.send(wrap(kind.clone(), nothing)).await;
                }
                loop {
                    let change = changes.next().await;
                    let is_list = change.is_list();
                    if inputs.send(wrap(kind.clone(), change)).await.is_err() {
                        return;
                    }
                    if is_list {
                        listed.send_replace(true);
                    }
                }
            })
        }));
        is_listed
    }

    /// Jobs of a kind, of which the first comes after the lists of what they need.
    fn jobs_after(
        &mut self,
        mut awaited: Vec<watch::Receiver<bool>>,
        kind: Kind,
        store: Store<JobObject>,
        wrap: fn(Kind, Change<JobObject>) -> I,
    ) {
        self.push(Box::new(move |inputs| {
            Box::pin(async move {
                let mut changes = store.subscribe();
                loop {
                    let change = changes.next().await;
                    if has_some(&change, |_| true) {
                        for listed in &mut awaited {
                            // An error means that the control loop has ended; the send says so as well.
                            let _ = listed.wait_for(|listed| *listed).await;
                        }
                    }
                    if inputs.send(wrap(kind.clone(), change)).await.is_err() {
                        return;
                    }
                }
            })
        }));
    }
}

/// Ends when the store has a job.
fn first_job(store: &Store<JobObject>) -> Ready {
    let mut changes = store.subscribe();
    Box::pin(async move { while !has_some(&changes.next().await, |_| true) {} })
}

/// Ends with the first of these.
async fn first_of(mut all: Vec<Ready>) {
    let ready = |context: &mut Context<'_>| {
        let is_ready = all.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    };
    poll_fn(ready).await;
}

/// Whether any of these stores has a job in its first list.
async fn have_jobs(stores: &[Store<JobObject>]) -> bool {
    for store in stores {
        let mut changes = store.subscribe();
        loop {
            let change = changes.next().await;
            if has_some(&change, |_| true) {
                return true;
            }
            if change.is_list() {
                break;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests;
