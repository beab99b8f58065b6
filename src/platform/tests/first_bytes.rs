//! Connections that do not begin to speak HTTP/2.

use super::probe::item;
use super::world::{ADDRESS, World, client, simulate, sleep_ms};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Connects, sends one row of bytes after each pause of a second, and returns how long the server kept the connection.
async fn closed_after(rows: &[&[u8]]) -> Duration {
    let start = Instant::now();
    let mut stream = TcpStream::connect(ADDRESS).await.unwrap();
    for row in rows {
        stream.write_all(row).await.unwrap();
        stream.flush().await.unwrap();
        sleep_ms(1_000).await;
    }
    let mut answer = Vec::new();
    // Reset or end of stream: either way it is closed.
    let _ = stream.read_to_end(&mut answer).await;
    start.elapsed()
}

#[test]
fn silence_and_trickle_are_closed_after_five_seconds_and_nonsense_at_once() {
    simulate(1, 0.0, || async {
        let _world = World::new(None).await;
        let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let (seconds, slack) = (Duration::from_secs, Duration::from_millis(50));
        for (rows, expected) in [
            (vec![], seconds(5)),
            (vec![&b"P"[..]], seconds(5)),
            (vec![&preface[..23]], seconds(5)),
            (vec![&b"P"[..], b"R", b"I", b" "], seconds(5)),
            (
                vec![&b"GET / HTTP/1.1\r\nhost: gatehouse\r\n\r\n"[..]],
                seconds(1),
            ),
        ] {
            let took = closed_after(&rows).await;
            assert!(took >= expected, "{rows:?}: {took:?}");
            assert!(took < expected + slack, "{rows:?}: {took:?}");
        }
    });
}

#[test]
fn connection_that_has_spoken_may_be_silent() {
    simulate(1, 0.0, || async {
        let world = World::new(None).await;
        let mut client = client(None);
        client.echo(item(0, 0)).await.unwrap();
        let start = Instant::now();
        client.echo(item(0, 60_000)).await.unwrap();
        assert!(start.elapsed() >= Duration::from_secs(60));
        assert_eq!(world.probe.finished(), 2);
    });
}
