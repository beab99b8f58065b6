//! Lets the owner of a client connection break it from outside.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// A stream that fails from the moment its [`Knife`] is used.
///
/// The break is made here, in the bytes, because hyper hides the connection in a task of its own which outlives whatever
/// else is dropped. Calls in flight then end as with any broken connection.
pub(super) struct Severable<S> {
    stream: S,
    knife: Option<oneshot::Receiver<()>>,
    severed: bool,
}

/// Breaks one [`Severable`] stream. Dropped unused, it leaves the stream whole.
pub(super) struct Knife(oneshot::Sender<()>);

impl Knife {
    pub(super) fn sever(self) {
        // The stream may be gone already; then there is nothing to break.
        let _ = self.0.send(());
    }
}

impl<S> Severable<S> {
    pub(super) fn new(stream: S) -> (Self, Knife) {
        let (sender, receiver) = oneshot::channel();
        let severable = Severable {
            stream,
            knife: Some(receiver),
            severed: false,
        };
        (severable, Knife(sender))
    }

    /// Asked before every read and write, since either may be the only one h2 waits for.
    fn check(&mut self, cx: &mut Context<'_>) -> Result<()> {
        if let Some(knife) = &mut self.knife
            && let Poll::Ready(used) = Pin::new(knife).poll(cx)
        {
            self.severed = used.is_ok();
            self.knife = None;
        }
        if self.severed {
            return Err(Error::new(
                ErrorKind::ConnectionAborted,
                "the connection was reset by its owner",
            ));
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Severable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Severable<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
