//! Random right histories: clients that overlap, members that lag and restart, answers that get lost, and a cluster that
//! does what the rules say. The judge must let all of them pass, and must reject them once they are changed.

mod changed;
mod clients;
mod cluster;
mod random;

pub(super) use changed::is_rejected;
pub(super) use random::Random;

use super::passes;
use super::script::*;
use crate::history::{History, Op, TokenRules};
use crate::verdict::VerdictKind;
use clients::{Client, Stage};
use std::collections::BTreeMap;

/// Runs to generate; each has some hundred calls.
const RUNS: u64 = 150;
/// Moves in one run.
const MOVES: usize = 900;

/// Few tokens that live shortly, so that they expire and make room.
pub(super) const RULES: TokenRules = TokenRules {
    ttl_ms: 100,
    per_user_max: 5,
    total_max: 8,
    drift_ppm: 0,
};

pub(super) struct Run {
    script: Script,
    random: Random,
    clients: Vec<Client>,
    /// Proposals of calls that were given up; they may still come into the log.
    limbo: Vec<Stage>,
    /// Answers of committed calls, and the indices at which they stand.
    answers: BTreeMap<u64, (u64, Answer)>,
    /// Logins that gave a token, which any client may use.
    tokens: Vec<u64>,
    /// When the last report of each login's token came into the log, milliseconds.
    reported_ms: BTreeMap<u64, u64>,
    /// Whether logins compare passwords with their member's own state, as old as it is.
    skips_barrier: bool,
}

impl Run {
    pub(super) fn generate(seed: u64) -> History {
        Run::generate_with(seed, false)
    }

    fn generate_with(seed: u64, skips_barrier: bool) -> History {
        let (script, root) = Script::with_auth_and_rules(RULES);
        let client = |number: usize| Client {
            name: format!("c{number}"),
            token: None,
            member: 1,
            op: Op::AuthStatus {},
            stage: Stage::Idle,
        };
        let mut run = Run {
            script,
            random: Random(seed),
            clients: (0..5).map(client).collect(),
            limbo: Vec::new(),
            answers: BTreeMap::new(),
            tokens: vec![root],
            reported_ms: BTreeMap::new(),
            skips_barrier,
        };
        for _ in 0..MOVES {
            run.step();
        }
        for member in 1..=MEMBERS {
            run.script.catch_up(member);
        }
        run.script.history()
    }

    fn step(&mut self) {
        let number = usize::try_from(self.random.below(5)).unwrap();
        match self.random.below(100) {
            0..4 => self.lag(),
            4 => self.restart(),
            5 if !self.limbo.is_empty() => {
                let late = self.limbo.remove(0);
                self.commit(late);
            }
            6 => self.lose(number),
            7..13 => self.own_entry(),
            _ => {
                let stage = self.clients[number].stage;
                self.clients[number].stage = self.advance(number, stage);
            }
        }
    }
}

#[test]
fn right_histories_pass() {
    let mut seen = crate::checker::Counts::default();
    for seed in 0..RUNS {
        let history = Run::generate(seed);
        passes(&history);
        let counts = crate::checker::count(&history);
        seen.allowed += counts.allowed;
        seen.denied += counts.denied;
        seen.logins_ok += counts.logins_ok;
        seen.logins_refused += counts.logins_refused;
        seen.unknown += counts.unknown;
    }
    let least = [
        seen.allowed,
        seen.denied,
        seen.logins_ok,
        seen.logins_refused,
        seen.unknown,
    ];
    assert!(least.iter().all(|count| *count > 5 * RUNS), "{seen:?}");
}

#[test]
fn comparing_passwords_without_a_barrier_is_found() {
    let mut found = 0;
    for seed in 0..RUNS {
        let verdict = super::judge(&Run::generate_with(seed, true));
        if verdict.kind != VerdictKind::Ok {
            // Or the second opinion has found what the members' records hide.
            let property = verdict.property.as_deref();
            assert!(
                matches!(property, Some("P5" | "judge")),
                "seed {seed}: {verdict:?}"
            );
            found += 1;
        }
    }
    assert!(found > 0);
}
