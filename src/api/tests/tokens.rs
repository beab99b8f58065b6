//! Tokens on members that lag, and the limit on calls that wait for them.

use super::world::{refusal, simulate};
use crate::api::identity::TOKEN_WAITERS_MAX;
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[test]
fn a_lagging_member_waits_for_a_tokens_login() {
    for seed in 0..5 {
        simulate(seed, None, |world| async move {
            world.guard().await;
            world.isolate(2);
            // The leader may be the one that is cut off.
            let token = loop {
                match world.client(0).login("alice", "alicepw").await {
                    Ok(token) => break token,
                    Err(_) => sleep(Duration::from_millis(100)).await,
                }
            };
            let start = Instant::now();
            let client = world.client(2).with("token", &token);
            let reader = client.clone();
            let read = tokio::spawn(async move { reader.get("foo", true).await });
            let write = tokio::spawn(async move { client.set("foo", "late").await });
            sleep(Duration::from_secs(1)).await;
            world.heal(2);
            read.await.unwrap().unwrap();
            write.await.unwrap().unwrap();
            assert!(
                start.elapsed() >= Duration::from_secs(1),
                "nothing was waited for"
            );
        });
    }
}

#[test]
fn a_member_that_cannot_catch_up_never_calls_a_token_invalid() {
    simulate(1, None, |world| async move {
        world.guard().await;
        world.isolate(2);
        let token = loop {
            match world.client(0).login("alice", "alicepw").await {
                Ok(token) => break token,
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        };
        let client = world.client(2).with("token", &token);
        let read = client.get("foo", true).await;
        assert_eq!(refusal(&read).map(|(code, _)| code), Some(14), "{read:?}");
        let write = client.set("foo", "lost").await;
        assert_eq!(refusal(&write).map(|(code, _)| code), Some(14), "{write:?}");
    });
}

#[test]
fn only_so_many_calls_wait_for_a_login() {
    simulate(1, None, |world| async move {
        world.guard().await;
        world.isolate(2);
        let mut calls = Vec::new();
        // A connection carries a thousand calls at a time.
        for _ in 0..3 {
            let client = world.client(2).with("token", "aaaaaaaaaaaaaaaa.1000000");
            for _ in 0..TOKEN_WAITERS_MAX / 2 {
                let client = client.clone();
                calls.push(tokio::spawn(async move { client.get("foo", true).await }));
            }
        }
        let (mut waited, mut turned_away) = (0, 0);
        for call in calls {
            match refusal(&call.await.unwrap()) {
                Some((2, "etcdserver: too many requests")) => turned_away += 1,
                Some((14, _)) => waited += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(
            (waited, turned_away),
            (TOKEN_WAITERS_MAX, TOKEN_WAITERS_MAX / 2)
        );
    });
}
