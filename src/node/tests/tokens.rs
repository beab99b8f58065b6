//! Tokens in a cluster: who uses one keeps it, and who does not loses it in time, whoever leads.

use super::cluster::{Cluster, SNAPSHOT_COUNT, simulate};
use crate::node::{Node, Outcome};
use crate::state::{
    Authenticate, Caller, Command, Identity, Op, PasswordHash, ROOT, Response, TokenKey, TokenKind,
    TokenLimits, UserAdd,
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const TTL: Duration = Duration::from_secs(2);

/// From tick to log to every member, once for the use and once for the expiry.
const ON_ITS_WAY: Duration = Duration::from_millis(400);

/// Proposes as the cluster itself, which may do everything.
async fn propose(node: &Node, op: Op) -> Outcome {
    let caller = Caller {
        identity: Identity::Internal,
        auth_revision: 0,
    };
    let command = Command {
        request_id: node.next_request_id(),
        caller,
        op,
    };
    let deadline = Instant::now() + Duration::from_secs(7);
    node.propose(command, deadline).await.unwrap()
}

/// Switches auth on, with `root` as the only user.
async fn guard(node: &Node) {
    let root = UserAdd {
        name: ROOT.into(),
        password: PasswordHash("hash".into()),
        no_password: false,
    };
    for op in [
        Op::UserAdd(root),
        Op::UserGrantRole(ROOT.into(), ROOT.into()),
        Op::AuthEnable,
    ] {
        propose(node, op).await.result.unwrap();
    }
}

async fn login(node: &Node, prefix: u8) -> TokenKey {
    let login = Authenticate {
        user: ROOT.into(),
        epoch: node.view().state.login_record(&ROOT.into()).unwrap().epoch,
        kind: TokenKind::Simple,
        prefix_hash: [prefix; 32],
        limits: TokenLimits::default(),
    };
    match propose(node, Op::Authenticate(login)).await.result {
        Ok(Response::Authenticated(key)) => key,
        other => panic!("{other:?}"),
    }
}

/// A token that is used on the living members in turn, every four fifths of a lifetime.
struct Used<'a> {
    cluster: &'a Cluster,
    key: TokenKey,
    members: Vec<u64>,
    next: Instant,
}

impl Used<'_> {
    /// Uses the token until another one is gone on member `at`; gives that moment. Both are looked at all the time.
    async fn until_gone(&mut self, other: &TokenKey, at: u64) -> Instant {
        let start = Instant::now();
        loop {
            let node = self.cluster.node(at).await;
            let view = node.view();
            assert!(view.state.token(&self.key).is_some(), "a used token died");
            if view.state.token(other).is_none() {
                return Instant::now();
            }
            assert!(start.elapsed() < 10 * TTL, "an idle token lives for ever");
            if Instant::now() >= self.next {
                self.members.rotate_left(1);
                self.cluster
                    .node(self.members[0])
                    .await
                    .token_used(self.key);
                self.next += TTL * 4 / 5;
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
}

#[track_caller]
fn assert_in_time(idle: Duration) {
    assert!(idle >= TTL, "after {idle:?}");
    assert!(idle <= TTL * 5 / 4 + ON_ITS_WAY, "after {idle:?}");
}

#[test]
fn an_idle_token_dies_in_time_and_a_used_one_lives_also_under_the_next_leader() {
    for seed in 0..5 {
        simulate(seed, 0.0, move || async move {
            let cluster = Cluster::start_with(3, seed, TTL, SNAPSHOT_COUNT);
            let old = cluster.leader().await;
            let node = cluster.node(old).await;
            guard(&node).await;
            let mut used = Used {
                cluster: &cluster,
                key: login(&node, 1).await,
                members: cluster.ids().collect(),
                next: Instant::now(),
            };
            let idle = login(&node, 2).await;
            let start = Instant::now();
            let gone = used.until_gone(&idle, old).await;
            assert_in_time(gone - start);

            let heir = login(&node, 3).await;
            sleep(TTL / 2).await;
            cluster.crash(old);
            let others: Vec<u64> = cluster.ids().filter(|id| *id != old).collect();
            let new = cluster.leader_among(&others).await;
            let elected = Instant::now();
            used.members = others;
            let gone = used.until_gone(&heir, new).await;
            assert_in_time(gone - elected);

            // What the old leader stored says nothing else.
            cluster.restart(old);
            cluster.converge().await;
            let view = cluster.node(old).await.view();
            assert!(view.state.token(&used.key).is_some());
            assert!(view.state.token(&heir).is_none());
        });
    }
}

#[test]
fn a_use_at_a_member_that_was_cut_off_is_reported_once_it_is_back() {
    for seed in 0..3 {
        simulate(seed, 0.0, move || async move {
            let cluster = Cluster::start_with(3, seed, TTL, SNAPSHOT_COUNT);
            let leader = cluster.leader().await;
            let node = cluster.node(leader).await;
            guard(&node).await;
            let key = login(&node, 1).await;
            let lagging = cluster.ids().find(|id| *id != leader).unwrap();
            cluster
                .node(lagging)
                .await
                .wait_applied(key.index, Instant::now() + TTL)
                .await
                .unwrap();
            sleep(TTL / 2).await;
            cluster.cut_off(lagging);
            cluster.node(lagging).await.token_used(key);
            sleep(TTL / 4).await;
            cluster.heal(lagging);
            sleep(TTL * 3 / 4).await;
            // Idle for one and a half, were it not for that use.
            let token = node.view().state.token(&key).cloned();
            assert!(token.is_some_and(|token| token.refresh_count > 0));
        });
    }
}
