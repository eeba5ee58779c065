//! The stops of a process, one for each half of its tasks.
//!
//! ```text
//! all run --signal--> leading stops --delay, or a second signal--> serving stops
//! ```
//! Components that others call outlive the leader: kube-proxy and the API server send requests to a pod that stops until they
//! have seen that it is not ready. The leader stops at once, so that another replica leads meanwhile.
//!
//! Signals are SIGTERM and SIGINT. SIGUSR2, which asks a leader for a dump of its state, ends no process.

use std::{pin::pin, time::Duration};

use futures::{Stream, StreamExt, stream};
use tokio::signal::unix::{SignalKind, signal};
pub use tokio_util::sync::CancellationToken as Stop;

/// The two stops of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown {
    leading: Stop,
    serving: Stop,
}

impl Shutdown {
    /// Both halves run.
    #[must_use]
    pub fn new() -> Self {
        let serving = Stop::new();
        Self { leading: serving.child_token(), serving }
    }

    /// Stops the tasks that decide and write. Cancelled by the first signal, and together with [`serving`](Self::serving).
    #[must_use]
    pub fn leading(&self) -> &Stop {
        &self.leading
    }

    /// Stops servers, and what they need to answer. Its end is that of the process.
    #[must_use]
    pub fn serving(&self) -> &Stop {
        &self.serving
    }

    /// Runs a task of the half that leads. An end after the stop of that half waits for the other one, because a task that ends
    /// ends the process; an end before it returns at once.
    pub async fn run_leading(&self, task: impl Future<Output = ()>) {
        task.await;
        if self.leading.is_cancelled() {
            self.serving.cancelled().await;
        }
    }

    /// Cancels one stop after the other. `signals` yields their names.
    async fn follow(&self, signals: impl Stream<Item = &'static str>, delay: Duration) {
        let mut signals = pin!(signals);
        let Some(signal) = signals.next().await else { return };
        tracing::info!(signal, ?delay, "stopping");
        self.leading.cancel();
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            Some(signal) = signals.next() => tracing::info!(signal, "the delay of the stop ends"),
        }
        self.serving.cancel();
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

/// Stops that signals cancel, with `delay` between the two. Call it once, within the async runtime.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub fn on_signal(delay: Duration) -> std::io::Result<Shutdown> {
    let shutdown = Shutdown::new();
    let terminate = signal(SignalKind::terminate())?;
    let interrupt = signal(SignalKind::interrupt())?;
    // Its default would end a replica that does not lead, and so does not listen.
    drop(signal(SignalKind::user_defined2())?);
    let signals = stream::unfold((terminate, interrupt), |(mut terminate, mut interrupt)| async {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        Some((name, (terminate, interrupt)))
    });
    let followed = shutdown.clone();
    tokio::spawn(async move { followed.follow(signals, delay).await });
    Ok(shutdown)
}

#[cfg(test)]
mod tests {
    use tokio::{
        task::{JoinSet, yield_now},
        time::Instant,
    };

    use super::*;
    use crate::tasks::supervise;

    const DELAY: Duration = Duration::from_secs(5);

    /// The stops that are cancelled.
    fn stopped(shutdown: &Shutdown) -> (bool, bool) {
        (shutdown.leading.is_cancelled(), shutdown.serving.is_cancelled())
    }

    #[tokio::test(start_paused = true)]
    async fn servers_stop_after_the_delay() {
        let shutdown = Shutdown::new();
        let start = Instant::now();
        let signals = stream::iter(["SIGTERM"]).chain(stream::pending());
        let follow = shutdown.follow(signals, DELAY);
        tokio::join!(follow, async {
            shutdown.leading.cancelled().await;
            assert_eq!((start.elapsed(), stopped(&shutdown)), (Duration::ZERO, (true, false)));
        });
        assert_eq!((start.elapsed(), stopped(&shutdown)), (DELAY, (true, true)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_ends_the_delay() {
        let shutdown = Shutdown::new();
        let start = Instant::now();
        let signals = stream::iter(["SIGTERM", "SIGINT"]).chain(stream::pending());
        shutdown.follow(signals, DELAY).await;
        assert_eq!((start.elapsed(), stopped(&shutdown)), (Duration::ZERO, (true, true)));
    }

    #[tokio::test]
    async fn nothing_stops_without_a_signal() {
        let shutdown = Shutdown::new();
        shutdown.follow(stream::empty(), DELAY).await;
        assert_eq!(stopped(&shutdown), (false, false));
        shutdown.serving.cancel();
        assert_eq!(stopped(&shutdown), (true, true));
    }

    /// The outcome of a process when its leader ends, and whether its server was stopped before the server's own stop.
    async fn process(shutdown: &Shutdown) -> Result<(), crate::tasks::TaskError> {
        let mut tasks = JoinSet::new();
        let leader = shutdown.clone();
        tasks.spawn(async move { leader.run_leading(async {}).await });
        let serving = shutdown.serving.clone();
        tasks.spawn(async move { serving.cancelled().await });
        supervise(tasks, shutdown.serving.clone()).await
    }

    #[tokio::test]
    async fn an_end_of_the_leader_ends_the_process_only_before_its_stop() {
        let shutdown = Shutdown::new();
        assert!(process(&shutdown).await.is_err());

        let shutdown = Shutdown::new();
        shutdown.leading.cancel();
        let mut running = pin!(process(&shutdown));
        for _ in 0..10 {
            assert!(futures::poll!(&mut running).is_pending());
            yield_now().await;
        }
        shutdown.serving.cancel();
        assert!(running.await.is_ok());
    }

    #[tokio::test]
    async fn a_server_that_fails_meanwhile_ends_the_process() {
        let shutdown = Shutdown::new();
        shutdown.leading.cancel();
        let mut tasks = JoinSet::new();
        let leader = shutdown.clone();
        tasks.spawn(async move { leader.run_leading(async {}).await });
        tasks.spawn(async {});
        let outcome = supervise(tasks, shutdown.serving.clone()).await;
        assert_eq!(outcome.expect_err("early").to_string(), "a task ended early");
    }
}
