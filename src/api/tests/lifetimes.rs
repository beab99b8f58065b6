//! Tokens' lifetimes as clients see them: any call on any member counts as a use.

use super::world::{World, refusal, simulate_with};
use crate::planted::Bug;
use std::time::Duration;
use tokio::time::sleep;

const TTL: Duration = Duration::from_secs(2);

/// A half more than a token may be idle.
const TOO_LONG: Duration = Duration::from_millis(3_200);

const INVALID: Option<(i32, &str)> = Some((16, "etcdserver: invalid auth token"));

/// Uses one token for five lifetimes, in turn on all members, and leaves another one idle; says whether that still works.
async fn idle_token_works(world: World) -> bool {
    world.guard().await;
    let used = world.client(0).login("alice", "alicepw").await.unwrap();
    let idle = world.client(1).login("alice", "alicepw").await.unwrap();
    for round in 0..6 {
        sleep(TTL * 4 / 5).await;
        let client = world.client(round % 3).with("token", &used);
        client.get("foo", round % 2 == 0).await.unwrap();
    }
    sleep(TOO_LONG - TTL * 4 / 5).await;
    let answer = world.client(2).with("token", &idle).get("foo", false).await;
    if answer.is_err() {
        assert_eq!(refusal(&answer), INVALID);
    }
    answer.is_ok()
}

#[test]
fn a_call_on_any_member_keeps_a_token_alive_and_idleness_ends_it() {
    for seed in 0..4 {
        assert!(!simulate_with(TTL, seed, None, idle_token_works));
    }
}

#[test]
fn planted_nobody_proposes_that_a_token_expires() {
    let bug = Some(Bug::TokenLifetimeB);
    assert!(simulate_with(TTL, 0, bug, idle_token_works));
}

#[test]
fn a_refused_call_is_a_use_too() {
    simulate_with(TTL, 1, None, |world| async move {
        let root = world.guard().await;
        let token = world.client(0).login("alice", "alicepw").await.unwrap();
        let alice = world.client(1).with("token", &token);
        // Nobody keeps root's token alive meanwhile.
        for _ in 0..4 {
            sleep(TTL * 4 / 5).await;
            let refused = alice.change_hash("nobody", "hash").await;
            assert_eq!(
                refusal(&refused),
                Some((9, "etcdserver: user name not found"))
            );
        }
        assert_eq!(refusal(&root.get("foo", false).await), INVALID);
        alice.get("foo", false).await.unwrap();
    });
}
