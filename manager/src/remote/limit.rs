//! Bounds on what a worker's API server may answer, so that a broken or hostile one cannot exhaust the manager's memory.
//!
//! An answer may be [`ANSWER`] long. A watch may go on for ever, but none of its lines may be longer than [`LINE`].

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use hyper::body::{Body, Bytes, Frame};
use tower::{BoxError, Layer, Service};

/// The most bytes of an answer: a full page of large objects is far below.
const ANSWER: usize = 64 << 20;

/// The most bytes of a line of a watch: an object that etcd takes is far below.
const LINE: usize = 16 << 20;

/// Puts the bounds around a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit;

/// A service with bounds.
#[derive(Clone, Debug)]
pub(super) struct Limited<S>(S);

/// A body with bounds.
#[derive(Debug)]
pub(super) struct Bounded<B> {
    body: B,
    /// Only what came since the last line break counts.
    by_line: bool,
    most: usize,
    counted: usize,
}

impl<S> Layer<S> for Limit {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited(inner)
    }
}

impl<S, R, B> Service<Request<R>> for Limited<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<Bounded<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let watch = request.uri().query().is_some_and(is_watch);
        let answer = self.0.call(request);
        async move { Ok(answer.await?.map(|body| Bounded::new(body, watch))) }.boxed()
    }
}

fn is_watch(query: &str) -> bool {
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

impl<B> Bounded<B> {
    fn new(body: B, by_line: bool) -> Self {
        Self { body, by_line, most: if by_line { LINE } else { ANSWER }, counted: 0 }
    }

    fn count(&mut self, data: &[u8]) -> Result<(), BoxError> {
        let line_break = data.iter().rposition(|byte| self.by_line && *byte == b'\n');
        self.counted = match line_break {
            Some(at) => data.len() - at - 1,
            None => self.counted.saturating_add(data.len()),
        };
        if self.counted > self.most {
            return Err(format!("the answer is longer than {} bytes", self.most).into());
        }
        Ok(())
    }
}

impl<B> Body for Bounded<B>
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
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let frame = frame.map_err(Into::into).and_then(|frame| {
            frame.data_ref().map_or(Ok(()), |data| self.count(data))?;
            Ok(frame)
        });
        Poll::Ready(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kube::client::{Body, ClientBuilder};
    use tower::service_fn;

    use super::*;

    #[tokio::test]
    async fn a_client_gives_up_on_an_answer_that_is_too_long() {
        let service = service_fn(|request: Request<Body>| async move {
            let n = request.uri().path().trim_start_matches('/').parse().unwrap_or(0);
            Ok::<_, Infallible>(Response::new(Body::from(vec![b'a'; n])))
        });
        let client = ClientBuilder::new(service, "default").with_layer(&Limit).build();
        let ask = |n: usize| Request::get(format!("/{n}")).body(Vec::new()).expect("a request");
        assert_eq!(client.request_text(ask(10)).await.expect("an answer").len(), 10);
        assert!(client.request_text(ask(ANSWER + 1)).await.is_err());
    }

    fn counts(by_line: bool, most: usize, chunks: &[&str]) -> bool {
        let mut body = Bounded { body: (), by_line, most, counted: 0 };
        chunks.iter().all(|chunk| body.count(chunk.as_bytes()).is_ok())
    }

    #[test]
    fn an_answer_may_be_as_long_as_the_bound_and_no_longer() {
        assert!(counts(false, 4, &["ab\n", "c"]));
        assert!(!counts(false, 4, &["ab\n", "cd"]));
    }

    #[test]
    fn a_watch_may_go_on_but_its_lines_may_not() {
        assert!(counts(true, 4, &["abc\n", "abc", "d\nabc", "\n"]));
        assert!(!counts(true, 4, &["abc\nab", "abc"]));
    }

    #[test]
    fn a_watch_is_recognised_by_its_query() {
        assert!(is_watch("labelSelector=a&watch=true&timeoutSeconds=60"));
        assert!(!is_watch("labelSelector=watch%3Dtrue&limit=500"));
    }
}
