//! gRPC deadlines, on the clock of the runtime at hand.

use std::time::Duration;
use tonic::Status;

/// How much longer than its deadline [`with_deadline`] waits, so that the channel, which knows whether the request was
/// sent, speaks first. The header's value is cut to eight digits, so the two ends never quite agree.
const SLACK: Duration = Duration::from_millis(20);

/// Message of every deadline that passed at the server.
const SERVER_DEADLINE: &str = "the call's deadline passed at the server";

/// What a `grpc-timeout` header says: at most eight digits and a unit. `None` without a header or with a bad one, which
/// gRPC's specification lets a server ignore.
pub fn grpc_timeout(headers: &http::HeaderMap) -> Option<Duration> {
    let value = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits.len() > 8 || !all_digits {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3_600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

/// Server side: an axum middleware that drops the handler when the call's `grpc-timeout` is over.
///
/// What the handler had already started elsewhere goes on. A streaming answer is covered up to its headers; after that
/// the client's reset ends it.
pub async fn deadline(
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    let Some(limit) = grpc_timeout(request.headers()) else {
        return next.run(request).await;
    };
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Status::deadline_exceeded(SERVER_DEADLINE).into_http(),
    }
}

/// Client side: makes one call that ends, body and trailers included, when `limit` is over, and tells the server.
///
/// # Errors
/// The call's own, or `DeadlineExceeded`: then it may still be executed, unless [`super::is_unsent`] says otherwise.
pub async fn with_deadline<T, R, F>(
    limit: Duration,
    message: T,
    call: impl FnOnce(tonic::Request<T>) -> F,
) -> Result<R, Status>
where
    F: Future<Output = Result<R, Status>>,
{
    let mut request = tonic::Request::new(message);
    request.set_timeout(limit);
    tokio::time::timeout(limit.saturating_add(SLACK), call(request))
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded("the call's deadline passed")))
}
