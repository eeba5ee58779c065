//! An agent over a world, until nothing moves any more.

use std::{sync::Arc, time::Duration};

use appwrapper::AllowedComponents;
use kube::Client;
use runtime::{
    Stop,
    events::{EventMetrics, Reporter, recorder},
    watch::{ApiResource, Change, WatchChange},
    writer::{WriteLimits, WriteMetrics, Writer},
};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{self, Instant},
};

use super::{
    api::{LoggedChange, listed},
    faults::WriteFault,
    world::SharedWorld,
};
use crate::operators::{
    CHANGES, MOST_PASSES, PhaseMetrics, WRITE_DEADLINE,
    component_kinds::ComponentKinds,
    object_cache::ObjectId,
    operator_loop::{NumberedChange, OperatorLoop},
    parent::ParentKind,
    pass::PassIo,
    resources::watched_children,
    watches::decoder,
};

/// How often the environment moves.
const TICK: Duration = Duration::from_secs(1);
/// How long an agent is down after a crash.
const DOWN: Duration = Duration::from_secs(1);
/// How long the watch lags after a lost answer or behind a stale list: longer than the first delay after it.
const LAG: Duration = Duration::from_secs(4);
/// Without a change for so long, nothing moves any more: longer than what operators wait for if nothing went wrong.
const QUIET: Duration = Duration::from_secs(10);
/// Without a change for so long, nothing moves any more while a write may still arrive late.
const QUIET_IF_LATE: Duration = Duration::from_secs(30);
/// How long that is.
const LATE: Duration = Duration::from_secs(40);
/// The longest time until then.
const LONGEST: Duration = Duration::from_secs(1_200);

/// An agent, and what it has seen.
pub(super) struct SimulatedRun {
    pub(super) world: SharedWorld,
    agent: JoinSet<()>,
    feed: mpsc::Sender<NumberedChange>,
    watches: Vec<(ApiResource, Option<&'static str>)>,
    /// Changes that were sent.
    n_sent: usize,
    /// Until then the watches send nothing.
    lags_until: Instant,
    /// When a killed agent has a successor.
    starts: Option<Instant>,
    has_lagged: bool,
}

impl SimulatedRun {
    pub(super) fn start(world: SharedWorld) -> Self {
        let parents = ParentKind::ALL.into_iter().map(|kind| (kind.resource(), None));
        let children = watched_children().into_iter();
        let children = children.map(|child| (child.resource, Some(child.selector)));
        let mut run = Self {
            world,
            agent: JoinSet::new(),
            feed: mpsc::channel(1).0,
            watches: parents.chain(children).collect(),
            n_sent: 0,
            lags_until: Instant::now(),
            starts: Some(Instant::now()),
            has_lagged: false,
        };
        run.revive();
        run
    }

    /// Lets everything work until nothing moves any more.
    pub(super) async fn until_quiet(&mut self) {
        self.until(|_| false).await;
    }

    /// Lets everything work until the job of a RayJob runs, or until nothing moves any more.
    pub(super) async fn until_at_work(&mut self) {
        self.until(|run| run.world.lock().parent()["status"]["jobStatus"] == "RUNNING").await;
    }

    async fn until(&mut self, is_met: impl Fn(&Self) -> bool) {
        let (mut seen, mut moved) = (self.progress(), Instant::now());
        let end = moved + LONGEST;
        while !is_met(self) && !self.is_quiet_since(moved) {
            assert!(Instant::now() < end, "no rest: {:#?}", self.world.lock().lines);
            self.tick().await;
            let progress = self.progress();
            // Nothing moves while heads hang, and much does afterwards.
            if progress != seen || self.heads_hang() {
                (seen, moved) = (progress, Instant::now());
            }
        }
    }

    fn is_quiet_since(&self, moved: Instant) -> bool {
        let world = self.world.lock();
        let is_late = world.plan.is_some_and(|plan| plan.fault == WriteFault::Late)
            && world.disturbed.is_some_and(|at| at.elapsed() < LATE);
        let quiet = if is_late { QUIET_IF_LATE } else { QUIET };
        moved.elapsed() >= quiet
    }

    fn heads_hang(&self) -> bool {
        let world = self.world.lock();
        world.heads.hangs(world.now())
    }

    /// Suspends an object, or ends that, if its spec is one.
    pub(super) fn suspend_any(&self, suspend: bool) {
        let mut world = self.world.lock();
        let parent = world.parent.clone();
        world.api.change(&parent, |object| {
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.insert("suspend".to_owned(), suspend.into());
            }
        });
    }

    /// Lets everything work for so many seconds.
    pub(super) async fn run_for(&mut self, seconds: u64) {
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            self.tick().await;
        }
    }

    fn progress(&self) -> (usize, usize) {
        let world = self.world.lock();
        (world.api.log.len(), world.lines.len())
    }

    /// Time passes only while no pass can go on, so each move of the environment comes after all that the agent does at once.
    async fn tick(&mut self) {
        time::sleep(TICK).await;
        self.world.lock().move_environment();
        if std::mem::take(&mut self.world.lock().crashed) {
            self.agent.abort_all();
            while self.agent.join_next().await.is_some() {}
            self.starts = Some(Instant::now() + DOWN);
        }
        self.lag();
        self.revive();
        self.send_changes();
    }

    fn lag(&mut self) {
        let world = self.world.lock();
        let lags = world.plan.is_some_and(|plan| {
            matches!(plan.fault, WriteFault::LostAfter | WriteFault::CrashStale)
        });
        if lags && world.tripped.is_some() && !self.has_lagged {
            self.has_lagged = true;
            self.lags_until = Instant::now() + LAG;
        }
    }

    /// Starts an agent, if it is time.
    fn revive(&mut self) {
        if self.starts.is_none_or(|starts| starts > Instant::now()) {
            return;
        }
        self.starts = None;
        let (feed, changes) = mpsc::channel(CHANGES);
        self.feed = feed;
        let io = self.io();
        let mut work = OperatorLoop::new(io, self.watches.len());
        self.agent.spawn(async move { work.run(changes).await });
        let (log, tripped, plan) = {
            let world = self.world.lock();
            (world.api.log.clone(), world.tripped, world.plan)
        };
        let is_stale = plan.is_some_and(|plan| plan.fault == WriteFault::CrashStale);
        self.n_sent = tripped.filter(|_| is_stale).unwrap_or(log.len());
        let objects = listed(&log, self.n_sent);
        for (number, (resource, selector)) in self.watches.iter().enumerate() {
            let shown = objects.values().filter(|it| is_watched(it, resource, *selector));
            let objects = shown.filter_map(|it| decoded(resource, it)).collect();
            self.send(number, WatchChange::Reset { objects, removed: Vec::new() });
        }
    }

    fn io(&mut self) -> Arc<PassIo> {
        let client = self.world.client();
        let limits = |max_in_flight| WriteLimits { max_in_flight, deadline: WRITE_DEADLINE };
        let writer = |client: &Client, most| {
            Writer::new(client.clone(), "home", limits(most), WriteMetrics::default())
        };
        let reporter = Reporter { component: "sluice-agent".into(), instance: "agent".into() };
        let (recorder, events) = recorder(writer(&client, 1), reporter, EventMetrics::default());
        self.agent.spawn(events.run(Stop::new()));
        let clock = self.world.clone();
        let (jobs, settings) = {
            let world = self.world.lock();
            (world.jobs.clone(), world.settings.clone())
        };
        Arc::new(PassIo {
            writer: writer(&client, MOST_PASSES),
            client,
            recorder,
            heads: Box::new(self.world.clone()),
            kinds: ComponentKinds::new(AllowedComponents::with_jobs(jobs)),
            settings,
            phases: PhaseMetrics::default(),
            clock: Box::new(move || clock.lock().now()),
        })
    }

    fn send_changes(&mut self) {
        if Instant::now() < self.lags_until || self.starts.is_some() {
            return;
        }
        let changes: Vec<LoggedChange> =
            self.world.lock().api.log.iter().skip(self.n_sent).cloned().collect();
        self.n_sent += changes.len();
        for (id, object) in changes {
            for (number, (resource, selector)) in self.watches.iter().enumerate() {
                if let Some(change) = watched_change(&id, object.as_deref(), resource, *selector) {
                    self.send(number, change);
                }
            }
        }
    }

    fn send(&self, watch: usize, change: Change<Value>) {
        let kind = self.watches[watch].0.kind.clone();
        // An agent that panics fails the test here.
        self.feed.try_send(NumberedChange { watch, kind, change }).expect("a loop that runs");
    }
}

fn watched_change(
    id: &ObjectId,
    object: Option<&Value>,
    resource: &ApiResource,
    selector: Option<&str>,
) -> Option<Change<Value>> {
    if id.kind != resource.kind {
        return None;
    }
    match object {
        None => Some(WatchChange::Delete(id.key.clone())),
        Some(object) if is_watched(object, resource, selector) => {
            decoded(resource, object).map(WatchChange::Apply)
        }
        Some(_) => None,
    }
}

/// Selectors of operators name a label that must be there.
fn is_watched(object: &Value, resource: &ApiResource, selector: Option<&str>) -> bool {
    let labels = &object["metadata"]["labels"];
    object["kind"] == resource.kind.as_str()
        && selector.is_none_or(|label| !labels[label].is_null())
}

fn decoded(resource: &ApiResource, object: &Value) -> Option<Arc<Value>> {
    decoder(resource.clone())(object.clone()).ok().map(Arc::new)
}
