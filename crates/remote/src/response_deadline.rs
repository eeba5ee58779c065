//! Limits the time of requests to a worker's API server, so that a server which accepts connections and does not answer costs
//! a request and no task.
//!
//! An answer has to begin within [`ANSWER_WITHIN`], and to be complete within another such time. A watch has to begin within its own
//! period and [`WATCH_MARGIN`]: a proxy that buffers sends nothing of it before the first event, or before the server ends it. After
//! that its stream has an idle timeout of its own (`leader::worker_sources`). A [`StreamedAnswer`] has the deadlines of its
//! reader only: the log of a container that writes nothing does not begin. Callers with shorter deadlines keep theirs.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use hyper::body::{Body, Bytes, Frame};
use runtime::transport::{StreamedAnswer, is_watch, watch_period};
use tokio::time::{Sleep, sleep, timeout};
use tower::{BoxError, Layer, Service};

/// How long a server may take to begin an answer, and to complete it. A full page of large objects takes less.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long after its period a watch may take to begin, as for the next event of one that has begun.
const WATCH_MARGIN: Duration = Duration::from_secs(5);

/// A `tower` layer with the deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseDeadline;

/// A service whose responses have a deadline.
#[derive(Clone, Debug)]
pub(super) struct DeadlineService<S>(S);

/// A body that has to be complete in time.
#[derive(Debug)]
pub(super) struct DeadlineBody<B> {
    body: B,
    /// `None` for a watch and a stream.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Layer<S> for ResponseDeadline {
    type Service = DeadlineService<S>;

    fn layer(&self, inner: S) -> DeadlineService<S> {
        DeadlineService(inner)
    }
}

impl<S, R, B> Service<Request<R>> for DeadlineService<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<DeadlineBody<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let watch = request.uri().query().filter(|query| is_watch(query)).map(watch_period);
        let within = watch.map_or(ANSWER_WITHIN, |period| period + WATCH_MARGIN);
        let stream = request.extensions().get::<StreamedAnswer>().is_some();
        let answer = self.0.call(request);
        async move {
            let answer = if stream {
                answer.await
            } else {
                timeout(within, answer).await.map_err(|_| late(within))?
            };
            let deadline = (watch.is_none() && !stream).then(|| Box::pin(sleep(ANSWER_WITHIN)));
            Ok(answer.map_err(Into::into)?.map(|body| DeadlineBody { body, deadline }))
        }
        .boxed()
    }
}

fn late(within: Duration) -> BoxError {
    format!("no answer within {within:?}").into()
}

impl<B> Body for DeadlineBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        // Data that has arrived counts, also after the deadline: a busy process reads late.
        if frame.is_pending()
            && let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll_unpin(context).is_ready()
        {
            return Poll::Ready(Some(Err(late(ANSWER_WITHIN))));
        }
        frame.map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body_util::{BodyExt, StreamBody};
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// An answer that begins and never ends.
    fn endless() -> Response<impl Body<Data = Bytes, Error = Infallible> + Unpin> {
        Response::new(StreamBody::new(stream::pending()))
    }

    async fn answer(uri: &str, silent: bool) -> Result<(), String> {
        answer_to(Request::get(uri).body(()).expect("a request"), silent).await
    }

    async fn answer_to(request: Request<()>, silent: bool) -> Result<(), String> {
        let service = service_fn(move |_: Request<()>| async move {
            if silent {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(endless())
        });
        let answer = ResponseDeadline.layer(service).oneshot(request);
        let answer = answer.await.map_err(|error| error.to_string())?;
        answer.into_body().collect().await.map(|_| ()).map_err(|error| error.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_begins_and_ends_in_time_or_is_an_error() {
        let late = Err("no answer within 30s".to_owned());
        for silent in [true, false] {
            assert_eq!(answer("/apis?limit=500", silent).await, late);
        }
        // A proxy that buffers sends the head with the first event, or when the API server ends the watch.
        for (uri, seconds) in
            [("/apis?watch=true&timeoutSeconds=60", 65), ("/apis?timeoutSeconds=0&watch=1", 295)]
        {
            let late = Err(format!("no answer within {seconds}s"));
            assert_eq!(answer(uri, true).await, late, "{uri}");
        }
        let hour = Duration::from_secs(3600);
        assert!(timeout(hour, answer("/apis?watch=true", false)).await.is_err(), "it is read on");
        let mut stream = Request::new(());
        stream.extensions_mut().insert(StreamedAnswer);
        for silent in [true, false] {
            let read = timeout(hour, answer_to(stream.clone(), silent)).await;
            assert!(read.is_err(), "its reader decides");
        }
    }
}
