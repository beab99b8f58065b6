//! What a run must have seen before "ok" means anything, read from its history, and the one expectation about time: how
//! long a client that retries may go without an answer.

use crate::plan::{Expect, Plan};
use gatehouse_judge::history::{History, Op, Outcome, What};
use gatehouse_judge::marks::Marks;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Logins that gave a token.
    pub logins_ok: u64,
    /// Logins that were refused.
    pub logins_refused: u64,
    /// Key-value calls that were allowed.
    pub allowed: u64,
    /// Calls that were refused for lack of a right.
    pub denied: u64,
}

/// The clients' calls, each with its end; set-up and the proof of liveness do not count.
fn calls(history: &History) -> impl Iterator<Item = (&str, &Op, &Outcome)> {
    let mut open = BTreeMap::new();
    history
        .events
        .iter()
        .filter_map(move |event| match &event.what {
            What::Invoke {
                call, client, op, ..
            } => {
                open.insert(*call, (client.as_str(), &**op));
                None
            }
            What::Return { call, outcome } => {
                open.remove(call).map(|(client, op)| (client, op, outcome))
            }
            _ => None,
        })
}

impl Seen {
    /// Counts what the plan's clients saw.
    pub fn count(plan: &Plan, history: &History) -> Seen {
        let mut seen = Seen::default();
        for (client, op, outcome) in calls(history) {
            if !plan.clients.iter().any(|known| known.is_called(client)) {
                continue;
            }
            let login = matches!(op, Op::Login { .. });
            match outcome {
                Outcome::Ok(_) if login => seen.logins_ok += 1,
                Outcome::Refused { code, .. } if login && code != "Unavailable" => {
                    seen.logins_refused += 1
                }
                Outcome::Ok(_) if op.is_data() => seen.allowed += 1,
                Outcome::Refused { code, .. } if code == "PermissionDenied" => seen.denied += 1,
                _ => {}
            }
        }
        seen
    }

    /// What is missing, in one sentence; none if the run saw enough.
    pub fn shortfall(&self, expect: &Expect, marks: &Marks) -> Option<String> {
        let counts = [
            ("logins that succeed", self.logins_ok, expect.logins_ok),
            (
                "logins that are refused",
                self.logins_refused,
                expect.logins_refused,
            ),
            ("allowed key-value calls", self.allowed, expect.allowed),
            ("denied calls", self.denied, expect.denied),
        ];
        let windows = expect
            .marks
            .iter()
            .map(|(name, least)| (name.as_str(), marks.get(name).copied().unwrap_or(0), *least));
        let short: Vec<String> = counts
            .into_iter()
            .chain(windows)
            .filter(|(_, seen, least)| seen < least)
            .map(|(name, seen, least)| format!("{name}: {seen} of at least {least}"))
            .collect();
        (!short.is_empty()).then(|| {
            format!(
                "the run saw too little to prove anything ({})",
                short.join("; ")
            )
        })
    }
}

/// The longest time that a client which retries went without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The client.
    pub client: String,
    /// The first call that was not answered.
    pub call: u64,
    /// How long.
    pub lasted: Duration,
}

/// The longest gap of any retrying client before the cluster was healed: from the start of a call to the next answer.
/// A decision is an answer, whether yes or no; an error that says nothing is not.
pub fn longest_gap(plan: &Plan, history: &History) -> Option<Gap> {
    let mut owner = BTreeMap::new();
    let mut waiting: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut longest: Option<Gap> = None;
    for event in &history.events {
        match &event.what {
            What::Invoke { call, client, .. }
                if plan.clients.iter().any(|c| c.retry && c.is_called(client)) =>
            {
                owner.insert(*call, client.as_str());
                waiting.entry(client).or_insert((*call, event.at_us));
            }
            What::Return { call, outcome } => {
                let Some(client) = owner.remove(call) else {
                    continue;
                };
                let Some((first, since)) = waiting.get(client).copied() else {
                    continue;
                };
                let lasted = Duration::from_micros(event.at_us - since);
                if longest.as_ref().is_none_or(|gap| lasted > gap.lasted) {
                    longest = Some(Gap {
                        client: client.to_owned(),
                        call: first,
                        lasted,
                    });
                }
                if answers(outcome) {
                    waiting.remove(client);
                }
            }
            What::Healed => break,
            _ => {}
        }
    }
    longest
}

fn answers(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ok(_) => true,
        Outcome::Refused { code, .. } => code == "PermissionDenied",
        Outcome::Unknown { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatehouse_judge::history::{Event, Header};

    fn plan() -> Plan {
        let text =
            "version = 1\nname = \"t\"\n[[client]]\nname = \"c\"\nretry = true\nsteps = []\n";
        toml::from_str(text).unwrap()
    }

    /// Calls of client `c`, one after the other: start and end in milliseconds, and how each ended.
    fn history(calls: &[(u64, u64, Outcome)]) -> History {
        let mut events = Vec::new();
        for (at, (start, end, outcome)) in calls.iter().enumerate() {
            let call = at as u64 + 1;
            let op = Op::Get {
                key: "k".into(),
                range_end: String::new().into(),
                serializable: false,
                limit: 0,
                revision: 0,
                count_only: false,
            };
            let invoke = What::Invoke {
                call,
                client: "c".into(),
                member: 1,
                token: None,
                op: Box::new(op),
            };
            events.push(Event {
                at_us: start * 1000,
                what: invoke,
            });
            events.push(Event {
                at_us: end * 1000,
                what: What::Return {
                    call,
                    outcome: outcome.clone(),
                },
            });
        }
        History {
            header: Header::default(),
            events,
        }
    }

    fn ok() -> Outcome {
        Outcome::Ok(Box::default())
    }

    fn refused(code: &str) -> Outcome {
        Outcome::Refused {
            code: code.into(),
            message: String::new().into(),
        }
    }

    fn lost() -> Outcome {
        Outcome::Unknown {
            code: "Unavailable".into(),
            message: String::new().into(),
        }
    }

    #[test]
    fn a_gap_runs_from_the_first_failed_call_to_the_next_answer() {
        let rows = [
            (vec![(0, 5, ok()), (100, 110, ok())], (2, 10)),
            (
                vec![
                    (0, 5, ok()),
                    (100, 300, lost()),
                    (350, 360, refused("Unavailable")),
                    (400, 430, ok()),
                ],
                (2, 330),
            ),
            (
                vec![
                    (0, 5, lost()),
                    (100, 130, refused("PermissionDenied")),
                    (200, 210, ok()),
                ],
                (1, 130),
            ),
        ];
        for (calls, (call, ms)) in rows {
            let gap = longest_gap(&plan(), &history(&calls)).unwrap();
            assert_eq!(
                gap,
                Gap {
                    client: "c".into(),
                    call,
                    lasted: Duration::from_millis(ms)
                }
            );
        }
    }

    #[test]
    fn a_run_that_saw_too_little_is_told_what_is_missing() {
        let history = history(&[
            (0, 1, ok()),
            (2, 3, ok()),
            (4, 5, refused("PermissionDenied")),
            (6, 7, lost()),
        ]);
        let seen = Seen::count(&plan(), &history);
        assert_eq!(
            seen,
            Seen {
                logins_ok: 0,
                logins_refused: 0,
                allowed: 2,
                denied: 1
            }
        );
        let mut expect = Expect {
            allowed: 2,
            denied: 1,
            ..Expect::default()
        };
        assert_eq!(seen.shortfall(&expect, &Marks::new()), None);
        expect.allowed = 3;
        expect.marks.insert("commit-to-publish".into(), 1);
        assert_eq!(
            seen.shortfall(&expect, &Marks::new()).unwrap(),
            "the run saw too little to prove anything (allowed key-value calls: 2 of at least 3; commit-to-publish: 0 \
             of at least 1)"
        );
    }
}
