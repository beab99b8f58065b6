//! All kinds of calls on a network that works, or nearly.

use super::probe::{ProbeClient, item};
use super::world::{PINGS, World, channel, client, simulate, sleep_ms};
use bytes::Bytes;
use madsim::net::NetSim;
use std::time::Duration;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

#[test]
fn every_kind_of_call_works_and_keeps_order_on_a_lossy_network() {
    for seed in 0..5 {
        simulate(seed, 0.05, || async {
            let _world = World::new(Some(PINGS)).await;
            let mut client = client(None);

            let echoed = loop {
                // A lost packet while connecting is a refused connection.
                match client.echo(item(7, 0)).await {
                    Ok(answer) => break answer.into_inner(),
                    Err(status) => assert!(crate::platform::is_unsent(&status), "{status}"),
                }
            };
            assert_eq!(echoed.number, 7);

            let mut tail = client.tail(item(50, 1)).await.unwrap().into_inner();
            let mut numbers = Vec::new();
            while let Some(item) = tail.message().await.unwrap() {
                numbers.push(item.number);
            }
            assert_eq!(numbers, (0..50).collect::<Vec<_>>());

            let (sender, receiver) = tokio::sync::mpsc::channel(4);
            let answers = client.exchange(ReceiverStream::new(receiver)).await;
            let mut answers = answers.unwrap().into_inner();
            for number in 0..50 {
                sender.send(item(number, 0)).await.unwrap();
                assert_eq!(answers.message().await.unwrap().unwrap().number, number);
            }
            drop(sender);
            assert_eq!(answers.message().await.unwrap(), None, "half-close ends it");
        });
    }
}

#[test]
fn large_bodies_arrive_whole() {
    simulate(1, 0.0, || async {
        let _world = World::new(None).await;
        let data: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut request = item(1, 0);
        request.data = Bytes::from(data);
        let answer = client(None).echo(request.clone()).await.unwrap();
        assert_eq!(answer.into_inner(), request);
    });
}

#[test]
fn clones_share_one_connection_and_calls_on_it_run_at_the_same_time() {
    simulate(2, 0.0, || async {
        let world = World::new(None).await;
        let channel = channel(None);
        let start = Instant::now();
        let calls: Vec<_> = (0..100)
            .map(|number| {
                let mut client = ProbeClient::new(channel.clone());
                tokio::spawn(async move { client.echo(item(number, 1_000)).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert!(start.elapsed() < Duration::from_millis(1_100));
        assert_eq!(world.probe.finished(), 100);
    });
}

#[test]
fn idle_connection_without_pings_sends_nothing() {
    simulate(3, 0.0, || async {
        let _world = World::new(None).await;
        let mut client = client(None);
        client.echo(item(0, 0)).await.unwrap();
        sleep_ms(1_000).await;
        let before = NetSim::current().stat().msg_count;
        sleep_ms(60_000).await;
        assert_eq!(NetSim::current().stat().msg_count, before);
    });
}

#[test]
fn same_seed_gives_the_same_run_and_another_seed_another() {
    let run = |seed| {
        simulate(seed, 0.01, || async {
            let start = Instant::now();
            let _world = World::new(Some(PINGS)).await;
            let mut client = client(Some(PINGS));
            for number in 0..100 {
                // Refusals are part of the run.
                let _ = client.echo(item(number, 3)).await;
            }
            (start.elapsed(), NetSim::current().stat().msg_count)
        })
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
