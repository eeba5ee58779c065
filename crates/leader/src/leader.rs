//! The leader of a cluster: leader election, then events and the control task.
//!
//! Watches run from the start of the process, in [`Sources`]. Nothing is decided before this process leads: times of loss and
//! nomination count from then. Its tasks end before the lease is released. A lost
//! lease ends the process, because another leader may decide about the same objects.

use std::{sync::Arc, time::Duration};

use cluster::control::Control;
use kube::Client;
use prometheus_client::registry::Registry;
use runtime::{
    Stop,
    credential_expiry::CredentialMetrics,
    events::{EventMetrics, Reporter, recorder},
    lease::{Elector, Leadership, LeaseName, LeaseTiming, LeaseTimingError},
    request_metrics::RequestMetrics,
    watch::WatchMetrics,
    writer::{WriteLimits, WriteMetrics, Writer},
};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    control_loop::{self, ControlIo, MeasurementSink, Workers},
    decision_metrics::DecisionMetrics,
    explanations::AdmissionExplanations,
    input_queues::{InputSource, Inputs, inputs},
    sources::Sources,
};

/// Maximum number of writes in flight on the own cluster.
const WRITES_AT_A_TIME: usize = 64;

/// The name of the own cluster in metrics.
pub const HOME: &str = "home";

/// Timeout of a write.
const DEADLINE: Duration = Duration::from_secs(15);

/// Maximum number of event writes in flight.
const EVENTS_AT_A_TIME: usize = 4;

/// How long the last Events may take after the stop: a little longer than their task takes by itself.
const EVENTS_END_WITHIN: Duration = Duration::from_secs(3);

/// The parameters of leader election.
#[derive(Clone, Debug)]
pub struct Election {
    /// The Lease.
    pub lease: LeaseName,
    /// The identity of this process.
    pub identity: String,
    /// Periods and deadlines.
    pub timing: LeaseTiming,
}

/// Metrics of a leader and its clients: decisions, requests, watches, writes and events.
#[derive(Clone, Debug, Default)]
pub struct ClientMetrics {
    /// Decisions.
    pub decisions: DecisionMetrics,
    /// Requests.
    pub requests: RequestMetrics,
    /// Watches.
    pub watches: WatchMetrics,
    /// Writes.
    pub writes: WriteMetrics,
    /// Events.
    pub events: EventMetrics,
    /// Expiry of the credentials in kubeconfigs.
    pub credentials: CredentialMetrics,
}

/// A process that competes for the lease and decides while it leads.
pub struct Leader<C: Control> {
    /// The cluster that it decides for.
    pub client: Client,
    /// What decides.
    pub control: C,
    /// The stores that feed it.
    pub sources: Sources<C::Input>,
    /// The election; without one the process always leads.
    pub election: Option<Election>,
    /// Counters.
    pub metrics: ClientMetrics,
    /// The reporting controller of Events.
    pub reporter: Reporter,
    /// Takes what control measures.
    pub measure: Arc<dyn MeasurementSink>,
    /// Takes explanations of pending Workloads.
    pub explanations: AdmissionExplanations,
}

/// What other tasks of a leader need.
pub struct LeaderContext<I> {
    /// Takes inputs.
    pub inputs: Inputs<I>,
    /// Takes the writers of workers.
    pub workers: Workers,
    /// Whether the process still leads.
    pub leadership: Leadership,
    /// Ends when the process stops leading.
    pub stop: Stop,
}

impl ClientMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.decisions.register(registry);
        self.requests.register(registry);
        self.watches.register(registry);
        self.writes.register(registry);
        self.events.register(registry);
        self.credentials.register(registry);
    }
}

impl<C: Control<Input: InputSource>> Leader<C> {
    /// Waits for leadership, leads, and releases the lease on `stop`. `runnable` starts a further task of the leader.
    ///
    /// # Errors
    /// If the timing of the election would allow two leaders.
    pub async fn run<B>(
        self,
        runnable: impl FnOnce(LeaderContext<C::Input>) -> B,
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
        // Not `stop`: the elector renews the lease until the tasks of the leader have ended.
        let end_of_election = Stop::new();
        let mut election = tokio::spawn(elector.run(end_of_election.clone()));
        let mut gained = leadership.clone();
        let leads = tokio::select! {
            gained = stop.run_until_cancelled(gained.gained()) => gained.is_some(),
            // A lease that was over when it was confirmed is none. Without an elector this process would never lead.
            _ = &mut election => {
                tracing::error!("the leader election ended");
                return Ok(());
            }
        };
        if leads {
            let mut lost = leadership.clone();
            let leading = self.lead(leadership, runnable, stop.child_token());
            // A lost lease drops the tasks at once, because another process may lead by now.
            tokio::select! {
                () = leading => {}
                () = lost.lost() => tracing::error!("this process does not lead any more"),
            }
        }
        // The tasks of the leader have ended: the elector may release the lease now.
        end_of_election.cancel();
        let _ = election.await;
        Ok(())
    }

    async fn lead<B>(
        self,
        leadership: Leadership,
        runnable: impl FnOnce(LeaderContext<C::Input>) -> B,
        stop: Stop,
    ) where
        B: Future<Output = ()> + Send + 'static,
    {
        self.explanations.lead();
        let (inputs, received) = inputs();
        let workers = Workers::default();
        let mut tasks = JoinSet::new();
        let metrics = &self.metrics;
        self.sources.start(&inputs, &mut tasks);
        let writer = |max_in_flight| {
            let (client, writes) = (self.client.clone(), metrics.writes.clone());
            let limits = WriteLimits { max_in_flight, deadline: DEADLINE };
            // A write that waited for its turn is not sent after the lease is lost.
            Writer::new(client, HOME, limits, writes).led_by(leadership.clone())
        };
        // With a limit of their own, so that Events never delay a write of an object.
        let events = writer(EVENTS_AT_A_TIME);
        let (recorder, events) = recorder(events, self.reporter.clone(), metrics.events.clone());
        let home = writer(WRITES_AT_A_TIME);
        let io = ControlIo {
            home,
            workers: workers.clone(),
            recorder,
            measure: self.measure,
            explanations: self.explanations,
            decisions: metrics.decisions.clone(),
        };
        let context = LeaderContext { inputs, workers, leadership, stop: stop.clone() };
        tasks.spawn(runnable(context));
        // A set of its own, so that the last Events are written before the other tasks are dropped.
        let mut reporting = JoinSet::new();
        reporting.spawn(events.run(stop.clone()));
        tokio::select! {
            () = control_loop::run(self.control, received, io, stop.clone()) => {}
            // What it watched is known to no decision any more.
            () = first_panic(&mut tasks) => tracing::error!("a task of the leader has failed"),
        }
        // The loop also ends when every sender of inputs is gone.
        stop.cancel();
        let _ = timeout(EVENTS_END_WITHIN, reporting.join_next()).await;
        tasks.shutdown().await;
    }
}

/// Waits for a task that panics. Some end by themselves, as those of a composition without workers.
async fn first_panic(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if ended.is_err_and(|error| error.is_panic()) {
            return;
        }
    }
    std::future::pending::<()>().await;
}
