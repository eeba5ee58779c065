//! A log as it is passed on, with what ends it.
//!
//! A log that is not followed has to go on arriving. One that is followed may be silent for as long as its container; the pod is then read
//! from time to time, so that a worker that is gone or hangs, and a pod that was deleted, end it. An end that is not that of the log
//! looks like one to no caller: the answer is cut off.

use std::{io, time::Duration};

use axum::body::{Body, Bytes};
use futures::{
    Stream, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use kube::client::Body as ClientBody;
use runtime::Stop;
use tokio::time::timeout;
use visibility::workload_pods::PodsRefusal;

use super::{reads::ClusterReads, search};

/// The time without a byte after which the pod is read again, or a log that is not followed is cut off.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// A log, before or after its beginning.
pub(super) enum LogSource {
    /// It has begun.
    Begun(ClientBody),
    /// It has not begun: the container has written nothing.
    Awaited(BoxFuture<'static, Result<ClientBody, PodsRefusal>>),
}

/// The pod that a log is of.
#[derive(Clone)]
pub(super) struct LogPod {
    pub(super) reads: ClusterReads,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Option<String>,
}

impl LogPod {
    /// A log that begins later, of this pod.
    pub(super) async fn checked(
        self,
        begin: impl Future<Output = Result<ClientBody, PodsRefusal>> + Send,
    ) -> Result<ClientBody, PodsRefusal> {
        let body = begin.await?;
        if self.is_there().await? { Ok(body) } else { Err(self.reads.not_reached()) }
    }

    /// Whether it is still there: the same pod, and not another one of its name.
    pub(super) async fn is_there(&self) -> Result<bool, PodsRefusal> {
        let pod = search::pod(&self.reads, &self.namespace, &self.name).await?;
        Ok(pod.is_some_and(|pod| pod.metadata.uid == self.uid))
    }
}

/// What an answer needs.
pub(super) struct LogStream {
    pub(super) source: LogSource,
    pub(super) pod: LogPod,
    pub(super) follow: bool,
    pub(super) stop: Stop,
}

type LogBytes = BoxStream<'static, io::Result<Bytes>>;

impl LogStream {
    /// The body of the answer.
    pub(super) fn body(self) -> Body {
        let Self { source, pod, follow, stop } = self;
        let bytes: LogBytes = match source {
            LogSource::Begun(body) => bytes_of(body).boxed(),
            LogSource::Awaited(begin) => stream::once(begin)
                .flat_map(|begun| match begun {
                    Ok(body) => bytes_of(body).boxed(),
                    Err(refusal) => {
                        stream::once(async move { Err(io::Error::other(refusal.to_string())) })
                            .boxed()
                    }
                })
                .boxed(),
        };
        let state = Some((bytes, pod, follow, stop));
        Body::from_stream(stream::unfold(state, |state| async move {
            let (mut bytes, pod, follow, stop) = state?;
            let next = tokio::select! {
                () = stop.cancelled() => Some(Err(io::Error::other("the manager ends"))),
                next = next(&mut bytes, &pod, follow) => next,
            };
            match next {
                Some(Ok(part)) => Some((Ok(part), Some((bytes, pod, follow, stop)))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        }))
    }
}

fn bytes_of(body: ClientBody) -> impl Stream<Item = io::Result<Bytes>> + Send {
    Body::new(body).into_data_stream().map(|part| part.map_err(io::Error::other))
}

/// The next part; `None` at the end.
async fn next(bytes: &mut LogBytes, pod: &LogPod, follow: bool) -> Option<io::Result<Bytes>> {
    let cut_off = |why: String| Some(Err(io::Error::other(why)));
    loop {
        if let Ok(next) = timeout(SILENCE, bytes.next()).await {
            return next;
        }
        if !follow {
            return cut_off(format!("nothing has arrived for {SILENCE:?}"));
        }
        match pod.is_there().await {
            Ok(true) => {}
            Ok(false) => return cut_off("the pod is gone".to_owned()),
            Err(refusal) => return cut_off(refusal.to_string()),
        }
    }
}
