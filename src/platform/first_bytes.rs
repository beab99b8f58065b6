//! Closes a connection whose client does not begin to speak.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Length of HTTP/2's connection preface; what stands in it, hyper checks.
const PREFACE_BYTES: usize = 24;

/// Fails reading once `limit` is over and fewer than [`PREFACE_BYTES`] have come.
///
/// hyper waits for the preface without limit, so one byte and then silence would hold a connection for ever. The limit
/// is on the whole preface, not on the pause between two bytes.
pub(super) struct FirstBytes<S> {
    stream: S,
    received: usize,
    /// `None` once the preface is complete.
    limit: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S> FirstBytes<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        FirstBytes {
            stream,
            received: 0,
            limit: Some(Box::pin(tokio::time::sleep(limit))),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if self.limit.is_none() {
            return read;
        }
        self.received += buffer.filled().len() - before;
        if self.received >= PREFACE_BYTES {
            self.limit = None;
            return read;
        }
        if read.is_pending()
            && let Some(limit) = &mut self.limit
            && limit.as_mut().poll(cx).is_ready()
        {
            let silence = Error::new(ErrorKind::TimedOut, "the client did not begin to speak");
            return Poll::Ready(Err(silence));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
