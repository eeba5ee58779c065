//! Limits the size of responses of a worker's API server, so that a broken or hostile one cannot exhaust the manager's memory.
//!
//! A response is limited to [`MAX_RESPONSE`]. A watch has no limit in total, but each of its lines is limited to [`MAX_LINE`]. A
//! [`StreamedAnswer`] has no limit: it is passed on as it arrives, and is never in memory as a whole.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use hyper::body::{Body, Bytes, Frame};
use runtime::transport::{StreamedAnswer, is_watch};
use tower::{BoxError, Layer, Service};

/// Maximum size of a response in bytes. A full page of large objects is much smaller.
const MAX_RESPONSE: usize = 64 << 20;

/// Maximum size of a line of a watch in bytes. The limit of objects in etcd is much lower.
const MAX_LINE: usize = 16 << 20;

/// A `tower` layer with the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseLimit;

/// A service with limited responses.
#[derive(Clone, Debug)]
pub(super) struct LimitedService<S>(S);

/// A body with a limit.
#[derive(Debug)]
pub(super) struct LimitedBody<B> {
    body: B,
    /// Count from the last line break instead of from the start.
    by_line: bool,
    most: usize,
    counted: usize,
}

impl<S> Layer<S> for ResponseLimit {
    type Service = LimitedService<S>;

    fn layer(&self, inner: S) -> LimitedService<S> {
        LimitedService(inner)
    }
}

impl<S, R, B> Service<Request<R>> for LimitedService<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<LimitedBody<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let watch = request.uri().query().is_some_and(is_watch);
        let most = match request.extensions().get::<StreamedAnswer>() {
            Some(StreamedAnswer) => usize::MAX,
            None if watch => MAX_LINE,
            None => MAX_RESPONSE,
        };
        let answer = self.0.call(request);
        let limited = move |body| LimitedBody { body, by_line: watch, most, counted: 0 };
        async move { Ok(answer.await?.map(limited)) }.boxed()
    }
}

impl<B> LimitedBody<B> {
    fn count(&mut self, data: &[u8]) -> Result<(), BoxError> {
        let line_break = data.iter().rposition(|byte| self.by_line && *byte == b'\n');
        // Each line of a watch is one object; only the part after the last break is still in
        // memory.
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

impl<B> Body for LimitedBody<B>
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
    async fn a_response_beyond_the_limit_is_an_error() {
        let service = service_fn(|request: Request<Body>| async move {
            let n = request.uri().path().trim_start_matches('/').parse().unwrap_or(0);
            Ok::<_, Infallible>(Response::new(Body::from(vec![b'a'; n])))
        });
        let client = ClientBuilder::new(service, "default").with_layer(&ResponseLimit).build();
        let ask = |n: usize| Request::get(format!("/{n}")).body(Vec::new()).expect("a request");
        assert_eq!(client.request_text(ask(10)).await.expect("an answer").len(), 10);
        assert!(client.request_text(ask(MAX_RESPONSE + 1)).await.is_err());
        let mut streamed = ask(MAX_RESPONSE + 1);
        streamed.extensions_mut().insert(StreamedAnswer);
        let read = client.request_text(streamed).await.expect("an answer");
        assert_eq!(read.len(), MAX_RESPONSE + 1);
    }

    fn counts(by_line: bool, most: usize, chunks: &[&str]) -> bool {
        let mut body = LimitedBody { body: (), by_line, most, counted: 0 };
        chunks.iter().all(|chunk| body.count(chunk.as_bytes()).is_ok())
    }

    #[test]
    fn a_response_may_reach_the_limit_but_not_exceed_it() {
        assert!(counts(false, 4, &["ab\n", "c"]));
        assert!(!counts(false, 4, &["ab\n", "cd"]));
    }

    #[test]
    fn a_watch_is_limited_by_line() {
        assert!(counts(true, 4, &["abc\n", "abc", "d\nabc", "\n"]));
        assert!(!counts(true, 4, &["abc\nab", "abc"]));
    }
}
