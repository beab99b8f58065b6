//! Clients: each runs its steps one after the other, and has at most one call open. A plain client never repeats a call:
//! a hidden repetition would turn a lost answer into a duplicate that the judge cannot see.

use crate::calls::{Call, Called, Caller, Token};
use crate::plan::{DEFAULT_SESSION, Members, Step, TIMEOUT_MS};
use crate::retry::{Advice, advise};
use crate::rng::{Purpose, Rng};
use crate::world::World;
use gatehouse_judge::history::{Op, Outcome};
use gatehouse_judge::words;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How often a repeating client tries one step before it gives up.
const ATTEMPTS_MAX: u32 = 20;

/// How long a repeating client waits before it tries again: short against an election, so that it measures the cluster's
/// gap and not its own.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A client's way to prove who it is: the token, and what it was got with, to get another.
#[derive(Default)]
struct Session {
    token: Option<Token>,
    login: Option<Op>,
}

/// One client.
struct Client {
    world: Arc<World>,
    caller: Caller,
    members: Members,
    retry: bool,
    turn: usize,
    rng: Rng,
    sessions: BTreeMap<String, Session>,
}

/// Runs the plan's client at `planned`, called `name` and numbered from 1, to the end of its steps.
pub(crate) async fn run(world: Arc<World>, planned: usize, name: String, number: u64) {
    let plan = Arc::clone(&world.plan);
    let planned = &plan.clients[planned];
    let mut client = Client {
        caller: Caller::new(name, world.seed, world.recorder.clone()),
        members: planned.member.clone(),
        retry: planned.retry,
        turn: 0,
        rng: Rng::new(world.seed, Purpose::Workload(number)),
        sessions: BTreeMap::new(),
        world,
    };
    for step in &planned.steps {
        for _ in 0..step.times() {
            client.step(step).await;
        }
    }
}

impl Client {
    async fn step(&mut self, step: &Step) {
        let world = Arc::clone(&self.world);
        let (labels, when) = (&world.labels, &step.when);
        if let Some(label) = &when.wait_for_start {
            labels.wait_sent(label).await;
        }
        if let Some(label) = &when.wait_for {
            labels.wait_returned(label).await;
        }
        let borrowed = match &when.use_token_of {
            Some(label) => match labels.wait_returned(label).await {
                Some(token) => Some(token),
                None => return labels.returned(when.label.as_ref(), None),
            },
            None => None,
        };
        if let Some(pause) = when.after_ms {
            sleep(Duration::from_millis(
                self.rng.between(pause.low, pause.high),
            ))
            .await;
        }
        labels.sent(when.label.as_ref());
        let called = self.perform(step, borrowed).await;
        if let Some(expected) = when.expect
            && !expected.met_by(&called.outcome)
        {
            let sentence = format!(
                "client \"{}\", call {}: the scenario expects \"{}\" of {}, and it was {}",
                self.caller.name(),
                called.number,
                expected.name(),
                words::op(&step.op),
                words::outcome(&called.outcome)
            );
            world.recorder.unmet(called.number, sentence);
        }
        labels.returned(when.label.as_ref(), called.token);
    }

    /// Makes the step's call, and repeats it if the client is of that kind.
    async fn perform(&mut self, step: &Step, borrowed: Option<Token>) -> Called {
        let name = step.when.session.as_deref().unwrap_or(DEFAULT_SESSION);
        let own_session = borrowed.is_none() && !step.when.anonymous;
        let mut called = self.once(step, borrowed.as_ref()).await;
        let mut attempts = 1;
        while self.retry && attempts < ATTEMPTS_MAX {
            match advise(&step.op, &called.outcome) {
                Advice::Accept => break,
                Advice::Repeat => {}
                Advice::LoginFirst if own_session => {
                    let Some(login) = self
                        .sessions
                        .get(name)
                        .and_then(|session| session.login.clone())
                    else {
                        break;
                    };
                    sleep(RETRY_PAUSE).await;
                    let renewed = self.once(&login_again(step, login), None).await;
                    if is_final(&renewed.outcome) {
                        break;
                    }
                }
                Advice::LoginFirst => break,
            }
            sleep(RETRY_PAUSE).await;
            called = self.once(step, borrowed.as_ref()).await;
            attempts += 1;
        }
        called
    }

    /// Makes one call.
    async fn once(&mut self, step: &Step, borrowed: Option<&Token>) -> Called {
        let when = &step.when;
        let members = when.member.as_ref().unwrap_or(&self.members);
        let member = self.world.choose(members, &mut self.turn, &mut self.rng);
        let name = when.session.as_deref().unwrap_or(DEFAULT_SESSION);
        let login = matches!(step.op, Op::Login { .. });
        let token = if login || when.anonymous {
            None
        } else {
            borrowed.or_else(|| {
                self.sessions
                    .get(name)
                    .and_then(|session| session.token.as_ref())
            })
        };
        let timeout = Duration::from_millis(when.timeout_ms.unwrap_or(TIMEOUT_MS));
        let called = self
            .caller
            .call(Call {
                member,
                op: &step.op,
                token,
                timeout,
            })
            .await;
        if login {
            let session = self.sessions.entry(name.to_owned()).or_default();
            session.login = Some(step.op.clone());
            if called.token.is_some() {
                session.token.clone_from(&called.token);
            }
        }
        called
    }
}

/// Whether a login was refused for what it said, so that saying it again is no use.
fn is_final(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused { code, .. } if code != "Unavailable")
}

/// The login that renews the session of `step`, wherever the step goes.
fn login_again(step: &Step, login: Op) -> Step {
    let mut again = Step::plain(login);
    again.when.session.clone_from(&step.when.session);
    again.when.member.clone_from(&step.when.member);
    again.when.timeout_ms = step.when.timeout_ms;
    again
}

/// Why the set-up did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SetupFailure {
    /// A step was refused: the plan is wrong, or the server.
    Refused(String),
    /// The cluster did not get it done.
    Stuck(String),
}

/// How long the whole set-up may take. No fault strikes before its end, so a healthy cluster needs one election and a
/// few round trips.
const SETUP_LIMIT: Duration = Duration::from_secs(60);

/// Runs the plan's set-up: each step until it is done.
///
/// # Errors
/// The step that was not done.
pub(crate) async fn set_up(world: Arc<World>) -> Result<(), SetupFailure> {
    let plan = Arc::clone(&world.plan);
    let start = tokio::time::Instant::now();
    while world.recorder.leader().is_none() {
        if start.elapsed() > SETUP_LIMIT {
            return Err(SetupFailure::Stuck("no leader was elected".to_owned()));
        }
        sleep(Duration::from_millis(10)).await;
    }
    let mut client = Client {
        caller: Caller::new("setup", world.seed, world.recorder.clone()),
        members: Members::default(),
        retry: false,
        turn: 0,
        rng: Rng::new(world.seed, Purpose::Workload(0)),
        sessions: BTreeMap::new(),
        world: Arc::clone(&world),
    };
    for step in &plan.setup {
        let mut maybe_done = false;
        loop {
            let called = client.once(step, None).await;
            match &called.outcome {
                Outcome::Ok(_) => {
                    world
                        .labels
                        .returned(step.when.label.as_ref(), called.token.clone());
                    break;
                }
                // A repetition of something that was done after all is refused, because it is done.
                Outcome::Refused { code, .. } if code != "Unavailable" && maybe_done => {
                    world.labels.returned(step.when.label.as_ref(), None);
                    break;
                }
                Outcome::Refused { code, message } if code != "Unavailable" => {
                    let refusal = format!(
                        "call {}: set-up step \"{}\" was refused: {message}",
                        called.number,
                        words::op(&step.op)
                    );
                    return Err(SetupFailure::Refused(refusal));
                }
                Outcome::Refused { .. } => {}
                Outcome::Unknown { .. } => maybe_done = true,
            }
            if start.elapsed() > SETUP_LIMIT {
                return Err(SetupFailure::Stuck(format!(
                    "set-up step \"{}\" was never done",
                    words::op(&step.op)
                )));
            }
            sleep(RETRY_PAUSE).await;
        }
    }
    Ok(())
}
