//! Graceful shutdown: open calls end, later calls find the next server.

use super::probe::item;
use super::world::{World, client, simulate, sleep_ms};
use crate::platform::{SHUTDOWN_GRACE, is_unsent};
use std::time::Duration;
use tonic::Code;

#[test]
fn open_calls_finish_and_the_next_call_on_the_same_channel_works() {
    for seed in 0..5 {
        simulate(seed, 0.0, || async {
            let mut world = World::new(None).await;
            let mut client = client(None);
            let mut tail = client.tail(item(10, 100)).await.unwrap().into_inner();
            let mut waiting = client.clone();
            let unary = tokio::spawn(async move { waiting.echo(item(3, 500)).await });
            sleep_ms(100).await;

            let reader = tokio::spawn(async move {
                let mut count = 0;
                while tail.message().await.unwrap().is_some() {
                    count += 1;
                }
                count
            });
            let took = world.stop_and_listen_again().await;
            assert!(took >= Duration::from_millis(500), "{took:?}");
            assert!(took < SHUTDOWN_GRACE, "{took:?}");
            assert_eq!(reader.await.unwrap(), 10);
            assert_eq!(unary.await.unwrap().unwrap().into_inner().number, 3);

            client.echo(item(1, 0)).await.unwrap();
        });
    }
}

#[test]
fn call_that_does_not_end_is_cut_after_the_grace() {
    simulate(1, 0.0, || async {
        let mut world = World::new(None).await;
        let mut client = client(None);
        let mut waiting = client.clone();
        let call = tokio::spawn(async move { waiting.echo(item(0, 60_000)).await });
        sleep_ms(100).await;
        let took = world.stop_and_listen_again().await;
        assert!(took >= SHUTDOWN_GRACE, "{took:?}");
        assert!(
            took < SHUTDOWN_GRACE + Duration::from_millis(50),
            "{took:?}"
        );
        let status = call.await.unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert!(!is_unsent(&status));
        sleep_ms(20).await;
        assert_eq!(world.probe.abandoned(), 1);
        client.echo(item(1, 0)).await.unwrap();
    });
}

#[test]
fn call_made_while_the_server_stops_is_never_lost_without_a_word() {
    // Calls at every moment around the stop: each is answered, or certainly unsent, or said to be perhaps executed; and
    // those answered and those perhaps executed are all the server began.
    let mut retried_or_refused = 0;
    for seed in 0..20 {
        retried_or_refused += simulate(seed, 0.0, move || async move {
            let mut world = World::new(None).await;
            let mut client = client(None);
            client.echo(item(0, 0)).await.unwrap();
            let calls: Vec<_> = (0..60)
                .map(|number| {
                    let mut client = client.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_micros(500 * number)).await;
                        client.echo(item(number, 5)).await
                    })
                })
                .collect();
            sleep_ms(5).await;
            world.stop_and_listen_again().await;
            let (mut answered, mut lost, mut unsent) = (1, 0, 0);
            for call in calls {
                match call.await.unwrap() {
                    Ok(_) => answered += 1,
                    Err(status) if is_unsent(&status) => unsent += 1,
                    Err(_) => lost += 1,
                }
            }
            let started = world.probe.started();
            assert!(started >= answered, "{started} {answered}");
            assert!(started <= answered + lost, "{started} {answered} {lost}");
            client.echo(item(1, 0)).await.unwrap();
            unsent
        });
    }
    assert!(
        retried_or_refused > 0,
        "no call met the stop; the story is vacuous"
    );
}
