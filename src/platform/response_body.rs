//! The body of an answer, whose break is an error the caller can understand.

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::Status;

/// What [`super::Channel`] answers with. A connection that breaks within it is `Unavailable`, as one that breaks before
/// it; tonic by itself would say `Unknown`.
#[derive(Debug)]
pub struct ResponseBody(Incoming);

impl ResponseBody {
    pub(super) fn new(body: Incoming) -> Self {
        ResponseBody(body)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.0)
            .poll_frame(cx)
            .map_err(|error| broken(&error))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// The status of a call whose connection broke after the request was handed to it: it may have been executed.
pub(super) fn broken(error: &hyper::Error) -> Status {
    let mut text = format!("connection lost: {error}");
    if let Some(cause) = std::error::Error::source(error) {
        text = format!("{text}: {cause}");
    }
    Status::unavailable(text)
}
