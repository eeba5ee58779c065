//! Jobs of the composition's own cluster, and the objects that they need.
//!
//! A kind costs one watch while it has no job: objects that its jobs need are watched from the first job on. A job waits here until they
//! are listed, so that none is taken for one that does not exist.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use jobs::{JobObject, Kind, Kinds, lookups::LookupKind};
use kube::core::DynamicObject;
use runtime::watch::{Change, Store, Stores, WatchSource};
use tokio::sync::watch;

use crate::{
    input_queues::InputSource,
    job_watch::{job_watch, lookup_watch},
    sources::{Sources, has_some, lists_some, until_some},
};

/// How changes of jobs and of the objects that they need become inputs.
pub(crate) type InputForms<I> =
    (fn(Kind, Change<JobObject>) -> I, fn(LookupKind, Change<DynamicObject>) -> I);

type Ready = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Objects of one kind that jobs need.
#[derive(Clone)]
struct NeededObjects {
    /// Starts their watch.
    wanted: Arc<watch::Sender<bool>>,
    listed: watch::Receiver<bool>,
}

impl NeededObjects {
    /// Waits until they were listed. The watch starts for it: the job that would have started it may be gone before another task sees it.
    async fn until_listed(&mut self) {
        self.wanted.send_replace(true);
        // An error means that the control loop has ended; the next send says so as well.
        let _ = self.listed.wait_for(|listed| *listed).await;
    }
}

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

    /// Objects that jobs need, from the first job on. Without a job nothing is needed.
    fn needed(
        &mut self,
        stores: &mut Stores,
        kind: LookupKind,
        users: Vec<Store<JobObject>>,
        wrap: fn(LookupKind, Change<DynamicObject>) -> I,
    ) -> NeededObjects {
        let watch = lookup_watch(&kind, &stores.source(), stores.metrics());
        let wanted = Arc::new(watch::Sender::new(false));
        let mut firsts: Vec<Ready> =
            users.iter().map(|store| until_some(store, |_| true)).collect();
        firsts.push(is_set(wanted.subscribe()));
        let store = stores.start_after(Box::pin(first_of(firsts)), watch);
        let (listed, is_listed) = watch::channel(false);
        let needed = NeededObjects { wanted: Arc::clone(&wanted), listed: is_listed };
        self.push(Box::new(move |inputs| {
            Box::pin(async move {
                let mut changes = store.subscribe();
                if have_jobs(&users).await {
                    wanted.send_replace(true);
                } else {
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
        needed
    }

    /// Jobs of a kind, of which the first comes after the lists of what they need.
    fn jobs_after(
        &mut self,
        mut awaited: Vec<NeededObjects>,
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
                        for needed in &mut awaited {
                            needed.until_listed().await;
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

/// Ends when the value is set.
fn is_set(mut value: watch::Receiver<bool>) -> Ready {
    Box::pin(async move {
        // Without a sender nothing can be wanted any more.
        if value.wait_for(|is_set| *is_set).await.is_err() {
            std::future::pending::<()>().await;
        }
    })
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
        if lists_some(store, |_| true).await {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
