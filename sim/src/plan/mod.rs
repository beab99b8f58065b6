//! A plan says everything about a run but its seed: cluster, set-up, what each client does, faults, windows, planted
//! bug and what the run must have seen. A scenario file is a plan; so is what a fuzzer draws and what a shrinker
//! leaves over. Build, plan and seed decide a run to the last byte.
//!
//! Parsing refuses unknown fields and names the line; [`Plan::check`] refuses values that no run could make sense of.
//! Nothing here runs anything.

mod check;
mod fault;
mod read;
mod split;
mod step;

pub use check::PlanError;
pub use fault::{Direction, DiskOperation, Fault, FaultKind, FaultTime};
pub use read::{ReadError, read};
pub use step::{DEFAULT_SESSION, Expected, Step, TIMEOUT_MS, When};

use gatehouse::config::{SNAPSHOT_COUNT, SNAPSHOT_PART_BYTES};
use gatehouse_judge::history::TokenRules;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the plan language that this build speaks.
pub const VERSION: u32 = 1;

/// One plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Short name, as in file names: lower-case letters, digits, hyphens.
    pub name: String,
    /// Why this plan exists, for the reader of a report.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The seeds that `cargo test` and a plain `run` use; the first one must show every bug in `shows`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u64>,
    /// A planted bug that belongs to the plan (a stored find).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug: Option<String>,
    /// The planted bugs that this plan was written to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<Shown>,
    /// Virtual time after which the run counts as stuck, milliseconds.
    #[serde(default = "default_limit_ms", skip_serializing_if = "is_default_limit")]
    pub limit_ms: u64,
    /// Steps of an implicit client that repeats each until it is done; they end before the clients start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Step>,
    /// The servers.
    #[serde(default)]
    pub cluster: Cluster,
    /// How long simple tokens live, and how many there may be.
    #[serde(default)]
    pub tokens: Tokens,
    /// What lies between them.
    #[serde(default)]
    pub network: Network,
    /// Who proves at the end that the cluster works again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness: Option<Liveness>,
    /// The least that the run must have seen.
    #[serde(default)]
    pub expect: Expect,
    /// The clients.
    #[serde(default, rename = "client", skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Client>,
    /// The faults.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// The windows held open.
    #[serde(default, rename = "window", skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
}

fn default_limit_ms() -> u64 {
    120_000
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_default_limit(limit_ms: &u64) -> bool {
    *limit_ms == default_limit_ms()
}

/// The servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// How many, 1 to 7; they are numbered from 1.
    pub members: u64,
    /// One raft tick, milliseconds.
    pub heartbeat_ms: u64,
    /// How long a follower waits for a leader, milliseconds; at least five heartbeats.
    pub election_ms: u64,
    /// How much faster (or slower, below 0) than true time each member's clock runs, millionths, in order of members;
    /// those that are not named run true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drift_ppm: Vec<i64>,
    /// Applied entries after which a member truncates its log; one that needs what is gone gets a snapshot.
    #[serde(skip_serializing_if = "is_default_snapshot_count")]
    pub snapshot_count: u64,
    /// Size at which a part of a snapshot ends, bytes.
    #[serde(skip_serializing_if = "is_default_snapshot_part")]
    pub snapshot_part_bytes: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_default_snapshot_count(count: &u64) -> bool {
    *count == SNAPSHOT_COUNT
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_default_snapshot_part(bytes: &usize) -> bool {
    *bytes == SNAPSHOT_PART_BYTES
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            members: 3,
            heartbeat_ms: 100,
            election_ms: 1_000,
            drift_ppm: Vec::new(),
            snapshot_count: SNAPSHOT_COUNT,
            snapshot_part_bytes: SNAPSHOT_PART_BYTES,
        }
    }
}

/// A planted bug that a plan shows: its slug alone, or `{ bug = "…", by = ["client"] }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ShownForm", into = "ShownForm")]
pub struct Shown {
    /// The slug.
    pub bug: String,
    /// Clients, one of whose calls the verdict must name first on the first pinned seed; empty: whoever's.
    pub by: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a planted bug's slug or { bug = \"slug\", by = [\"client\"] }"
)]
enum ShownForm {
    Slug(String),
    By(ShownBy),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShownBy {
    bug: String,
    by: Vec<String>,
}

impl From<ShownForm> for Shown {
    fn from(form: ShownForm) -> Shown {
        match form {
            ShownForm::Slug(bug) => Shown {
                bug,
                by: Vec::new(),
            },
            ShownForm::By(ShownBy { bug, by }) => Shown { bug, by },
        }
    }
}

impl From<Shown> for ShownForm {
    fn from(shown: Shown) -> ShownForm {
        let Shown { bug, by } = shown;
        if by.is_empty() {
            ShownForm::Slug(bug)
        } else {
            ShownForm::By(ShownBy { bug, by })
        }
    }
}

/// Simple tokens: the same on every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tokens {
    /// Lifetime after the last use, milliseconds of a member's own clock.
    pub ttl_ms: u64,
    /// Most live tokens of one user.
    pub per_user_max: u64,
    /// Most live tokens of all users.
    pub total_max: u64,
}

impl Default for Tokens {
    fn default() -> Tokens {
        let TokenRules {
            ttl_ms,
            per_user_max,
            total_max,
            drift_ppm: _,
        } = TokenRules::default();
        Tokens {
            ttl_ms,
            per_user_max,
            total_max,
        }
    }
}

/// What lies between the servers, and between them and the clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// How long a message travels, milliseconds.
    pub latency_ms: Span,
    /// Share of messages lost, 0 to below 1. Inside a connection a loss is a delay, as with TCP.
    pub loss: f64,
}

impl Default for Network {
    fn default() -> Network {
        Network {
            latency_ms: Span { low: 1, high: 10 },
            loss: 0.0,
        }
    }
}

/// Who logs in and writes on every member once the faults are healed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Liveness {
    /// The user; it must hold role `root`, because it also reads the members' hashes.
    pub user: String,
    /// Id of its password at the end of the plan.
    pub password: String,
    /// The key it writes.
    #[serde(default = "default_liveness_key")]
    pub key: String,
}

fn default_liveness_key() -> String {
    "liveness".to_owned()
}

/// One client: its steps run one after the other, so it never has two calls open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name in histories and reports.
    pub name: String,
    /// Where it sends its calls.
    #[serde(default)]
    pub member: Members,
    /// Repeats as etcd's documentation advises: reads and logins on another member when one is unavailable, everything
    /// that was certainly not executed, and any call after a new login when its token was refused. Each repetition is
    /// a call of its own in the history. Without it, a failed call is simply over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
    /// How many clients do the same, each with draws of its own; they are called `name-1`, `name-2` and so on. 1 if not
    /// said. Only labels of other clients can be waited for then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u64>,
    /// What it does.
    pub steps: Vec<Step>,
}

impl Plan {
    /// What the judge must know about tokens.
    pub fn token_rules(&self) -> TokenRules {
        let turned = self.faults.iter().filter_map(|fault| match &fault.kind {
            FaultKind::ClockDrift { ppm, .. } => Some(ppm),
            _ => None,
        });
        let drifts = self.cluster.drift_ppm.iter().chain(turned);
        TokenRules {
            ttl_ms: self.tokens.ttl_ms,
            per_user_max: self.tokens.per_user_max,
            total_max: self.tokens.total_max,
            drift_ppm: drifts.map(|drift| drift.unsigned_abs()).max().unwrap_or(0),
        }
    }
}

impl Client {
    /// The names under which it runs: its own, or one for each copy.
    pub fn names(&self) -> Vec<String> {
        match self.copies {
            None => vec![self.name.clone()],
            Some(copies) => (1..=copies)
                .map(|copy| format!("{}-{copy}", self.name))
                .collect(),
        }
    }

    /// Whether `name` is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        match self.copies {
            None => self.name == name,
            Some(copies) => name
                .strip_prefix(self.name.as_str())
                .and_then(|rest| rest.strip_prefix('-'))
                .and_then(|copy| copy.parse().ok())
                .is_some_and(|copy: u64| (1..=copies).contains(&copy)),
        }
    }
}

/// One member or several: `2`, `[1, 3]` (taken in turn), `"any"`, `"leader"`, `"follower"` or `"last-follower"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a member's number, a list of numbers, \"any\", \"leader\", \"follower\" or \"last-follower\""
)]
pub enum Members {
    /// This one.
    One(u64),
    /// These, in turn.
    Rotate(Vec<u64>),
    /// Whichever fits at that moment.
    Named(MemberName),
}

impl Default for Members {
    fn default() -> Members {
        Members::Named(MemberName::Any)
    }
}

/// A member by what it is at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberName {
    /// Any, drawn anew each time.
    Any,
    /// The last one that became leader.
    Leader,
    /// Any but the leader, drawn anew each time.
    Follower,
    /// The one with the highest number that is not the leader: so a fault and a client can mean the same member.
    LastFollower,
}

/// A window that the run holds open: a stretch of virtual time between two steps of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Its name, as `gatehouse::window::Window::name` gives it.
    pub name: String,
    /// On this member only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u64>,
    /// For how long, milliseconds.
    pub ms: Span,
    /// Share of passages that are held, 0 to 1.
    #[serde(default = "always", skip_serializing_if = "is_always")]
    pub chance: f64,
}

fn always() -> f64 {
    1.0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_always(chance: &f64) -> bool {
    *chance >= 1.0
}

/// The least that the run must have seen; a run that saw less proves nothing and is `undecided`. `max_gap_ms` alone
/// is an expectation of the scenario itself, which `--general` takes out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Logins that gave a token.
    #[serde(skip_serializing_if = "is_zero")]
    pub logins_ok: u64,
    /// Logins that were refused as wrong.
    #[serde(skip_serializing_if = "is_zero")]
    pub logins_refused: u64,
    /// Key-value calls that were allowed.
    #[serde(skip_serializing_if = "is_zero")]
    pub allowed: u64,
    /// Calls that were refused for lack of a right.
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: u64,
    /// Passages of named windows, and marks of the history, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, u64>,
    /// Longest time that a client with `retry` may wait between two successful calls, milliseconds. Counted from the
    /// start of the first call after a success to its eventual success, so that a client's own pauses do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gap_ms: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A number to be drawn: `[low, high]`, both included, or one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SpanForm", into = "SpanForm")]
pub struct Span {
    /// The lowest.
    pub low: u64,
    /// The highest.
    pub high: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or [lowest, highest]")]
enum SpanForm {
    Exact(u64),
    Between([u64; 2]),
}

impl From<SpanForm> for Span {
    fn from(form: SpanForm) -> Span {
        match form {
            SpanForm::Exact(exact) => Span {
                low: exact,
                high: exact,
            },
            SpanForm::Between([low, high]) => Span { low, high },
        }
    }
}

impl From<Span> for SpanForm {
    fn from(span: Span) -> SpanForm {
        if span.low == span.high {
            SpanForm::Exact(span.low)
        } else {
            SpanForm::Between([span.low, span.high])
        }
    }
}
