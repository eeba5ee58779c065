//! Inputs on their way to control: a bounded queue per source, read in turn.
//!
//! ```text
//! hub       --> queue --\
//! worker a  --> queue ----> batch --> control
//! worker b  --> queue --/
//! ```
//! A batch has something of every source that has anything, so that a worker which floods or flaps delays another source by no more
//! than a batch. Half of it is for the own cluster, whatever the number of workers. A full queue blocks the senders of its own source
//! alone. The inputs of one source stay in their order. The queue of a worker that was given up goes with its last input.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::poll_fn,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Instant,
};

use cluster::control::{AgentInput, ManagerInput, WorkerInput};
use tokio::{
    sync::mpsc::{
        Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
    },
    task::unconstrained,
};

/// Inputs of the own cluster that may be queued. A watch that is faster than the decisions is slowed down.
const HUB_BACKLOG: usize = 4096;

/// Inputs of one worker that may be queued.
const WORKER_BACKLOG: usize = 256;

/// Inputs that are observed before the next decision, unless more sources have one.
const MAX_BATCH: usize = 1024;

/// What the own cluster and the workers together each have of a batch, if the others fill it.
const HALF_BATCH: usize = MAX_BATCH / 2;

/// Where an input comes from.
///
/// Contract: the answers depend on the input alone. Inputs of one source are observed in the order in which they were sent.
///
/// ```ignore
/// impl InputSource for AgentInput {
///     fn worker(&self) -> Option<&str> { None }
/// }
/// ```
pub trait InputSource: Send + 'static {
    /// The name of a worker; `None` for the own cluster.
    fn worker(&self) -> Option<&str>;

    /// Whether its worker sends nothing more, unless it comes back.
    fn is_last(&self) -> bool {
        false
    }
}

impl InputSource for ManagerInput {
    fn worker(&self) -> Option<&str> {
        match self {
            Self::Worker(name, _) => Some(name),
            _ => None,
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::Worker(_, WorkerInput::GivenUp))
    }
}

impl InputSource for AgentInput {
    fn worker(&self) -> Option<&str> {
        None
    }
}

/// An input that was not sent: control has ended, or its queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("control has ended, or the queue of the source is full")]
pub struct NotSent;

/// An input that waits, or was taken for a batch.
#[derive(Debug)]
pub(crate) struct QueuedInput<I> {
    pub(crate) input: I,
    /// When its sender had it.
    pub(crate) since: Instant,
}

type Queue<I> = Receiver<QueuedInput<I>>;

/// The queue of a worker, with the name of the worker.
type WorkerQueue<I> = (Box<str>, Queue<I>);

/// Where inputs are sent. Cheap to clone.
pub struct Inputs<I>(Arc<Senders<I>>);

struct Senders<I> {
    hub: Sender<QueuedInput<I>>,
    /// Those of every worker that has sent anything and was not given up.
    workers: parking_lot::RwLock<BTreeMap<Box<str>, Sender<QueuedInput<I>>>>,
    opened: UnboundedSender<WorkerQueue<I>>,
}

impl<I> Clone for Inputs<I> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<I> fmt::Debug for Inputs<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs").finish_non_exhaustive()
    }
}

impl<I: InputSource> Inputs<I> {
    /// Sends an input once the queue of its source has room.
    ///
    /// # Errors
    /// If control has ended.
    pub async fn send(&self, input: I) -> Result<(), NotSent> {
        let queue = self.queue_of(&input);
        let queued = QueuedInput { input, since: Instant::now() };
        queue.send(queued).await.map_err(|_| NotSent)
    }

    /// Sends an input if the queue of its source has room.
    ///
    /// # Errors
    /// If it has none, or control has ended.
    pub fn try_send(&self, input: I) -> Result<(), NotSent> {
        let queue = self.queue_of(&input);
        let queued = QueuedInput { input, since: Instant::now() };
        queue.try_send(queued).map_err(|_| NotSent)
    }

    fn queue_of(&self, input: &I) -> Sender<QueuedInput<I>> {
        let Some(name) = input.worker() else {
            return self.0.hub.clone();
        };
        if let Some(queue) = self.0.workers.read().get(name) {
            return queue.clone();
        }
        let mut workers = self.0.workers.write();
        let open = || {
            let (sender, queue) = channel(WORKER_BACKLOG);
            // Without control the sender finds its queue closed.
            let _ = self.0.opened.send((name.into(), queue));
            sender
        };
        workers.entry(name.into()).or_insert_with(open).clone()
    }
}

/// The queues of all sources.
pub struct InputQueues<I> {
    hub: Queue<I>,
    workers: Vec<WorkerQueue<I>>,
    opened: UnboundedReceiver<WorkerQueue<I>>,
    /// Weak: the last of the senders ends the loop.
    senders: Weak<Senders<I>>,
    /// The worker that the next turn begins with; at most their number.
    first: usize,
    /// Workers that were given up and have a queue.
    given_up: BTreeSet<Box<str>>,
}

impl<I> fmt::Debug for InputQueues<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputQueues").field("workers", &self.workers.len()).finish_non_exhaustive()
    }
}

/// The queues of inputs, with the only queue of the own cluster.
#[must_use]
pub fn inputs<I>() -> (Inputs<I>, InputQueues<I>) {
    let (hub, queue) = channel(HUB_BACKLOG);
    let (opened, queues) = unbounded_channel();
    let senders = Arc::new(Senders { hub, workers: parking_lot::RwLock::default(), opened });
    let queues = InputQueues {
        hub: queue,
        workers: Vec::new(),
        opened: queues,
        senders: Arc::downgrade(&senders),
        first: 0,
        given_up: BTreeSet::new(),
    };
    (Inputs(senders), queues)
}

impl<I: InputSource> InputQueues<I> {
    /// Waits for inputs. An empty batch means that every sender is gone. Nothing is lost if the future is dropped.
    pub(crate) async fn next_batch(&mut self) -> Vec<QueuedInput<I>> {
        // The budget of a task would end a turn after some of the sources.
        unconstrained(poll_fn(|cx| self.poll_batch(cx))).await
    }

    /// The next batch of inputs.
    #[cfg(test)]
    pub(crate) async fn next_inputs(&mut self) -> Vec<I> {
        self.next_batch().await.into_iter().map(|one| one.input).collect()
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Vec<QueuedInput<I>>> {
        let ended = self.poll_opened(cx);
        let n_workers = self.workers.len().max(1);
        let quota = (HALF_BATCH / n_workers).max(1);
        let mut batch = Vec::new();
        let hub_open = self.poll_hub(cx, &mut batch);
        let most = batch.len() + HALF_BATCH.max(n_workers);
        let open = self.poll_turn(cx, (quota, most), &mut batch) || hub_open;
        if batch.is_empty() {
            return if open || !ended { Poll::Pending } else { Poll::Ready(batch) };
        }
        // What some sources leave of the batch is for those with more.
        let mut n_before = 0;
        while n_before < batch.len() && batch.len() < MAX_BATCH {
            n_before = batch.len();
            self.poll_hub(cx, &mut batch);
            self.poll_turn(cx, (quota, MAX_BATCH), &mut batch);
        }
        self.close(&batch);
        Poll::Ready(batch)
    }

    /// Closes the queues of workers after their last input. One with a sender that is still in use is tried again after the next batch.
    fn close(&mut self, batch: &[QueuedInput<I>]) {
        for one in batch {
            let Some(name) = one.input.worker() else { continue };
            if one.input.is_last() {
                self.given_up.insert(name.into());
            } else if !self.given_up.is_empty() {
                // A worker that came back keeps its queue: in another one its inputs could overtake those that wait.
                self.given_up.remove(name);
            }
        }
        let mut given_up = std::mem::take(&mut self.given_up);
        given_up.retain(|name| !self.close_queue(name));
        self.given_up = given_up;
    }

    /// Closes the queue of a worker if it is empty and no sender of it is in use. Returns whether there is none any more.
    fn close_queue(&mut self, name: &str) -> bool {
        let (Some(place), Some(senders)) =
            (self.workers.iter().position(|(worker, _)| **worker == *name), self.senders.upgrade())
        else {
            return true;
        };
        let mut open = senders.workers.write();
        let used = open.get(name).is_some_and(|sender| sender.strong_count() > 1);
        if used || !self.workers[place].1.is_empty() {
            return false;
        }
        open.remove(name);
        self.workers.remove(place);
        // The turn goes on with the same worker.
        if place < self.first {
            self.first -= 1;
        }
        true
    }

    /// Takes inputs of the own cluster, up to half of a batch. Returns whether any of its senders is left.
    fn poll_hub(&mut self, cx: &mut Context<'_>, batch: &mut Vec<QueuedInput<I>>) -> bool {
        let limit = HALF_BATCH.min(MAX_BATCH.saturating_sub(batch.len()));
        // A limit of zero would look like the end of the queue.
        limit == 0 || self.hub.poll_recv_many(cx, batch, limit) != Poll::Ready(0)
    }

    /// Takes up to `quota` inputs of every worker, as long as the batch has no more than `most`. Returns whether any sender is left.
    fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        (quota, most): (usize, usize),
        batch: &mut Vec<QueuedInput<I>>,
    ) -> bool {
        let n_workers = self.workers.len();
        let mut open = false;
        for place in (self.first..n_workers).chain(0..self.first) {
            let limit = quota.min(most.saturating_sub(batch.len()));
            // A limit of zero would look like the end of a queue.
            if limit == 0 {
                return true;
            }
            let taken = self.workers[place].1.poll_recv_many(cx, batch, limit);
            open |= taken != Poll::Ready(0);
        }
        self.first = (self.first + 1) % n_workers.max(1);
        open
    }

    /// Takes queues of new sources. Returns whether no further one can be opened.
    fn poll_opened(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            match self.opened.poll_recv(cx) {
                Poll::Ready(Some(queue)) => self.workers.push(queue),
                Poll::Ready(None) => return true,
                Poll::Pending => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worker, if any, and a number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Numbered(Option<&'static str>, usize);

    impl InputSource for Numbered {
        fn worker(&self) -> Option<&str> {
            self.0
        }

        fn is_last(&self) -> bool {
            self.1 == LAST
        }
    }

    /// The number of the last input of a worker.
    const LAST: usize = usize::MAX;

    /// Sends so many inputs of a source as fast as its queue takes them.
    fn flood(inputs: &Inputs<Numbered>, worker: Option<&'static str>, n_inputs: usize) {
        let inputs = inputs.clone();
        tokio::spawn(async move {
            for number in 0..n_inputs {
                if inputs.send(Numbered(worker, number)).await.is_err() {
                    return;
                }
            }
        });
    }

    #[tokio::test]
    async fn a_source_is_in_the_next_batch_whatever_others_send() {
        let (inputs, mut queues) = inputs();
        flood(&inputs, Some("flooding"), 10_000);
        flood(&inputs, Some("flapping"), usize::MAX);
        let sources = [None, Some("a"), Some("b"), Some("c")];
        for round in 0..50 {
            tokio::task::yield_now().await;
            for source in sources {
                inputs.send(Numbered(source, round)).await.expect("control");
            }
            let batch = queues.next_inputs().await;
            for source in sources {
                assert!(batch.contains(&Numbered(source, round)), "{source:?} in {round}");
            }
            assert!(batch.len() <= MAX_BATCH, "{}", batch.len());
        }
    }

    /// A worker with 10,000 changes and one that comes and goes: each input of another source waits for one batch.
    #[tokio::test]
    async fn an_input_of_a_quiet_source_is_delayed_by_no_batch_of_a_loud_one() {
        let (inputs, mut queues) = inputs();
        flood(&inputs, Some("loud"), 10_000);
        let (mut n_loud, mut batches) = (0, 0);
        let mut delays = BTreeMap::new();
        while n_loud < 10_000 {
            tokio::task::yield_now().await;
            inputs.send(Numbered(Some("quiet"), batches)).await.expect("control");
            inputs.send(Numbered(None, batches)).await.expect("control");
            // One that is given up at every turn, and comes back.
            inputs.send(Numbered(Some("flapping"), LAST)).await.expect("control");
            for Numbered(source, number) in queues.next_inputs().await {
                match source {
                    Some("loud") => n_loud += 1,
                    Some("flapping") => {}
                    _ => *delays.entry((source, batches - number)).or_insert(0) += 1,
                }
            }
            batches += 1;
        }
        let expected = [((None, 0), batches), ((Some("quiet"), 0), batches)];
        assert_eq!(delays.into_iter().collect::<Vec<_>>(), expected, "each in its own batch");
        assert!(batches < 100, "the loud one has what the others leave: {batches}");
        assert_eq!(queues.workers.len(), 2, "the one that was given up has no queue");
    }

    #[tokio::test]
    async fn more_sources_than_a_batch_has_places_are_all_in_it() {
        let (inputs, mut queues) = inputs();
        let names: Vec<&'static str> =
            (0..MAX_BATCH + 500).map(|number| &*format!("worker-{number}").leak()).collect();
        for number in 0..2 {
            names.iter().for_each(|name| {
                inputs.try_send(Numbered(Some(name), number)).expect("there is room");
            });
        }
        for number in 0..2 {
            let batch = queues.next_inputs().await;
            assert_eq!(batch.len(), names.len());
            assert!(batch.iter().all(|one| one.1 == number), "the order of a source");
        }
    }

    #[tokio::test]
    async fn the_inputs_of_a_source_stay_in_their_order() {
        let (inputs, mut queues) = inputs();
        flood(&inputs, None, 10_000);
        flood(&inputs, Some("a"), 10_000);
        drop(inputs);
        let mut next = BTreeMap::new();
        loop {
            let batch = queues.next_inputs().await;
            if batch.is_empty() {
                break;
            }
            for Numbered(source, number) in batch {
                let expected = next.entry(source).or_insert(0);
                assert_eq!(number, *expected, "{source:?}");
                *expected += 1;
            }
        }
        assert_eq!(next.into_values().collect::<Vec<_>>(), [10_000, 10_000], "and none is lost");
    }

    #[tokio::test]
    async fn a_full_queue_blocks_its_own_source_alone() {
        let (inputs, _queues) = inputs();
        let send = |worker, number| inputs.try_send(Numbered(worker, number));
        assert!((0..WORKER_BACKLOG).all(|number| send(Some("a"), number).is_ok()));
        assert_eq!(send(Some("a"), 0), Err(NotSent));
        assert_eq!((send(Some("b"), 0), send(None, 0)), (Ok(()), Ok(())));
    }

    #[tokio::test]
    async fn the_own_cluster_has_half_of_every_batch_whatever_many_workers_send() {
        let (inputs, mut queues) = inputs();
        for number in 0..600 {
            let name: &'static str = &*format!("worker-{number}").leak();
            let send = |number| inputs.try_send(Numbered(Some(name), number));
            assert!((0..WORKER_BACKLOG).all(|number| send(number).is_ok()));
        }
        assert!((0..HUB_BACKLOG).all(|number| inputs.try_send(Numbered(None, number)).is_ok()));
        let (mut n_of_hub, mut n_of_workers) = (0, 0);
        for _ in 0..2 * HUB_BACKLOG / MAX_BATCH {
            let batch = queues.next_inputs().await;
            let n_here = batch.iter().filter(|one| one.0.is_none()).count();
            (n_of_hub, n_of_workers) = (n_of_hub + n_here, n_of_workers + batch.len() - n_here);
        }
        assert_eq!(n_of_hub, HUB_BACKLOG);
        assert!(n_of_workers >= HUB_BACKLOG, "{n_of_workers}");
    }

    #[tokio::test]
    async fn a_worker_that_was_given_up_has_no_queue() {
        let (inputs, mut queues) = inputs();
        let send = |worker, number| {
            inputs.try_send(Numbered(Some(worker), number)).expect("there is room");
        };
        let open = |queues: &InputQueues<Numbered>| {
            let senders: Vec<_> = inputs.0.workers.read().keys().cloned().collect();
            let names: BTreeSet<_> = queues.workers.iter().map(|(name, _)| name.clone()).collect();
            assert!(senders.iter().eq(&names), "{senders:?} {names:?}");
            names.len()
        };
        ["a", "b"].into_iter().for_each(|worker| send(worker, 0));
        send("a", LAST);
        assert_eq!(queues.next_inputs().await.len(), 3);
        assert_eq!(open(&queues), 1);
        // It comes back before its end is observed.
        send("b", LAST);
        send("b", 1);
        assert_eq!(queues.next_inputs().await.len(), 2);
        send("a", 1);
        send("b", 2);
        let batch = queues.next_inputs().await;
        assert!(batch.contains(&Numbered(Some("a"), 1)) && batch.len() == 2, "{batch:?}");
        assert_eq!(open(&queues), 2);
    }

    #[tokio::test]
    async fn workers_that_are_given_up_together_leave_the_turns_of_the_others() {
        for (n_workers, n_turns) in [(2, 0), (2, 1), (3, 1), (3, 2), (3, 3)] {
            let (inputs, mut queues) = inputs();
            let names = &["a", "b", "c"][..n_workers];
            let send = |worker, number| {
                inputs.try_send(Numbered(worker, number)).expect("there is room");
            };
            names.iter().for_each(|worker| send(Some(*worker), 0));
            assert_eq!(queues.next_inputs().await.len(), n_workers);
            for number in 0..n_turns {
                send(None, number);
                assert_eq!(queues.next_inputs().await.len(), 1);
            }
            names.iter().for_each(|worker| send(Some(*worker), LAST));
            assert_eq!(queues.next_inputs().await.len(), n_workers);
            send(Some("d"), 7);
            assert_eq!(queues.next_inputs().await, [Numbered(Some("d"), 7)]);
            assert_eq!(queues.workers.len(), 1);
        }
    }

    #[tokio::test]
    async fn the_queue_of_a_worker_with_a_sender_that_is_not_dropped_yet_goes_with_a_later_batch() {
        let (inputs, mut queues) = inputs();
        inputs.try_send(Numbered(Some("a"), 0)).expect("there is room");
        let held = inputs.queue_of(&Numbered(Some("a"), 0));
        inputs.try_send(Numbered(Some("a"), LAST)).expect("there is room");
        assert_eq!(queues.next_inputs().await.len(), 2);
        assert_eq!(queues.workers.len(), 1);
        drop(held);
        inputs.try_send(Numbered(None, 0)).expect("there is room");
        assert_eq!(queues.next_inputs().await.len(), 1);
        assert_eq!(queues.workers.len(), 0);
    }
}
