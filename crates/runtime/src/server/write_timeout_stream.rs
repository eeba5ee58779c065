//! A socket of a client that has to take what is sent.
//!
//! hyper has no timeout for writes: a client that takes nothing of an answer would keep its connection, and with it a place among the
//! connections of the server, for ever. Progress is counted in bytes of the socket, below TLS: a flush of TLS is pending until its
//! whole buffer is written, also while the client takes a part of it each time.

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

/// A socket that fails a write of which the client takes nothing for too long.
pub(super) struct WriteTimeoutStream<S> {
    socket: S,
    stalled: Duration,
    /// When a pending write fails.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeoutStream<S> {
    /// A socket on which a write may wait for `stalled`.
    pub(super) fn new(socket: S, stalled: Duration) -> Self {
        Self { socket, stalled, deadline: None }
    }

    /// The result of a write, or an error if none was taken for too long.
    fn in_time<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let stalled = self.stalled;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(stalled)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.in_time(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        self.in_time(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.socket).poll_shutdown(context);
        self.in_time(ended, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, parts);
        self.in_time(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::Instant,
    };

    use super::*;
    use crate::server::ServerLimits;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_loses_its_connection() {
        let limits = ServerLimits::default();
        let (mut client, server) = duplex(16);
        let mut server = WriteTimeoutStream::new(server, limits.stalled);
        let start = Instant::now();
        // A slow client takes something before the time is over.
        let slow = async {
            for _ in 0..4 {
                sleep(limits.stalled / 2).await;
                client.read_exact(&mut [0; 16]).await.expect("it reads");
            }
        };
        let (written, ()) = tokio::join!(server.write_all(&[0; 80]), slow);
        written.expect("it is taken");
        assert_eq!(start.elapsed(), limits.stalled * 2);
        let error = server.write_all(&[0; 16]).await.expect_err("nothing is taken");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), limits.stalled * 3);
    }
}
