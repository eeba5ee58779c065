//! The loop around [`Control`]: inputs in, orders out, time read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use runtime::{
    Stop,
    events::Recorder,
    lease::Leadership,
    writer::{WriteOutcome, Writer},
};
use tokio::{
    sync::{
        mpsc::{Receiver, Sender, channel},
        watch,
    },
    time,
};

use super::{Control, Destination, Input, Order};

/// Inputs that may wait. A watch that is ahead of us waits.
const BACKLOG: usize = 4096;

/// Inputs that are heard before the next decision.
const AT_A_TIME: usize = 1024;

/// Where inputs are sent.
pub type Inputs = Sender<Input>;

/// Names of workers.
pub type Names = BTreeSet<Box<str>>;

/// Workers as they can be written on, and those that need not be any more. Cheap to clone.
#[derive(Clone, Default)]
pub struct Workers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    writers: parking_lot::RwLock<BTreeMap<Box<str>, Writer>>,
    clean: watch::Sender<Names>,
}

impl Workers {
    /// This worker is written through `writer` from now on; not at all without one.
    pub fn set(&self, name: &str, writer: Option<Writer>) {
        let mut writers = self.0.writers.write();
        match writer {
            Some(writer) => writers.insert(name.into(), writer),
            None => writers.remove(name),
        };
    }

    /// These are not registered and have nothing of ours ([`Step::clean`](super::Step::clean)).
    pub fn set_clean(&self, names: Names) {
        self.0.clean.send_if_modified(|known| {
            let news = *known != names;
            *known = names;
            news
        });
    }

    /// Whether it is one of those that were named last.
    #[must_use]
    pub fn is_clean(&self, name: &str) -> bool {
        self.0.clean.borrow().contains(name)
    }

    /// Those that were named last.
    #[must_use]
    pub fn clean(&self) -> watch::Receiver<Names> {
        self.0.clean.subscribe()
    }

    fn get(&self, name: &str) -> Option<Writer> {
        self.0.writers.read().get(name).cloned()
    }
}

/// What [`run`] needs beside a [`Control`].
pub struct Surroundings {
    /// Writes at home.
    pub home: Writer,
    /// Writes on workers.
    pub workers: Workers,
    /// Asked before each write.
    pub leadership: Leadership,
    /// Tells people.
    pub recorder: Recorder,
}

/// A place to send inputs to, and the end that [`run`] reads.
#[must_use]
pub fn inputs() -> (Inputs, Receiver<Input>) {
    channel(BACKLOG)
}

/// Runs until `stop`, or until nobody is left who could send anything.
pub async fn run(
    mut control: Control,
    mut inputs: Receiver<Input>,
    around: Surroundings,
    stop: Stop,
) {
    // Answers have a way of their own: they must never wait for room behind what they free.
    let (answers, mut answered) = tokio::sync::mpsc::unbounded_channel();
    let mut heard = Vec::with_capacity(AT_A_TIME);
    let mut wake: Option<Timestamp> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(input) = answered.recv() => heard.push(input),
            n = inputs.recv_many(&mut heard, AT_A_TIME) => if n == 0 { return },
            () = until(wake) => {}
        }
        while let Ok(input) = answered.try_recv() {
            heard.push(input);
        }
        let now = Timestamp::now();
        for input in heard.drain(..) {
            control.hear(input, now);
        }
        let step = control.decide(now);
        wake = step.wake;
        // Before anything is sent to a worker, it is not said to be clean any more.
        around.workers.set_clean(step.clean);
        for order in step.orders {
            let writer = match &order.ticket.to {
                Destination::Home => Some(around.home.clone()),
                Destination::Worker(name) => around.workers.get(name),
            };
            carry_out(order, writer, around.leadership.clone(), answers.clone());
        }
        for news in step.notices {
            around.recorder.record(news);
        }
    }
}

/// Sends one order in a task of its own, so that no worker keeps another waiting.
fn carry_out(
    order: Order,
    writer: Option<Writer>,
    leadership: Leadership,
    answers: tokio::sync::mpsc::UnboundedSender<Input>,
) {
    tokio::spawn(async move {
        let Order { ticket, write } = order;
        let answer = match writer {
            _ if !leadership.leads() => {
                WriteOutcome::Unknown("this process does not lead".to_owned())
            }
            Some(writer) => writer.send(write).await,
            None => WriteOutcome::Unknown("the worker is not connected".to_owned()),
        };
        let _ = answers.send(Input::WriteOutcome(ticket, answer));
    });
}

async fn until(wake: Option<Timestamp>) {
    match wake {
        Some(at) => {
            let pause = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
            time::sleep(pause).await;
        }
        None => std::future::pending().await,
    }
}
