//! The second half of a run: the faults are healed, and from now on the cluster owes progress. On every member a fresh
//! login and a permitted write must succeed within [`BOUND`]; then all members must reach one applied index, at which
//! their hashes are read for the judge. A *lost* member, whose store has rotted so that it cannot go on, owes nothing: it
//! would have to be replaced.

use crate::calls::{Call, Called, Caller, KEEPALIVE, Token, code_name};
use crate::plan::Liveness;
use crate::world::World;
use gatehouse::pb::etcdserverpb::HashKvResponse;
use gatehouse_judge::history::{Op, Outcome, What};
use gatehouse_judge::words;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tonic::Status;

/// How long the cluster may take from healing to service, virtual time. Measured over 20 seeds for each kind of fault:
/// at worst 3.0 s to the first write when both ends of a connection ping, so 5 s; and a client may first have to notice
/// that its own connection is dead, which takes two keepalives.
pub(crate) const BOUND: Duration = Duration::from_secs(5)
    .saturating_add(KEEPALIVE)
    .saturating_add(KEEPALIVE);

/// How long a single call may take before it is made again.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

const INVALID_TOKEN: &str = "etcdserver: invalid auth token";

/// What was not achieved in time, in one sentence.
pub(crate) type Failure = String;

/// Proves that every member serves again, and reads their hashes.
///
/// # Errors
/// What was not achieved in time.
pub(crate) async fn prove(world: &Arc<World>) -> Result<(), Failure> {
    let healed = Instant::now();
    let members: Vec<_> = (1..=world.cluster.size())
        .map(|member| {
            let world = Arc::clone(world);
            world
                .cluster
                .clients()
                .clone()
                .spawn(async move { Prover::new(&world, member, healed).serve().await })
        })
        .collect();
    let mut token = None;
    let mut failure = None;
    for member in members {
        // Each proof ends by itself at the bound, so all are awaited: none is cut off in the middle of a call.
        match member.await {
            Ok(Ok(login)) => token = login.or(token),
            Ok(Err(sentence)) => failure = failure.or(Some(sentence)),
            Err(error) => {
                failure = failure.or(Some(format!("a proof of liveness ended early: {error}")))
            }
        }
    }
    match failure {
        Some(sentence) => Err(sentence),
        None => {
            let world = Arc::clone(world);
            let clients = world.cluster.clients().clone();
            let probed = clients.spawn(async move { probe(&world, token).await });
            probed
                .await
                .unwrap_or_else(|error| Err(format!("reading the hashes ended early: {error}")))
        }
    }
}

/// The client that proves one member's service.
struct Prover {
    world: Arc<World>,
    member: u64,
    user: Option<Liveness>,
    caller: Caller,
    healed: Instant,
}

impl Prover {
    fn new(world: &Arc<World>, member: u64, healed: Instant) -> Prover {
        Prover {
            world: Arc::clone(world),
            member,
            user: world.plan.liveness.clone(),
            caller: Caller::new(
                format!("liveness-{member}"),
                world.seed,
                world.recorder.clone(),
            ),
            healed,
        }
    }

    async fn serve(mut self) -> Result<Option<Token>, Failure> {
        let key = match &self.user {
            None => "liveness".to_owned(),
            Some(user) => user.key.clone(),
        };
        let put = Op::Put {
            key: key.into(),
            value: format!("n{}", self.member).into(),
            prev_kv: false,
        };
        loop {
            let mut token = None;
            if let Some(user) = self.user.clone() {
                match self.until_done(&login(&user), None).await? {
                    Some(called) => token = called.token,
                    None => return Ok(None),
                }
            }
            let called = self.until_done(&put, token.as_ref()).await?;
            if called.is_none_or(|called| matches!(called.outcome, Outcome::Ok(_))) {
                return Ok(token);
            }
        }
    }

    /// Repeats a call until it is done, or the member is lost. A login while auth is off is as done as it can be.
    async fn until_done(
        &mut self,
        op: &Op,
        token: Option<&Token>,
    ) -> Result<Option<Called>, Failure> {
        while !self.world.cluster.is_lost(self.member) {
            let call = Call {
                member: self.member,
                op,
                token,
                timeout: CALL_TIMEOUT,
            };
            let called = self.caller.call(call).await;
            let last = match &called.outcome {
                Outcome::Ok(_) => return Ok(Some(called)),
                Outcome::Refused { message, .. }
                    if message == "etcdserver: authentication is not enabled" =>
                {
                    return Ok(Some(called));
                }
                // Other proofs log in as the same user, and may have made room for themselves at the limit of its tokens.
                // Whether this token could end is the judge's question; here a new login must do.
                Outcome::Refused { message, .. }
                    if message == INVALID_TOKEN
                        && token.is_some()
                        && self.healed.elapsed() < BOUND =>
                {
                    sleep(PAUSE).await;
                    return Ok(Some(called));
                }
                Outcome::Refused { code, message } | Outcome::Unknown { code, message } => {
                    format!("{code} \"{message}\"")
                }
            };
            if self.healed.elapsed() >= BOUND {
                return Err(format!(
                    "n{} does not serve \"{}\" {} s after everything was healed; call {} was the last to fail: {last}",
                    self.member,
                    words::op(op),
                    BOUND.as_secs(),
                    called.number
                ));
            }
            sleep(PAUSE).await;
        }
        Ok(None)
    }
}

/// Reads every member's hashes at one applied index, not necessarily at one time: the cluster has work of its own (it
/// reports and expires tokens), so an index may be over before the last member has been asked. All are asked at once, since
/// asking is itself a use of a token, which the cluster reports.
async fn probe(world: &Arc<World>, mut token: Option<Token>) -> Result<(), Failure> {
    let mut seen: BTreeMap<u64, BTreeMap<u64, HashKvResponse>> = BTreeMap::new();
    let start = Instant::now();
    let mut callers: BTreeMap<u64, Caller> = BTreeMap::new();
    loop {
        let mut last = Vec::new();
        let mut refused = None;
        // One may be lost only now.
        let all = 1..=world.cluster.size();
        let members: Vec<u64> = all
            .filter(|member| !world.cluster.is_lost(*member))
            .collect();
        let by_member = members.iter().map(|member| {
            let caller = callers.remove(member);
            (*member, caller.unwrap_or_else(|| prober(world)))
        });
        for asked in ask_all(by_member, token.as_ref()) {
            let (member, caller, hashes) = asked
                .await
                .map_err(|error| format!("reading the hashes ended early: {error}"))?;
            callers.insert(member, caller);
            match hashes {
                Ok(hashes) => {
                    last.push(format!("n{member} {}", hashes.applied_index));
                    let at_index = seen.entry(hashes.applied_index).or_default();
                    at_index.insert(member, hashes);
                }
                Err(status) => {
                    let (code, message) = (code_name(&status), status.message());
                    last.push(format!("n{member}: {code} \"{message}\""));
                    // Without one: auth may have been off at the last login, and be on now.
                    let needs_login = message == INVALID_TOKEN || token.is_none();
                    refused = needs_login.then_some(member).or(refused);
                }
            }
        }
        let is_whole = |probes: &&BTreeMap<u64, HashKvResponse>| {
            members.iter().all(|member| probes.contains_key(member))
        };
        if let Some(probes) = seen.values().find(is_whole) {
            for (member, hashes) in probes {
                world.recorder.event(probed(*member, hashes));
            }
            return Ok(());
        }
        if start.elapsed() >= BOUND {
            return Err(format!(
                "the members were not seen at one applied index within {} s without work ({})",
                BOUND.as_secs(),
                last.join(", ")
            ));
        }
        if let (Some(member), Some(user)) = (refused, &world.plan.liveness) {
            token = log_in(world, member, user).await;
        }
        sleep(PAUSE).await;
    }
}

fn prober(world: &World) -> Caller {
    Caller::new("liveness", world.seed, world.recorder.clone())
}

type Asked = (u64, Caller, Result<HashKvResponse, Status>);

/// Asks every member for its hashes, each over connections of its own.
fn ask_all(
    callers: impl Iterator<Item = (u64, Caller)>,
    token: Option<&Token>,
) -> Vec<JoinHandle<Asked>> {
    let asked = callers.map(|(member, mut caller)| {
        let token = token.cloned();
        tokio::spawn(async move {
            let hashes = caller.hashes(member, token.as_ref(), CALL_TIMEOUT).await;
            (member, caller, hashes)
        })
    });
    asked.collect()
}

async fn log_in(world: &World, member: u64, user: &Liveness) -> Option<Token> {
    let call = Call {
        member,
        op: &login(user),
        token: None,
        timeout: CALL_TIMEOUT,
    };
    prober(world).call(call).await.token
}

fn login(user: &Liveness) -> Op {
    Op::Login {
        user: user.user.as_str().into(),
        password: user.password.as_str().into(),
    }
}

fn probed(member: u64, hashes: &HashKvResponse) -> What {
    What::Probe {
        member,
        index: hashes.applied_index,
        kv_hash: hashes.hash,
        auth_hash: hashes.auth_hash,
        digest: hashes.digest,
    }
}
