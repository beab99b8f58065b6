//! How long tokens live, on a real clock.

use crate::client::{Client, block_on, refusal};
use crate::etcdctl::guard;
use crate::harness::{Cluster, PATIENCE};
use std::time::{Duration, Instant};

const TTL: Duration = Duration::from_secs(1);

/// Logins before the test gives up on the machine.
const ATTEMPTS_MAX: u32 = 10;

const FLAGS: [&str; 3] = [
    "--bcrypt-cost=4",
    "--auth-token-ttl=1",
    "--heartbeat-interval=50",
];

/// Uses the token every tenth of a lifetime for `spell`, on all members in turn. A machine that is busy otherwise may stop
/// us for longer than a token lives, which proves nothing: then false.
async fn use_for(spell: Duration, clients: &[Client]) -> bool {
    let (start, mut last) = (Instant::now(), Instant::now());
    for client in clients.iter().cycle() {
        if start.elapsed() >= spell {
            break;
        }
        let answer = client.get("foo").await;
        if last.elapsed() >= TTL * 4 / 5 {
            return false;
        }
        answer.expect("a token in use lives");
        last = Instant::now();
        tokio::time::sleep(TTL / 10).await;
    }
    true
}

/// Asks until the token is refused; how long that took.
async fn until_dead(client: &Client, pause: Duration) -> Duration {
    let start = Instant::now();
    loop {
        tokio::time::sleep(pause).await;
        match refusal(client.get("foo").await) {
            None => assert!(start.elapsed() < PATIENCE, "an idle token lives for ever"),
            Some(refused) => {
                assert_eq!(refused, (16, "etcdserver: invalid auth token".to_owned()));
                return start.elapsed();
            }
        }
    }
}

#[test]
fn a_token_lives_in_use_on_any_member_and_dies_when_idle() {
    let mut cluster = Cluster::start(3, &FLAGS);
    guard(&cluster.addresses());
    let anyone: Vec<Client> = (cluster.members.iter())
        .map(|member| Client::anonymous(&member.address()))
        .collect();
    block_on(async {
        for _ in 0..ATTEMPTS_MAX {
            let token = anyone[0].login("alice", "alicepw").await.unwrap();
            let alice: Vec<Client> = (anyone.iter())
                .map(|client| client.presenting("token", &token))
                .collect();
            if use_for(3 * TTL, &alice).await {
                // Each question is a use, so they come far apart.
                assert!(until_dead(&alice[1], 2 * TTL).await >= TTL);
                return;
            }
        }
        panic!("this machine never ran us for three lifetimes without a stop");
    });
    for member in &mut cluster.members {
        assert!(member.terminate().success());
    }
}

#[test]
fn a_restart_keeps_tokens_and_does_not_make_them_immortal() {
    let mut cluster = Cluster::start(1, &["--bcrypt-cost=4", "--auth-token-ttl=3"]);
    guard(&cluster.addresses());
    let address = cluster.members[0].address();
    let token = block_on(Client::anonymous(&address).login("alice", "alicepw")).unwrap();
    cluster.members[0].kill();
    cluster.members[0].start();
    cluster.members[0].serves(2);
    block_on(async {
        // A new leader gives every token the full time again.
        let alice = Client::anonymous(&address).presenting("token", &token);
        assert_eq!(alice.get("foo").await.unwrap(), None);
        until_dead(&alice, Duration::from_secs(6)).await;
    });
}
