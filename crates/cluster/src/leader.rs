//! Deciding for a cluster as its leader: the election, the watches, and the one task that decides.
//!
//! Nothing is watched and nothing decided before this process leads. What acts as leader ends before the lease is given
//! back; a lease that is lost ends the process, since what it decided may be decided again by another.

use std::time::Duration;

use kube::Client;
use prometheus_client::registry::Registry;
use runtime::{
    Stop,
    events::{EventMetrics, Reporter, recorder},
    lease::{Elector, Leadership, LeaseName, LeaseTiming, LeaseTimingError},
    requests::RequestMetrics,
    watch::WatchMetrics,
    writer::{WriteMetrics, Writer},
};
use tokio::task::JoinSet;

use crate::control::{
    Control, Settings,
    sources::Sources,
    task::{self, Inputs, Workers},
};

/// Writes at home that are under way at a time.
const WRITES_AT_A_TIME: usize = 64;

/// What metrics call the cluster that the process belongs to.
pub const HOME: &str = "home";

/// How long the API server may take for one write.
const DEADLINE: Duration = Duration::from_secs(15);

/// Events that are under way at a time.
const EVENTS_AT_A_TIME: usize = 4;

/// How leaders are elected.
#[derive(Clone, Debug)]
pub struct Election {
    /// The lease.
    pub lease: LeaseName,
    /// Who this process is.
    pub identity: String,
    /// How long things take.
    pub timing: LeaseTiming,
}

/// Counters of requests, watches and writes.
#[derive(Clone, Debug, Default)]
pub struct ClientMetrics {
    /// Of all requests.
    pub requests: RequestMetrics,
    /// Of watches.
    pub watches: WatchMetrics,
    /// Of writes.
    pub writes: WriteMetrics,
    /// Of events.
    pub events: EventMetrics,
}

/// What a leader needs.
pub struct Leader {
    /// The cluster that it decides for.
    pub client: Client,
    /// What it is told once.
    pub settings: Settings,
    /// How it is elected; without rivals if unset.
    pub election: Option<Election>,
    /// What it counts.
    pub metrics: ClientMetrics,
    /// Who tells people.
    pub reporter: Reporter,
    /// Label selector of what belongs to managers, on a worker.
    pub ours: String,
}

/// What else runs while this process leads.
pub struct LeaderContext {
    /// Takes inputs.
    pub inputs: Inputs,
    /// Takes the writers of workers.
    pub workers: Workers,
    /// Says whether it still leads.
    pub leadership: Leadership,
    /// Ends when leading ends.
    pub stop: Stop,
}

impl ClientMetrics {
    /// Puts them into a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.requests.register(registry);
        self.watches.register(registry);
        self.writes.register(registry);
        self.events.register(registry);
    }
}

impl Leader {
    /// Waits to lead, leads, and gives the lease back when `stop` comes. `runnable` runs what else a leader does.
    ///
    /// # Errors
    /// If the election's timing would allow two leaders.
    pub async fn run<B>(
        self,
        runnable: impl FnOnce(LeaderContext) -> B,
        stop: Stop,
    ) -> Result<(), LeaseTimingError>
    where
        B: Future<Output = ()> + Send + 'static,
    {
        let Some(Election { lease, identity, timing }) = self.election.clone() else {
            self.lead(Leadership::alone(), runnable, stop).await;
            return Ok(());
        };
        let (elector, leadership) = Elector::new(self.client.clone(), lease, identity, timing)?;
        let end_of_election = Stop::new();
        let election = tokio::spawn(elector.run(end_of_election.clone()));
        let mut gained = leadership.clone();
        let leads = stop.run_until_cancelled(gained.gained()).await.is_some();
        if leads {
            let mut lost = leadership.clone();
            let leading = self.lead(leadership, runnable, stop.child_token());
            tokio::select! {
                () = leading => {}
                () = lost.lost() => tracing::error!("this process does not lead any more"),
            }
        }
        end_of_election.cancel();
        let _ = election.await;
        Ok(())
    }

    async fn lead<B>(
        self,
        leadership: Leadership,
        runnable: impl FnOnce(LeaderContext) -> B,
        stop: Stop,
    ) where
        B: Future<Output = ()> + Send + 'static,
    {
        let (inputs, heard) = task::inputs();
        let workers = Workers::default();
        let mut tasks = JoinSet::new();
        let metrics = &self.metrics;
        let role = self.settings.role;
        let mut sources = Sources {
            client: self.client.clone(),
            inputs: inputs.clone(),
            metrics: &metrics.watches,
            stop: stop.clone(),
            tasks: &mut tasks,
        };
        sources.begin(role, &self.ours);
        let writer = |at_a_time| {
            let (client, writes) = (self.client.clone(), metrics.writes.clone());
            Writer::new(client, HOME, at_a_time, DEADLINE, writes)
        };
        let events = writer(EVENTS_AT_A_TIME);
        let (recorder, events) = recorder(events, self.reporter.clone(), metrics.events.clone());
        let surroundings = task::Surroundings {
            home: writer(WRITES_AT_A_TIME),
            workers: workers.clone(),
            leadership: leadership.clone(),
            recorder,
        };
        let leading = LeaderContext { inputs, workers, leadership, stop: stop.clone() };
        tasks.spawn(runnable(leading));
        tasks.spawn(events.run(stop.clone()));
        task::run(Control::new(self.settings), heard, surroundings, stop.clone()).await;
        stop.cancel();
        tasks.shutdown().await;
    }
}
