//! The times of the state changes of each Job, from watches.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use crds::{meta::is_true, names::conditions::ADMITTED, v1beta2::Workload};
use e2e::objects::job_is;
use harness::{Cluster, Follow};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::environment::{BenchEnvironment, NAME};

/// The moments of one Job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JobTimestamps {
    /// Just before it was sent.
    pub(crate) submitted: Option<Instant>,
    /// Its Workload on the manager was admitted.
    pub(crate) admitted: Option<Instant>,
    /// Its copy on a worker was not suspended.
    pub(crate) unsuspended: Option<Instant>,
    /// The Job on the manager reports a pod.
    pub(crate) pod_on_manager: Option<Instant>,
    /// Its copy on a worker was complete.
    pub(crate) complete: Option<Instant>,
    /// The Job on the manager was complete.
    pub(crate) complete_on_manager: Option<Instant>,
}

type TimestampsByJob = BTreeMap<String, JobTimestamps>;

/// Watches all clusters for as long as it is kept.
pub(crate) struct Watches {
    book: watch::Sender<TimestampsByJob>,
    _watches: JoinSet<()>,
}

impl Watches {
    pub(crate) fn begin(field: &BenchEnvironment<'_>) -> Self {
        let book = watch::Sender::new(TimestampsByJob::new());
        let mut watches = JoinSet::new();
        let hub = &field.installation.hub;
        watches.spawn(follow_workloads(hub.clone(), book.clone()));
        watches.spawn(follow_jobs(hub.clone(), book.clone(), see_hub));
        for worker in &field.installation.workers {
            watches.spawn(follow_jobs(worker.clone(), book.clone(), see_copy));
        }
        Self { book, _watches: watches }
    }

    /// A Job is being sent.
    pub(crate) fn submitted(&self, name: &str) {
        note(&self.book, name, |moments| &mut moments.submitted);
    }

    /// Waits until `enough` holds for all that was noted.
    pub(crate) async fn until(
        &self,
        what: &str,
        within: Duration,
        enough: impl Fn(&TimestampsByJob) -> bool,
    ) -> Result<TimestampsByJob> {
        let mut book = self.book.subscribe();
        match timeout(within, book.wait_for(enough)).await {
            Ok(Ok(book)) => Ok(book.clone()),
            _ => Err(anyhow!("not within {within:?}: {what}; {:?}", self.book.borrow())),
        }
    }
}

/// Notes a moment, the first time.
fn note(
    book: &watch::Sender<TimestampsByJob>,
    name: &str,
    of: impl Fn(&mut JobTimestamps) -> &mut Option<Instant>,
) {
    let now = Instant::now();
    book.send_modify(|book| {
        of(book.entry(name.to_owned()).or_default()).get_or_insert(now);
    });
}

async fn follow_workloads(cluster: Cluster, book: watch::Sender<TimestampsByJob>) {
    let mut follow = Follow::new(cluster.api::<Workload>(NAME));
    loop {
        for workload in follow.next().await.present() {
            let owner = workload.metadata.owner_references.iter().flatten().next();
            if let Some(owner) = owner.filter(|_| is_true(&workload.status.conditions, ADMITTED)) {
                note(&book, &owner.name, |moments| &mut moments.admitted);
            }
        }
    }
}

async fn follow_jobs(
    cluster: Cluster,
    book: watch::Sender<TimestampsByJob>,
    see: fn(&watch::Sender<TimestampsByJob>, &Job),
) {
    let mut follow = Follow::new(cluster.api::<Job>(NAME));
    loop {
        follow.next().await.present().iter().for_each(|job| see(&book, job));
    }
}

fn see_hub(book: &watch::Sender<TimestampsByJob>, job: &Job) {
    let status = job.status.clone().unwrap_or_default();
    let name = job.name_any();
    if status.active.unwrap_or_default() + status.succeeded.unwrap_or_default() > 0 {
        note(book, &name, |moments| &mut moments.pod_on_manager);
    }
    if job_is(job, "Complete") {
        note(book, &name, |moments| &mut moments.complete_on_manager);
    }
}

fn see_copy(book: &watch::Sender<TimestampsByJob>, job: &Job) {
    let name = job.name_any();
    if job.spec.as_ref().is_some_and(|spec| spec.suspend != Some(true)) {
        note(book, &name, |moments| &mut moments.unsuspended);
    }
    if job_is(job, "Complete") {
        note(book, &name, |moments| &mut moments.complete);
    }
}
