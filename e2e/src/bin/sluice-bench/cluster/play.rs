//! Creates the Workloads of the generator and plays their owners: a Workload ends after its runtime, an evicted one stops at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use crds::meta::is_true;
use crds::names::conditions::FINISHED;
use crds::v1beta2::Workload;
use harness::{Cluster, Follow, secs};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

use super::generator::{GeneratedWorkload, WorkloadStream};
use super::status_writes;

/// Requests of creators and owners in flight. Upstream's runner has five owners, which is what its figures are bound by.
const AT_A_TIME: usize = 64;

/// Without any event for so long, the run has failed.
const SILENCE: Duration = secs(60);

/// What a run gave.
pub(super) struct PlayedRun {
    pub(super) workloads: usize,
    /// From the first creation to the end of the last Workload.
    pub(super) wall: Duration,
    /// From creation to the first admission, by class: the mean.
    pub(super) waits: Vec<(String, Duration)>,
    /// Evictions that ended.
    pub(super) evictions: usize,
}

/// Namespace and name.
type WorkloadName = (String, String);

/// A Workload of the run.
struct PlayedWorkload {
    runtime: Duration,
    created: Option<Instant>,
    admitted: Option<Instant>,
    /// The owner of the present admission; true once the Workload was evicted.
    stopped: Option<Arc<AtomicBool>>,
    /// An owner has written the end: the Workload may be admitted again before that write arrives.
    ended: Arc<AtomicBool>,
    finished: bool,
}

/// Why an event loop is woken besides the watch.
enum OwnerEvent {
    Created(WorkloadName, Instant),
    Failed(anyhow::Error),
}

/// Plays all streams to the end of the last Workload.
pub(super) async fn play(hub: &Cluster, streams: Vec<WorkloadStream>) -> Result<PlayedRun> {
    let mut run = OngoingRun::new(hub, &streams);
    let begun = Instant::now();
    for stream in streams {
        run.tasks.spawn(create(hub.clone(), stream, run.permits.clone(), run.sender.clone()));
    }
    let mut follow = Follow::new(Api::<Workload>::all(hub.client()));
    while !run.is_over() {
        tokio::select! {
            event = run.events.recv() => run.hear(event.context("the owners ended")?)?,
            change = timeout(SILENCE, follow.next()) => {
                let objects = change.map_err(|_| run.stuck())?.present();
                objects.into_iter().for_each(|one| run.see(one));
            }
        }
    }
    Ok(run.result(begun.elapsed()))
}

/// The state of a run.
struct OngoingRun {
    hub: Cluster,
    workloads: HashMap<WorkloadName, PlayedWorkload>,
    finished: usize,
    evictions: usize,
    permits: Arc<Semaphore>,
    tasks: JoinSet<()>,
    sender: mpsc::UnboundedSender<OwnerEvent>,
    events: mpsc::UnboundedReceiver<OwnerEvent>,
}

impl OngoingRun {
    fn new(hub: &Cluster, streams: &[WorkloadStream]) -> Self {
        let all = streams.iter().flat_map(|stream| &stream.workloads).map(|one| {
            let runtime = one.runtime;
            let played = PlayedWorkload {
                runtime,
                created: None,
                admitted: None,
                stopped: None,
                ended: Arc::new(AtomicBool::new(false)),
                finished: false,
            };
            ((one.namespace.clone(), one.object.name_any()), played)
        });
        let (sender, events) = mpsc::unbounded_channel();
        Self {
            hub: hub.clone(),
            workloads: all.collect(),
            finished: 0,
            evictions: 0,
            permits: Arc::new(Semaphore::new(AT_A_TIME)),
            tasks: JoinSet::new(),
            sender,
            events,
        }
    }

    fn is_over(&self) -> bool {
        self.finished == self.workloads.len()
    }

    fn stuck(&self) -> anyhow::Error {
        let (all, finished) = (self.workloads.len(), self.finished);
        anyhow!("no Workload changed for {SILENCE:?}; {finished} of {all} are finished")
    }

    fn hear(&mut self, event: OwnerEvent) -> Result<()> {
        match event {
            OwnerEvent::Created(name, at) => {
                if let Some(one) = self.workloads.get_mut(&name) {
                    one.created = Some(at);
                }
            }
            OwnerEvent::Failed(error) => bail!(error),
        }
        Ok(())
    }

    fn see(&mut self, object: Workload) {
        let now = Instant::now();
        let name = (object.namespace().unwrap_or_default(), object.name_any());
        let Some(one) = self.workloads.get_mut(&name) else {
            return;
        };
        if is_true(&object.status.conditions, FINISHED) {
            if !one.finished {
                one.finished = true;
                self.finished += 1;
            }
        } else if status_writes::is_stopping(&object) {
            if let Some(stopped) = one.stopped.take() {
                stopped.store(true, Ordering::Relaxed);
                self.evictions += 1;
            }
            let release = move |api| async move { status_writes::release(&api, &object).await };
            self.later(Duration::ZERO, release, &name.0);
        } else if status_writes::runs(&object) && one.stopped.is_none() {
            let stopped = Arc::new(AtomicBool::new(false));
            one.stopped = Some(stopped.clone());
            one.admitted.get_or_insert(now);
            let (runtime, of, ended) = (one.runtime, name.1, one.ended.clone());
            let end = move |api| async move {
                // An evicted Workload has another owner after its next admission.
                if stopped.load(Ordering::Relaxed) || ended.swap(true, Ordering::Relaxed) {
                    return Ok(());
                }
                status_writes::finish(&api, &of).await
            };
            self.later(runtime, end, &name.0);
        }
    }

    /// Does the part of an owner after a time.
    fn later<F: Future<Output = Result<()>> + Send + 'static>(
        &mut self,
        after: Duration,
        part: impl FnOnce(Api<Workload>) -> F + Send + 'static,
        namespace: &str,
    ) {
        let api = self.hub.api::<Workload>(namespace);
        let (permits, sender) = (self.permits.clone(), self.sender.clone());
        self.tasks.spawn(async move {
            sleep(after).await;
            let _permit = permits.acquire().await;
            if let Err(error) = part(api).await {
                // The receiver ends with the run.
                let _ = sender.send(OwnerEvent::Failed(error));
            }
        });
    }

    fn result(&self, wall: Duration) -> PlayedRun {
        let mut by_class: HashMap<String, Vec<Duration>> = HashMap::new();
        for ((_, name), one) in &self.workloads {
            let class = name.split('-').next().unwrap_or_default().to_owned();
            if let (Some(created), Some(admitted)) = (one.created, one.admitted) {
                by_class
                    .entry(class)
                    .or_default()
                    .push(admitted.saturating_duration_since(created));
            }
        }
        let mean = |all: Vec<Duration>| {
            let count = u32::try_from(all.len()).unwrap_or(u32::MAX).max(1);
            all.iter().sum::<Duration>() / count
        };
        let mut waits: Vec<_> =
            by_class.into_iter().map(|(class, all)| (class, mean(all))).collect();
        waits.sort();
        PlayedRun { workloads: self.workloads.len(), wall, waits, evictions: self.evictions }
    }
}

async fn create(
    hub: Cluster,
    stream: WorkloadStream,
    permits: Arc<Semaphore>,
    sender: mpsc::UnboundedSender<OwnerEvent>,
) {
    let mut ticks = interval(stream.interval.max(Duration::from_millis(1)));
    // The first tick is at once; upstream's generator pauses before each creation.
    ticks.tick().await;
    for GeneratedWorkload { namespace, object, .. } in stream.workloads {
        ticks.tick().await;
        let _permit = permits.acquire().await;
        let begun = Instant::now();
        let created = hub.api(&namespace).create(&PostParams::default(), &object).await;
        let name = (namespace, object.name_any());
        let event = match created {
            Ok(_) => OwnerEvent::Created(name, begun),
            Err(error) => {
                let error = anyhow!(error).context(format!("creating {}/{}", name.0, name.1));
                OwnerEvent::Failed(error)
            }
        };
        if sender.send(event).is_err() {
            return;
        }
    }
}
