//! Bodies of answers of other servers, passed on as they arrive, without trust in server or caller.
//!
//! A task of its own reads the answer and sends it on. It ends if the answer is too long or late, if the caller takes nothing for a
//! while, or is gone; then the connection to the server is free, whatever the caller does. An answer that was cut off ends with an error,
//! and never looks complete.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{Stream, StreamExt, stream};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    time::{Instant, timeout, timeout_at},
};

/// Parts of an answer that wait for the caller.
const WAITING: usize = 4;

/// Limits of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerLimits {
    /// The most bytes.
    pub(crate) most: usize,
    /// The time until its end; `None` for one that lasts, such as a watch.
    pub(crate) within: Option<Duration>,
    /// The time for which a caller may take nothing.
    pub(crate) stalled: Duration,
}

/// A part of an answer, or its end.
enum AnswerPart {
    Data(Bytes),
    End,
}

/// Passes on an answer. `held` is dropped at its end.
pub(crate) fn passed_on(body: Body, limits: AnswerLimits, held: impl Send + 'static) -> Body {
    let (parts, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let _held = held;
        let closed = parts.clone();
        tokio::select! {
            () = closed.closed() => {}
            () = pass_on(body, limits, &parts) => {}
        }
    });
    Body::from_stream(received(receiver))
}

async fn pass_on(body: Body, limits: AnswerLimits, parts: &Sender<AnswerPart>) {
    let deadline = limits.within.map(|within| Instant::now() + within);
    let mut data = body.into_data_stream();
    let mut count = 0_usize;
    loop {
        let next = match deadline {
            Some(deadline) => timeout_at(deadline, data.next()).await,
            None => Ok(data.next().await),
        };
        let part = match next {
            Ok(Some(Ok(part))) => AnswerPart::Data(part),
            Ok(None) => AnswerPart::End,
            // Without the end the caller gets an error.
            Ok(Some(Err(_))) | Err(_) => return,
        };
        if let AnswerPart::Data(data) = &part {
            count = count.saturating_add(data.len());
        }
        let ends = matches!(part, AnswerPart::End);
        let sent = timeout(limits.stalled, parts.send(part)).await;
        if ends || count > limits.most || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

fn received(
    receiver: Receiver<AnswerPart>,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send {
    stream::unfold(Some(receiver), |receiver| async move {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(AnswerPart::Data(data)) => Some((Ok(data), Some(receiver))),
            Some(AnswerPart::End) => None,
            None => Some((Err(std::io::Error::other("the answer was cut off")), None)),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;

    const STALLED: Duration = Duration::from_secs(30);

    const LIMITS: AnswerLimits =
        AnswerLimits { most: 8, within: Some(Duration::from_secs(60)), stalled: STALLED };

    const ENDLESS: AnswerLimits = AnswerLimits { most: usize::MAX, within: None, stalled: STALLED };

    async fn read(body: Body, limits: AnswerLimits) -> Option<usize> {
        let body = passed_on(body, limits, ());
        body.collect().await.ok().map(|body| body.to_bytes().len())
    }

    /// An answer in parts of one byte, and its end after a pause.
    fn parts(count: usize, end: Duration) -> Body {
        let part = || Ok::<_, std::io::Error>(Bytes::from_static(b"a"));
        let parts = stream::iter((0..count).map(move |_| part()));
        let end = stream::once(tokio::time::sleep(end)).filter_map(|()| async { None });
        Body::from_stream(parts.chain(end))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_too_long_or_late_does_not_look_complete() {
        let second = Duration::from_secs(1);
        assert_eq!(read(parts(8, second), LIMITS).await, Some(8));
        assert_eq!(read(parts(9, second), LIMITS).await, None);
        assert_eq!(read(Body::empty(), LIMITS).await, Some(0));
        assert_eq!(read(parts(1, second * 61), LIMITS).await, None);
        let watch = AnswerLimits { within: None, ..LIMITS };
        assert_eq!(read(parts(1, second * 61), watch).await, Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_takes_nothing_holds_up_no_head() {
        let held = Arc::new(());
        let body = passed_on(parts(64, Duration::ZERO), ENDLESS, held.clone());
        tokio::time::sleep(STALLED * 2).await;
        assert_eq!(Arc::strong_count(&held), 1, "the task has ended");
        assert!(body.collect().await.is_err(), "the rest is missing");
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_with_the_caller() {
        let held = Arc::new(());
        drop(passed_on(parts(64, Duration::ZERO), ENDLESS, held.clone()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
