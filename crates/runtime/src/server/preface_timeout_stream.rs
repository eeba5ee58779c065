//! A stream of a client that has to send something soon.
//!
//! Which version of HTTP a client speaks is read before any timeout of hyper begins. A client that sends nothing would keep its
//! connection, and with it a place among the connections of the server, for ever.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// Bytes that show the version: the preface of HTTP/2. No request of HTTP/1 with a host is shorter.
const PREFACE: usize = 24;

/// A stream that fails if the client does not send the preface of HTTP in time.
pub(super) struct PrefaceTimeoutStream<S> {
    stream: S,
    /// Bytes that are awaited, and until when; `None` once they are here.
    awaited: Option<(usize, Pin<Box<Sleep>>)>,
}

impl<S> PrefaceTimeoutStream<S> {
    /// A stream on which the version of HTTP is to be known within a time.
    pub(super) fn new(stream: S, within: Duration) -> Self {
        Self { stream, awaited: Some((PREFACE, Box::pin(sleep(within)))) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PrefaceTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some((missing, deadline)) = &mut self.awaited else {
            return read;
        };
        if read.is_pending() {
            ready!(deadline.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        *missing = missing.saturating_sub(buffer.filled().len().saturating_sub(before));
        if *missing == 0 {
            self.awaited = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PrefaceTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
