//! Calls over kill, restart, partition and pause.

use super::probe::{ProbeClient, item};
use super::world::{Fault, NOTICED, PINGS, World, channel, client, simulate, sleep_ms};
use crate::platform::{UNSENT, is_unsent};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

#[test]
fn killed_server_ends_every_call_at_once_and_the_same_channel_serves_after_a_restart() {
    for seed in 0..5 {
        simulate(seed, 0.0, || async {
            let world = World::new(None).await;
            let client = client(None);
            let mut unary_client = client.clone();
            let unary = tokio::spawn(async move { unary_client.echo(item(0, 60_000)).await });
            let mut tail = client.clone().tail(item(100, 1_000)).await.unwrap();
            let (sender, receiver) = tokio::sync::mpsc::channel(4);
            sender.send(item(0, 0)).await.unwrap();
            let requests = ReceiverStream::new(receiver);
            let mut exchange = client.clone().exchange(requests).await.unwrap();
            assert!(tail.get_mut().message().await.unwrap().is_some());
            assert!(exchange.get_mut().message().await.unwrap().is_some());
            sleep_ms(50).await;

            let start = Instant::now();
            world.kill();
            for status in [
                unary.await.unwrap().unwrap_err(),
                tail.get_mut().message().await.unwrap_err(),
                exchange.get_mut().message().await.unwrap_err(),
            ] {
                assert_eq!(status.code(), Code::Unavailable, "{status}");
                assert!(!is_unsent(&status), "it may have been executed: {status}");
            }
            assert!(start.elapsed() < Duration::from_millis(50));

            let refused = client.clone().echo(item(0, 0)).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unavailable);
            assert!(is_unsent(&refused));
            assert!(refused.message().starts_with(UNSENT), "{refused}");

            world.restart().await;
            client.clone().echo(item(1, 0)).await.unwrap();
        });
    }
}

#[test]
fn pings_end_a_silenced_call_in_time_and_the_same_channel_serves_after_the_heal() {
    for fault in Fault::ALL {
        for seed in 0..5 {
            simulate(seed, 0.0, move || async move {
                let world = World::new(None).await;
                let mut client = client(Some(PINGS));
                client.echo(item(0, 0)).await.unwrap();
                let mut waiting = client.clone();
                let call = tokio::spawn(async move { waiting.echo(item(0, 60_000)).await });
                let mut tail = client.tail(item(1_000, 100)).await.unwrap().into_inner();
                sleep_ms(100).await;

                let start = Instant::now();
                world.break_link(fault);
                let status = call.await.unwrap().unwrap_err();
                assert_eq!(status.code(), Code::Unavailable, "{fault:?}: {status}");
                assert!(!is_unsent(&status), "{fault:?}: {status}");
                let broken = loop {
                    if let Err(status) = tail.message().await {
                        break status;
                    }
                };
                assert_eq!(broken.code(), Code::Unavailable, "{fault:?}: {broken}");
                assert!(
                    start.elapsed() < NOTICED,
                    "{fault:?}: {:?}",
                    start.elapsed()
                );

                sleep_ms(20_000).await;
                world.heal(fault);
                let start = Instant::now();
                client.echo(item(1, 0)).await.unwrap();
                assert!(start.elapsed() < Duration::from_millis(100), "{fault:?}");
            });
        }
    }
}

#[test]
fn without_pings_a_silenced_call_hangs_and_a_reset_ends_it() {
    for fault in Fault::ALL {
        simulate(1, 0.0, move || async move {
            let world = World::new(None).await;
            let channel = channel(None);
            let mut client = ProbeClient::new(channel.clone());
            client.echo(item(0, 0)).await.unwrap();
            world.break_link(fault);
            let mut waiting = client.clone();
            let mut call = tokio::spawn(async move { waiting.echo(item(0, 10)).await });
            let waited = timeout(Duration::from_secs(60), &mut call).await;
            assert!(waited.is_err(), "{fault:?}: nothing told the client");

            channel.reset();
            let start = Instant::now();
            let status = call.await.unwrap().unwrap_err();
            assert_eq!(status.code(), Code::Unavailable, "{fault:?}: {status}");
            assert!(!is_unsent(&status), "{fault:?}: {status}");
            assert!(start.elapsed() < Duration::from_millis(1), "{fault:?}");

            world.heal(fault);
            client.echo(item(1, 0)).await.unwrap();
        });
    }
}

#[test]
fn server_pings_drop_the_handlers_of_a_client_that_went_silent() {
    for fault in [Fault::Partition, Fault::RequestsLost, Fault::AnswersLost] {
        simulate(1, 0.0, move || async move {
            let world = World::new(Some(PINGS)).await;
            let mut client = client(None);
            tokio::spawn(async move { client.echo(item(0, 60_000)).await });
            sleep_ms(100).await;
            assert_eq!(world.probe.started(), 1);
            world.break_link(fault);
            tokio::time::sleep(NOTICED).await;
            assert_eq!(world.probe.abandoned(), 1, "{fault:?}");
        });
    }
}

#[test]
fn client_that_gives_up_a_call_ends_its_handler_and_keeps_the_connection() {
    simulate(1, 0.0, || async {
        let world = World::new(None).await;
        let mut client = client(None);
        let mut other = client.clone();
        let other = tokio::spawn(async move { other.echo(item(0, 1_000)).await });
        let given_up = timeout(Duration::from_millis(100), client.echo(item(0, 60_000))).await;
        assert!(given_up.is_err());
        let mut tail = client.tail(item(1_000, 1_000)).await.unwrap().into_inner();
        assert!(tail.message().await.unwrap().is_some());
        drop(tail);
        sleep_ms(20).await;
        assert_eq!(world.probe.abandoned(), 2);
        other.await.unwrap().unwrap();
    });
}

#[test]
fn stream_outlives_the_channel_it_was_opened_on() {
    simulate(1, 0.0, || async {
        let _world = World::new(None).await;
        let mut tail = client(None).tail(item(10, 100)).await.unwrap().into_inner();
        let mut count = 0;
        while tail.message().await.unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 10);
    });
}

#[test]
fn waiting_calls_share_one_failed_dial() {
    simulate(1, 0.0, || async {
        let world = World::new(None).await;
        world.kill();
        let client = client(None);
        let calls: Vec<_> = (0..20)
            .map(|number| {
                let mut client = client.clone();
                tokio::spawn(async move { client.echo(item(number, 0)).await })
            })
            .collect();
        for call in calls {
            assert!(is_unsent(&call.await.unwrap().unwrap_err()));
        }
        world.restart().await;
        client.clone().echo(item(0, 0)).await.unwrap();
    });
}

#[test]
fn address_nobody_can_parse_is_an_error_and_no_panic() {
    simulate(1, 0.0, || async {
        let channel = crate::platform::Channel::new("no such host", Default::default());
        let status = ProbeClient::new(channel)
            .echo(item(0, 0))
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(is_unsent(&status));
    });
}
