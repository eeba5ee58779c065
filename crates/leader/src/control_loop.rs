//! The loop around a composition: inputs in, writes out, time read.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    clock::Reading,
    decision_metrics::DecisionMetrics,
    explanations::AdmissionExplanations,
    input_queues::{InputQueues, InputSource, QueuedInput},
};
use cluster::control::{
    ConnectionPlans, Control, Destination, Order, Ticket, measurement::Measurement,
};
use jiff::Timestamp;
use runtime::{
    Stop,
    events::Recorder,
    writer::{WriteOutcome, Writer},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{
        mpsc::{UnboundedSender, unbounded_channel},
        watch,
    },
    time,
};

/// Writers of connected workers, and the connections that are wanted. Cheap to clone.
#[derive(Clone, Default)]
pub struct Workers(Arc<SharedWorkers>);

#[derive(Default)]
struct SharedWorkers {
    writers: parking_lot::RwLock<BTreeMap<Box<str>, Writer>>,
    plans: watch::Sender<Option<Arc<ConnectionPlans>>>,
}

impl Workers {
    /// Sets the writer of a worker; `None` while it is not connected.
    pub fn set(&self, name: &str, writer: Option<Writer>) {
        let mut writers = self.0.writers.write();
        match writer {
            Some(writer) => writers.insert(name.into(), writer),
            None => writers.remove(name),
        };
    }

    /// Sets the connections that are wanted ([`Decisions::connections`]).
    pub fn set_plans(&self, plans: Arc<ConnectionPlans>) {
        // Every decision has plans; the supervisor wakes for those that differ.
        self.0.plans.send_if_modified(|known| {
            let is_same = |known: &Arc<_>| Arc::ptr_eq(known, &plans) || *known == plans;
            let changed = !known.as_ref().is_some_and(is_same);
            *known = Some(plans);
            changed
        });
    }

    /// The connections that are wanted, as they change; `None` before anything is decided.
    #[must_use]
    pub fn plans(&self) -> watch::Receiver<Option<Arc<ConnectionPlans>>> {
        self.0.plans.subscribe()
    }

    fn get(&self, name: &str) -> Option<Writer> {
        self.0.writers.read().get(name).cloned()
    }
}

/// What [`run`] needs beside a composition.
pub struct ControlIo {
    /// Writes to the cluster that the process belongs to.
    pub home: Writer,
    /// Writes to workers.
    pub workers: Workers,
    /// Publishes Events.
    pub recorder: Recorder,
    /// Takes measurements.
    pub measure: Arc<dyn MeasurementSink>,
    /// Takes explanations of pending Workloads.
    pub explanations: AdmissionExplanations,
    /// Counts decisions by their duration.
    pub decisions: DecisionMetrics,
}

/// Takes what control measures.
///
/// Contract: it is called once per decision with measurements, in order, and returns without waiting. Numbers in a measurement
/// replace those of earlier ones; counts are to be added.
///
/// ```ignore
/// impl MeasurementSink for Metrics {
///     fn measure(&self, measurements: Vec<Measurement>, took: Duration) {
///         measurements.into_iter().for_each(|one| self.series.lock().record(one, took));
///     }
/// }
/// ```
pub trait MeasurementSink: Send + Sync + 'static {
    /// Takes measurements of a decision that took so long.
    fn measure(&self, measurements: Vec<Measurement>, took: Duration);
}

/// Drops measurements.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unmeasured;

impl MeasurementSink for Unmeasured {
    fn measure(&self, _: Vec<Measurement>, _: Duration) {}
}

/// An answer on its way back.
type Answered = (Ticket, WriteOutcome);

/// Runs until `stop`, or until every sender of inputs is gone.
pub async fn run<C>(control: C, mut inputs: InputQueues<C::Input>, io: ControlIo, stop: Stop)
where
    C: Control<Input: InputSource>,
{
    // Answers have a channel of their own: they never wait behind inputs that they unblock.
    let (answers, mut answered) = unbounded_channel::<Answered>();
    let mut dumps = signal(SignalKind::user_defined2()).ok();
    let mut turns = ControlTurns { control, io, answers, clock: Reading::now() };
    let mut wake: Option<Timestamp> = None;
    loop {
        let (batch, first) = tokio::select! {
            () = stop.cancelled() => return,
            Some(answer) = answered.recv() => (Vec::new(), Some(answer)),
            batch = inputs.next_batch() => {
                if batch.is_empty() {
                    return;
                }
                (batch, None)
            }
            () = requested(&mut dumps) => {
                turns.dump();
                continue;
            }
            () = until(wake) => (Vec::new(), None),
        };
        let more = std::iter::from_fn(|| answered.try_recv().ok());
        wake = turns.take(batch, first.into_iter().chain(more));
    }
}

/// A composition, and where its decisions go.
struct ControlTurns<C> {
    control: C,
    io: ControlIo,
    answers: UnboundedSender<Answered>,
    /// The clocks at the last turn.
    clock: Reading,
}

impl<C: Control<Input: InputSource>> ControlTurns<C> {
    /// Takes what has come, decides, and sends. Returns when the next turn is due without anything new.
    fn take(
        &mut self,
        batch: Vec<QueuedInput<C::Input>>,
        answers: impl Iterator<Item = Answered>,
    ) -> Option<Timestamp> {
        let now = self.read_clock();
        let observed = Instant::now();
        for QueuedInput { input, since } in batch {
            let waited = observed.saturating_duration_since(since);
            self.io.decisions.observe_input(&input, waited);
            self.control.observe(input, now);
        }
        for (ticket, answer) in answers {
            self.control.answered(&ticket, answer, now);
        }
        let wake = self.decide(now);
        self.io.decisions.observe(observed.elapsed());
        wake
    }

    fn read_clock(&mut self) -> Timestamp {
        let reading = Reading::now();
        if let Some(jump) = reading.jump_since(self.clock) {
            tracing::warn!(%jump, "the clock of this machine jumped");
            self.control.clock_jumped(jump);
        }
        self.clock = reading;
        reading.wall
    }

    fn decide(&mut self, now: Timestamp) -> Option<Timestamp> {
        let began = Instant::now();
        let decisions = self.control.decide(now);
        let io = &self.io;
        if !decisions.measurements.is_empty() {
            io.measure.measure(decisions.measurements, began.elapsed());
        }
        io.explanations.update(decisions.explained);
        // A connection is wanted before anything is sent over it.
        if let Some(plans) = decisions.connections {
            io.workers.set_plans(plans);
        }
        decisions.orders.into_iter().for_each(|order| send(order, io, &self.answers));
        decisions.events.into_iter().for_each(|event| io.recorder.record(event));
        decisions.wake
    }

    fn dump(&self) {
        self.control.dump().lines().for_each(|line| tracing::info!(target: "dump", "{line}"));
    }
}

/// Sends one order in a task of its own, so that a slow worker delays no other write.
fn send(order: Order, io: &ControlIo, answers: &UnboundedSender<Answered>) {
    let writer = match &order.ticket.target.to {
        Destination::Home => Some(io.home.clone()),
        Destination::Worker(name) => io.workers.get(name),
    };
    let answers = answers.clone();
    tokio::spawn(async move {
        let Order { ticket, write } = order;
        let answer = match writer {
            Some(writer) => writer.send(write).await,
            // Control gets an answer to every order. One that was not sent counts as possibly applied, which is safe.
            None => WriteOutcome::Unknown("the worker is not connected".to_owned()),
        };
        // Without a receiver the loop has ended, and no answer counts any more.
        let _ = answers.send((ticket, answer));
    });
}

/// Waits for SIGUSR2.
async fn requested(dumps: &mut Option<Signal>) {
    let request = match dumps {
        Some(dumps) => dumps.recv().await,
        None => None,
    };
    // Without a listener no request ever comes.
    if request.is_none() {
        std::future::pending::<()>().await;
    }
}

async fn until(wake: Option<Timestamp>) {
    match wake {
        Some(at) => {
            // A time that has passed is a pause of zero.
            let pause = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
            time::sleep(pause).await;
        }
        None => std::future::pending().await,
    }
}
