//! Deadlines on both sides, and what a timeout says about execution.

use super::probe::{Probe, item};
use super::world::{Fault, World, client, simulate, sleep_ms};
use crate::platform::{grpc_timeout, is_unsent, with_deadline};
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Code, Request};

#[test]
fn timeout_headers_are_read_as_the_specification_says() {
    let parse = |value: &'static str| {
        let mut headers = http::HeaderMap::new();
        headers.insert("grpc-timeout", http::HeaderValue::from_static(value));
        grpc_timeout(&headers)
    };
    for (value, expected) in [
        ("2H", Some(Duration::from_secs(7_200))),
        ("3M", Some(Duration::from_secs(180))),
        ("4S", Some(Duration::from_secs(4))),
        ("5m", Some(Duration::from_millis(5))),
        ("6u", Some(Duration::from_micros(6))),
        ("99999999n", Some(Duration::from_nanos(99_999_999))),
        ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
        ("0m", Some(Duration::ZERO)),
        ("100000000n", None),
        ("+5m", None),
        ("5", None),
        ("m", None),
        ("", None),
        ("5x", None),
        ("1.5S", None),
    ] {
        assert_eq!(parse(value), expected, "{value:?}");
    }
    assert_eq!(grpc_timeout(&http::HeaderMap::new()), None);
}

#[test]
fn client_ends_a_call_at_its_deadline_and_the_server_drops_the_handler() {
    simulate(1, 0.0, || async {
        let world = World::new(None).await;
        let mut client = client(None);
        client.echo(item(0, 0)).await.unwrap();
        let mut request = Request::new(item(0, 60_000));
        request.set_timeout(Duration::from_millis(700));
        let start = Instant::now();
        let status = client.echo(request).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert!(!is_unsent(&status));
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(700), "{took:?}");
        assert!(took < Duration::from_millis(702), "{took:?}");
        sleep_ms(20).await;
        assert_eq!(world.probe.abandoned(), 1);
    });
}

#[test]
fn server_ends_a_call_at_its_deadline_by_itself() {
    use tower::Service;
    simulate(1, 0.0, || async {
        let probe = Probe::default();
        // Straight into the router: no client is there to enforce anything. Five bytes of frame head and field 2, 60 000.
        let body: &'static [u8] = &[0, 0, 0, 0, 4, 0x10, 0xe0, 0xd4, 0x03];
        let request = http::Request::post("/gatehousetest.Probe/Echo")
            .header("content-type", "application/grpc")
            .header("grpc-timeout", "700m")
            .body(axum::body::Body::from(body))
            .unwrap();
        let start = Instant::now();
        let response = probe.router().call(request).await.unwrap();
        let status = tonic::Status::from_header_map(response.headers()).unwrap();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(700), "{took:?}");
        assert!(took < Duration::from_millis(702), "{took:?}");
        assert_eq!((probe.started(), probe.abandoned()), (1, 1));
    });
}

#[test]
fn deadline_covers_the_whole_of_a_streaming_call() {
    simulate(1, 0.0, || async {
        let world = World::new(None).await;
        let client = client(None);
        let start = Instant::now();
        let read_all = async |request| {
            let mut tail = client.clone().tail(request).await?.into_inner();
            while tail.message().await?.is_some() {}
            Ok(())
        };
        let limit = Duration::from_millis(700);
        let status = with_deadline(limit, item(100, 100), read_all)
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert!(start.elapsed() < Duration::from_millis(750));
        sleep_ms(20).await;
        assert_eq!(world.probe.abandoned(), 1);
    });
}

#[test]
fn deadline_in_a_partition_is_perhaps_executed_and_before_a_connection_unsent() {
    simulate(1, 0.0, || async {
        let world = World::new(None).await;
        let mut client = client(None);
        client.echo(item(0, 0)).await.unwrap();
        world.break_link(Fault::AnswersLost);
        let limit = Duration::from_millis(700);
        let status = with_deadline(limit, item(0, 0), |request| client.echo(request))
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert!(!is_unsent(&status));
        assert_eq!(world.probe.finished(), 2, "it was executed");

        let mut fresh = super::world::client(None);
        let status = with_deadline(Duration::ZERO, item(0, 0), |request| fresh.echo(request))
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert!(is_unsent(&status), "{status}");
        assert_eq!(world.probe.started(), 2);
    });
}
