//! Logins: the race with a password change, its planted bugs, the limit on rounds.

use super::world::{refusal, simulate};
use crate::planted::Bug;
use std::time::Duration;
use tokio::time::sleep;

const AUTH_FAILED: (i32, &str) = (
    3,
    "etcdserver: authentication failed, invalid user ID or password",
);

/// How a login with the old password ended that ran while the password was being changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Race {
    /// No token.
    Refused,
    /// A token that was dead once the change was acknowledged.
    IssuedAndDropped,
    /// A token that outlived the change: what must not be.
    Survived,
}

/// Changes a password while a login with the old one is under way.
fn race(seed: u64, bug: Option<Bug>) -> Race {
    simulate(seed, bug, move |world| async move {
        let root = world.guard().await;
        let login = tokio::spawn({
            let client = world.client(1);
            async move {
                sleep(Duration::from_millis(seed * 5)).await;
                client.login("alice", "alicepw").await
            }
        });
        // Hashing takes as long as comparing: the first logins are done before the change, the last ones begin before it
        // and end after it.
        sleep(Duration::from_millis(60)).await;
        root.change_password("alice", "newpw").await.unwrap();
        let Ok(token) = login.await.unwrap() else {
            return Race::Refused;
        };
        let used = world
            .client(2)
            .with("token", &token)
            .get("foo", false)
            .await;
        match refusal(&used) {
            None => Race::Survived,
            Some(refused) => {
                assert_eq!(refused, (16, "etcdserver: invalid auth token"));
                Race::IssuedAndDropped
            }
        }
    })
}

fn races(bug: Option<Bug>) -> Vec<Race> {
    let mut seen: Vec<Race> = (0..24).map(|seed| race(seed, bug)).collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[test]
fn no_token_of_an_old_password_outlives_its_change() {
    assert_eq!(races(None), [Race::Refused, Race::IssuedAndDropped]);
}

#[test]
fn reading_the_epoch_after_the_comparison_would_let_one_survive() {
    assert!(races(Some(Bug::AuthnChangepwToctouC)).contains(&Race::Survived));
}

#[test]
fn issuing_without_looking_at_the_epoch_would_let_one_survive() {
    assert!(races(Some(Bug::AuthnChangepwToctouA)).contains(&Race::Survived));
}

#[test]
fn a_password_that_becomes_right_during_its_comparison_is_compared_again() {
    for seed in 0..5 {
        simulate(seed, None, |world| async move {
            let root = world.guard().await;
            let change = tokio::spawn(async move { root.change_password("alice", "newpw").await });
            // The new hash is stored 80 to 120 ms after the call; the comparison with the old one begins before that.
            sleep(Duration::from_millis(60)).await;
            world.client(1).login("alice", "newpw").await.unwrap();
            change.await.unwrap().unwrap();
        });
    }
}

#[test]
fn a_wrong_password_and_an_unknown_user_cost_the_same() {
    simulate(1, None, |world| async move {
        world.guard().await;
        let client = world.client(1);
        for (name, password) in [("alice", "wrong"), ("nobody", "wrong")] {
            let start = tokio::time::Instant::now();
            assert_eq!(
                refusal(&client.login(name, password).await),
                Some(AUTH_FAILED)
            );
            assert!(
                start.elapsed() >= Duration::from_millis(80),
                "{name} was not compared"
            );
        }
    });
}

#[test]
fn a_login_gives_up_on_a_user_that_never_rests() {
    simulate(1, None, |world| async move {
        let root = world.guard().await;
        let hash = bcrypt::hash("alicepw", 4).unwrap();
        let restless = tokio::spawn(async move {
            loop {
                root.change_hash("alice", &hash).await.unwrap();
            }
        });
        let login = world.client(1).login("alice", "alicepw").await;
        assert_eq!(refusal(&login), Some((14, "etcdserver: request timed out")));
        restless.abort();
        // Nobody else was disturbed, and now that it rests the user can log in.
        world.client(1).login("root", "rootpw").await.unwrap();
        world.client(1).login("alice", "alicepw").await.unwrap();
    });
}

/// Logs in with a new password at a member that has not heard of it yet, but is about to.
fn login_at_a_laggard(bug: Option<Bug>) -> Result<String, tonic::Status> {
    simulate(3, bug, |world| async move {
        let root = world.guard().await;
        world.isolate(2);
        // The leader may be the one that is cut off.
        while root.change_password("alice", "newpw").await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
        let client = world.client(2);
        let login = tokio::spawn(async move { client.login("alice", "newpw").await });
        sleep(Duration::from_secs(1)).await;
        world.heal(2);
        login.await.unwrap()
    })
}

#[test]
fn a_lagging_member_does_not_refuse_a_new_password() {
    login_at_a_laggard(None).unwrap();
}

#[test]
fn a_login_without_barriers_would_refuse_a_new_password() {
    let login = login_at_a_laggard(Some(Bug::AuthnChangepwToctouB));
    assert_eq!(refusal(&login), Some(AUTH_FAILED));
}
