//! Bytes between the two ends of an upgraded connection.
//!
//! They are passed on as they arrive, in both directions, and are not read. Both ends are closed when one of them closes, when
//! neither sends anything for a while, when one takes nothing, or when the caller of this module ends it.

use std::{io, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split},
    time::{Instant, sleep_until, timeout},
};

/// Bytes in memory for each direction.
const BUFFER: usize = 16 << 10;

/// The time that closing an end in order may take.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);

/// Limits of an upgraded connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpgradeLimits {
    /// The time for which neither end may send anything.
    pub(super) idle: Duration,
    /// The time for which an end may take nothing.
    pub(super) stalled: Duration,
    /// The time until its end.
    pub(super) within: Duration,
}

/// Passes on bytes until the connection ends, or `end` does. Then both ends are closed.
pub(super) async fn pass_bytes(
    caller: impl AsyncRead + AsyncWrite + Send,
    head: impl AsyncRead + AsyncWrite + Send,
    limits: UpgradeLimits,
    end: impl Future<Output = ()>,
) {
    let ((mut caller_reads, mut caller_writes), (mut head_reads, mut head_writes)) =
        (split(caller), split(head));
    let active = Mutex::new(Instant::now());
    let deadline = Instant::now() + limits.within;
    tokio::select! {
        _ = copy(&mut caller_reads, &mut head_writes, &active, limits.stalled) => {}
        _ = copy(&mut head_reads, &mut caller_writes, &active, limits.stalled) => {}
        () = until_idle(&active, limits.idle) => {}
        () = sleep_until(deadline) => {}
        () = end => {}
    }
    let closed = async { tokio::join!(caller_writes.shutdown(), head_writes.shutdown()) };
    // An end that does not take this is dropped as it is.
    let _ = timeout(CLOSED_WITHIN, closed).await;
}

/// Copies until `from` ends.
async fn copy(
    from: &mut ReadHalf<impl AsyncRead>,
    to: &mut WriteHalf<impl AsyncWrite>,
    active: &Mutex<Instant>,
    stalled: Duration,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(BUFFER);
    while from.read_buf(&mut buffer).await? > 0 {
        *active.lock() = Instant::now();
        let taken = async {
            to.write_all(&buffer).await?;
            to.flush().await
        };
        timeout(stalled, taken).await??;
        buffer.clear();
    }
    Ok(())
}

async fn until_idle(active: &Mutex<Instant>, idle: Duration) {
    loop {
        let due = *active.lock() + idle;
        if due <= Instant::now() {
            return;
        }
        sleep_until(due).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::{
        io::{DuplexStream, duplex},
        sync::oneshot,
        task::JoinHandle,
        time::sleep,
    };

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    const LIMITS: UpgradeLimits = UpgradeLimits {
        idle: MINUTE,
        stalled: Duration::from_secs(30),
        within: MINUTE.saturating_mul(10),
    };

    /// Both ends of a connection, and the task between them.
    fn passing(
        end: impl Future<Output = ()> + Send + 'static,
    ) -> (DuplexStream, DuplexStream, JoinHandle<Duration>) {
        let ((caller, near), (far, head)) = (duplex(64), duplex(64));
        let begin = Instant::now();
        let task = tokio::spawn(async move {
            pass_bytes(near, far, LIMITS, end).await;
            begin.elapsed()
        });
        (caller, head, task)
    }

    async fn exchange(from: &mut DuplexStream, to: &mut DuplexStream, text: &[u8]) {
        from.write_all(text).await.expect("written");
        let mut read = vec![0; text.len()];
        to.read_exact(&mut read).await.expect("read");
        assert_eq!(read, text);
    }

    async fn is_closed(end: &mut DuplexStream) -> bool {
        matches!(end.read(&mut [0; 8]).await, Ok(0))
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_go_both_ways_until_one_end_closes() {
        let (mut caller, mut head, task) = passing(pending());
        exchange(&mut caller, &mut head, b"to the head").await;
        exchange(&mut head, &mut caller, &[b'x'; 48]).await;
        head.write_all(b"last").await.expect("written");
        drop(head);
        let mut rest = Vec::new();
        caller.read_to_end(&mut rest).await.expect("the rest");
        assert_eq!(rest, b"last", "what was sent before the end arrives");
        task.await.expect("an end");

        let (caller, mut head, task) = passing(pending());
        drop(caller);
        assert!(is_closed(&mut head).await);
        task.await.expect("an end");
    }

    #[tokio::test(start_paused = true)]
    async fn traffic_in_one_direction_keeps_the_connection_until_its_deadline() {
        let (mut caller, mut head, task) = passing(pending());
        for _ in 0..5 {
            sleep(MINUTE / 2).await;
            exchange(&mut head, &mut caller, b"line").await;
        }
        let elapsed = task.await.expect("an end");
        assert_eq!(elapsed, MINUTE / 2 * 5 + MINUTE, "idle");
        assert!(is_closed(&mut caller).await && is_closed(&mut head).await);

        let (mut caller, mut head, task) = passing(pending());
        let lines = async {
            while head.write_all(b"l").await.is_ok()
                && matches!(caller.read(&mut [0; 8]).await, Ok(1))
            {
                sleep(MINUTE / 2).await;
            }
        };
        let (elapsed, ()) = tokio::join!(task, lines);
        assert_eq!(elapsed.expect("an end"), LIMITS.within);
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_takes_nothing_loses_the_connection() {
        let (_caller, mut head, task) = passing(pending());
        let written = head.write_all(&[b'x'; 1 << 20]).await;
        assert!(written.is_err());
        // What is left cannot be closed in order either.
        assert!(task.await.expect("an end") <= LIMITS.stalled + CLOSED_WITHIN);
    }

    #[tokio::test(start_paused = true)]
    async fn both_ends_are_closed_from_outside() {
        let (end, ended) = oneshot::channel::<()>();
        let (mut caller, mut head, task) = passing(async { drop(ended.await) });
        exchange(&mut caller, &mut head, b"a").await;
        drop(end);
        assert!(is_closed(&mut caller).await && is_closed(&mut head).await);
        assert!(task.await.expect("an end") < MINUTE);
    }
}
