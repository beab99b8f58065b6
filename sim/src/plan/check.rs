//! Refuses plans that parse but that no run could make sense of: numbers out of range, members, labels, windows and
//! bugs that do not exist, steps that wait for each other. Each refusal names the field and says what is allowed.

mod clock;
mod disk;
mod snapshot;
mod transaction;
mod waits;

use super::{Client, Fault, FaultKind, Members, Plan, Span, Step, VERSION};
use crate::nearest::no_such_bug;
use gatehouse::planted::Bug;
use gatehouse::window::Window;
use gatehouse_judge::history::Op;
use gatehouse_judge::marks::Mark;
use std::collections::{BTreeMap, BTreeSet};

/// Most members: etcd advises against more than 7.
pub(super) const MEMBERS_MAX: u64 = 7;
/// Most clients; each is a task with a connection to every member.
pub(super) const CLIENTS_MAX: u64 = 64;
/// Shortest lifetime of tokens: reports of use are sent four times in a lifetime, from tick to tick.
pub(super) const TOKEN_TTL_HEARTBEATS_MIN: u64 = 10;
/// Most steps of a plan, repetitions counted; keeps a history within what the judge takes.
pub(super) const STEPS_MAX: u64 = 10_000;
/// Most faults.
pub(super) const FAULTS_MAX: usize = 1_000;
/// Longest time that a plan can name, and longest run, milliseconds of virtual time.
pub(super) const TIME_MS_MAX: u64 = 3_600_000;
/// Longest name of anything, bytes.
pub(super) const NAME_BYTES_MAX: usize = 100;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct PlanError {
    /// The field, e.g. `client "alice", step 3, wait_for`.
    pub field: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

type Checked = Result<(), PlanError>;

fn wrong(field: impl Into<String>, problem: impl Into<String>) -> Checked {
    Err(PlanError {
        field: field.into(),
        problem: problem.into(),
    })
}

impl Plan {
    /// Checks everything that the types do not.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Checked {
        if self.version != VERSION {
            return wrong(
                "version",
                format!("this build reads version {VERSION}, not {}", self.version),
            );
        }
        name("name", &self.name)?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !self.name.chars().all(plain) {
            return wrong("name", "use lower-case letters, digits and hyphens only");
        }
        time("limit_ms", self.limit_ms)?;
        self.check_cluster()?;
        if let Some(bug) = &self.bug {
            planted("bug", bug)?;
        }
        for (at, shown) in self.shows.iter().enumerate() {
            planted(&format!("shows {}, bug", at + 1), &shown.bug)?;
        }
        self.check_windows()?;
        self.check_steps()?;
        self.check_shows()?;
        self.check_labels()?;
        self.check_users()?;
        for (at, fault) in self.faults.iter().enumerate() {
            self.check_fault(&format!("fault {}", at + 1), fault)?;
        }
        self.check_rot()?;
        self.check_waits()
    }

    fn check_cluster(&self) -> Checked {
        let cluster = &self.cluster;
        if !(1..=MEMBERS_MAX).contains(&cluster.members) {
            return wrong(
                "cluster.members",
                format!("1 to {MEMBERS_MAX}, not {}", cluster.members),
            );
        }
        if !(1..=10_000).contains(&cluster.heartbeat_ms) {
            return wrong(
                "cluster.heartbeat_ms",
                format!("1 to 10000, not {}", cluster.heartbeat_ms),
            );
        }
        let least = cluster.heartbeat_ms * 5;
        if !(least..=60_000).contains(&cluster.election_ms) {
            return wrong(
                "cluster.election_ms",
                format!(
                    "five heartbeats ({least}) to 60000, not {}",
                    cluster.election_ms
                ),
            );
        }
        latency("network.latency_ms", self.network.latency_ms)?;
        rate("network.loss", self.network.loss, 0.5)?;
        self.check_drift()?;
        self.check_snapshots()?;
        self.check_tokens()?;
        let clients = self.clients.iter().map(|client| client.copies.unwrap_or(1));
        let clients = clients.fold(0_u64, u64::saturating_add);
        if clients > CLIENTS_MAX {
            return wrong(
                "client",
                format!("{clients} clients, the limit is {CLIENTS_MAX}"),
            );
        }
        if self.faults.len() > FAULTS_MAX {
            return wrong(
                "fault",
                format!("{} faults, the limit is {FAULTS_MAX}", self.faults.len()),
            );
        }
        Ok(())
    }

    fn check_shows(&self) -> Checked {
        let retries = self.clients.iter().any(|client| client.retry);
        if self.expect.max_gap_ms.is_some() && !retries {
            return wrong(
                "expect.max_gap_ms",
                "only clients with retry = true are measured, and there is none",
            );
        }
        let unknown = |name: &&String| !self.clients.iter().any(|client| client.is_called(name));
        for (at, shown) in self.shows.iter().enumerate() {
            if let Some(name) = shown.by.iter().find(unknown) {
                let problem = format!("no client is called \"{name}\"");
                return wrong(format!("shows {}, by", at + 1), problem);
            }
        }
        Ok(())
    }

    fn check_tokens(&self) -> Checked {
        let tokens = &self.tokens;
        if tokens.ttl_ms < self.cluster.heartbeat_ms * TOKEN_TTL_HEARTBEATS_MIN {
            let least = self.cluster.heartbeat_ms * TOKEN_TTL_HEARTBEATS_MIN;
            let problem = format!(
                "{TOKEN_TTL_HEARTBEATS_MIN} heartbeats ({least}) at least, not {}",
                tokens.ttl_ms
            );
            return wrong("tokens.ttl_ms", problem);
        }
        time("tokens.ttl_ms", tokens.ttl_ms)?;
        for (field, most) in [
            ("tokens.per_user_max", tokens.per_user_max),
            ("tokens.total_max", tokens.total_max),
        ] {
            if most == 0 {
                return wrong(field, "1 at least, or nobody could log in");
            }
        }
        Ok(())
    }

    fn check_windows(&self) -> Checked {
        let known = |name: &str| Window::ALL.into_iter().any(|window| window.name() == name);
        for (at, window) in self.windows.iter().enumerate() {
            let field = format!("window {}", at + 1);
            if !known(&window.name) {
                let names = Window::ALL.map(Window::name).join(", ");
                return wrong(
                    format!("{field}, name"),
                    format!("there is no \"{}\", only {names}", window.name),
                );
            }
            if let Some(member) = window.member {
                self.check_member(&format!("{field}, member"), member)?;
            }
            span(&format!("{field}, ms"), window.ms)?;
            rate(&format!("{field}, chance"), window.chance, 1.0)?;
        }
        let is_mark = |name: &str| Mark::ALL.into_iter().any(|mark| mark.name() == name);
        let unknown = |name: &&String| !known(name) && !is_mark(name);
        match self.expect.marks.keys().find(unknown) {
            Some(name) => {
                let names = Window::ALL.map(Window::name).join(", ");
                let marks = Mark::ALL.map(Mark::name).join(", ");
                let problem = format!("there is no \"{name}\", only {names}, {marks}");
                wrong("expect.marks", problem)
            }
            None => Ok(()),
        }
    }

    fn check_member(&self, field: &str, member: u64) -> Checked {
        let members = self.cluster.members;
        if (1..=members).contains(&member) {
            Ok(())
        } else {
            wrong(
                field,
                format!("members are numbered 1 to {members}, there is no {member}"),
            )
        }
    }

    fn check_members(&self, field: &str, members: &Members) -> Checked {
        match members {
            Members::One(member) => self.check_member(field, *member),
            Members::Rotate(list) if list.is_empty() => {
                wrong(field, "an empty list names no member")
            }
            Members::Rotate(list) => list
                .iter()
                .try_for_each(|member| self.check_member(field, *member)),
            Members::Named(_) => Ok(()),
        }
    }

    /// Every step with a description of where it stands.
    fn steps(&self) -> impl Iterator<Item = (String, &Step)> {
        let setup = self
            .setup
            .iter()
            .enumerate()
            .map(|(at, step)| (format!("setup, step {}", at + 1), step));
        let clients = self.clients.iter().flat_map(|client| {
            let describe = |at| format!("client \"{}\", step {}", client.name, at + 1);
            client
                .steps
                .iter()
                .enumerate()
                .map(move |(at, step)| (describe(at), step))
        });
        setup.chain(clients)
    }

    fn check_steps(&self) -> Checked {
        let mut names = BTreeSet::new();
        for (at, client) in self.clients.iter().enumerate() {
            let field = format!("client {}, name", at + 1);
            name(&field, &client.name)?;
            for name in client.names() {
                if names.contains(&name) {
                    return wrong(field, format!("two clients are called \"{name}\""));
                }
                names.insert(name);
            }
            if client.name == "setup" || client.name.starts_with("liveness") {
                return wrong(
                    field,
                    format!("\"{}\" is a name of the simulator's own", client.name),
                );
            }
            self.check_members(
                &format!("client \"{}\", member", client.name),
                &client.member,
            )?;
            if client.copies == Some(0) {
                return wrong(format!("client \"{}\", copies", client.name), "1 at least");
            }
        }
        for (at, step) in self.setup.iter().enumerate() {
            let when = &step.when;
            let others = [
                ("after_ms", when.after_ms.is_some()),
                ("repeat", when.repeat.is_some()),
                ("expect", when.expect.is_some()),
            ];
            let said = others
                .into_iter()
                .filter_map(|(field, said)| said.then_some(field));
            let awaited = step.waits().map(|(field, _)| field);
            if let Some(field) = awaited.chain(said).next() {
                let problem = "set-up steps run once, one after the other, until each is done";
                return wrong(format!("setup, step {}, {field}", at + 1), problem);
            }
        }
        for (field, step) in self.steps() {
            self.check_step(&field, step)?;
        }
        let of_client = |client: &Client| {
            let once = client.steps.iter().map(Step::times);
            once.fold(0, u64::saturating_add)
                .saturating_mul(client.copies.unwrap_or(1))
        };
        let total = self.clients.iter().map(of_client);
        let total = total.fold(self.setup.len() as u64, u64::saturating_add);
        if total > STEPS_MAX {
            return wrong(
                "client, steps",
                format!("{total} steps with repetitions, the limit is {STEPS_MAX}"),
            );
        }
        Ok(())
    }

    fn check_step(&self, field: &str, step: &Step) -> Checked {
        let when = &step.when;
        if let Some(members) = &when.member {
            self.check_members(&format!("{field}, member"), members)?;
        }
        if let Some(pause) = when.after_ms {
            span(&format!("{field}, after_ms"), pause)?;
        }
        if let Some(timeout) = when.timeout_ms {
            time(&format!("{field}, timeout_ms"), timeout)?;
        }
        if !(1..=STEPS_MAX).contains(&step.times()) {
            return wrong(
                format!("{field}, repeat"),
                format!("1 to {STEPS_MAX}, not {}", step.times()),
            );
        }
        if step.times() > 1 && when.label.is_some() {
            return wrong(
                format!("{field}, label"),
                "a repeated step has no single moment to wait for",
            );
        }
        if when.anonymous && (when.session.is_some() || when.use_token_of.is_some()) {
            return wrong(
                format!("{field}, anonymous"),
                "a step without a token has no session",
            );
        }
        let is_login = matches!(step.op, Op::Login { .. });
        for (name, said) in [
            ("anonymous", when.anonymous),
            ("use_token_of", when.use_token_of.is_some()),
        ] {
            if is_login && said {
                return wrong(format!("{field}, {name}"), "a login presents no token");
            }
        }
        if when.session.is_some() && when.use_token_of.is_some() {
            let problem = "a step presents one token: the session's or that of another login";
            return wrong(format!("{field}, use_token_of"), problem);
        }
        transaction::check(field, &step.op, 1)
    }

    fn check_labels(&self) -> Checked {
        let copied = |client: &&Client| {
            client.copies.is_some() && client.steps.iter().any(|step| step.when.label.is_some())
        };
        if let Some(client) = self.clients.iter().find(copied) {
            return wrong(
                format!("client \"{}\", copies", client.name),
                "a step with a label that several clients run has no single moment to wait for",
            );
        }
        let mut labels: BTreeMap<&str, &Step> = BTreeMap::new();
        for (field, step) in self.steps() {
            let Some(label) = &step.when.label else {
                continue;
            };
            name(&format!("{field}, label"), label)?;
            if labels.insert(label, step).is_some() {
                return wrong(
                    format!("{field}, label"),
                    format!("two steps are labelled \"{label}\""),
                );
            }
        }
        let known = |field: String, label: &str| match labels.get(label) {
            Some(step) => Ok(*step),
            None => Err(PlanError {
                field,
                problem: format!("no step is labelled \"{label}\""),
            }),
        };
        for (field, step) in self.steps() {
            for (name, label) in step.waits() {
                known(format!("{field}, {name}"), label)?;
            }
            if let Some(label) = &step.when.use_token_of {
                let field = format!("{field}, use_token_of");
                if !matches!(known(field.clone(), label)?.op, Op::Login { .. }) {
                    return wrong(field, format!("the step labelled \"{label}\" is no login"));
                }
            }
        }
        for (at, fault) in self.faults.iter().enumerate() {
            for (name, label) in [
                ("wait_for", &fault.when.wait_for),
                ("wait_for_start", &fault.when.wait_for_start),
            ] {
                if let Some(label) = label {
                    known(format!("fault {}, {name}", at + 1), label)?;
                }
            }
        }
        Ok(())
    }

    /// A login of a user whom no step creates is a slip of the pen, unless the step says that it expects a refusal.
    fn check_users(&self) -> Checked {
        let created: BTreeSet<&str> = self
            .steps()
            .filter_map(|(_, step)| match &step.op {
                Op::UserAdd { user, .. } => Some(user.as_str()),
                _ => None,
            })
            .collect();
        for (field, step) in self.steps() {
            if let Op::Login { user, .. } = &step.op
                && !created.contains(user.as_str())
                && step.when.expect.is_none()
            {
                let problem = format!(
                    "no step creates \"{user}\"; if that is meant, say expect = \"refused\""
                );
                return wrong(format!("{field}, user"), problem);
            }
        }
        match &self.liveness {
            Some(liveness) if !created.contains(liveness.user.as_str()) => wrong(
                "liveness.user",
                format!("no step creates \"{}\"", liveness.user),
            ),
            None if self.steps().any(|(_, step)| step.op == Op::AuthEnable {}) => wrong(
                "liveness",
                "a plan that switches auth on must name a user with role root and its last password, or nobody could \
                 show that the cluster works again",
            ),
            _ => Ok(()),
        }
    }

    fn check_fault(&self, field: &str, fault: &Fault) -> Checked {
        span(&format!("{field}, at_ms"), fault.when.at_ms)?;
        if let Some(duration) = fault.when.for_ms {
            span(&format!("{field}, for_ms"), duration)?;
            if !fault.kind.lasts() {
                return wrong(
                    format!("{field}, for_ms"),
                    "this kind of fault is over at once",
                );
            }
        }
        if fault.when.wait_for.is_some() && fault.when.wait_for_start.is_some() {
            return wrong(
                format!("{field}, wait_for"),
                "wait for the start or for the end of a step, not for both",
            );
        }
        match &fault.kind {
            FaultKind::Kill { member }
            | FaultKind::Restart { member }
            | FaultKind::Pause { member }
            | FaultKind::Resume { member }
            | FaultKind::CutOff { member, .. }
            | FaultKind::CutPeers { member }
            | FaultKind::Isolate { member } => {
                self.check_members(&format!("{field}, member"), member)
            }
            FaultKind::Partition { a, b, .. } => self.check_sides(field, a, b),
            FaultKind::SlowLink { a, b, ms, .. } => {
                latency(&format!("{field}, ms"), *ms)?;
                self.check_sides(field, a, b)
            }
            FaultKind::Latency { ms } => latency(&format!("{field}, ms"), *ms),
            FaultKind::Loss { rate: share } => rate(&format!("{field}, rate"), *share, 0.9),
            FaultKind::ClockDrift { member, .. } | FaultKind::ClockJump { member, .. } => {
                self.check_members(&format!("{field}, member"), member)?;
                clock::fault(field, &fault.kind)
            }
            FaultKind::PowerCut { member, .. }
            | FaultKind::DiskRot { member, .. }
            | FaultKind::DiskError { member, .. }
            | FaultKind::DiskFull { member, .. }
            | FaultKind::DiskStall { member }
            | FaultKind::DiskSlow { member, .. } => {
                self.check_members(&format!("{field}, member"), member)?;
                disk::fault(field, &fault.kind)
            }
            FaultKind::Heal {} => Ok(()),
        }
    }

    fn check_sides(&self, field: &str, a: &[u64], b: &[u64]) -> Checked {
        for (name, side) in [("a", a), ("b", b)] {
            let field = format!("{field}, {name}");
            if side.is_empty() {
                return wrong(field, "each side needs a member");
            }
            side.iter()
                .try_for_each(|member| self.check_member(&field, *member))?;
        }
        match a.iter().find(|member| b.contains(member)) {
            Some(both) => wrong(
                format!("{field}, b"),
                format!("member {both} stands on both sides"),
            ),
            None => Ok(()),
        }
    }
}

fn planted(field: &str, bug: &str) -> Checked {
    if Bug::named(bug).is_empty() {
        return wrong(field, no_such_bug(bug));
    }
    Ok(())
}

fn name(field: &str, text: &str) -> Checked {
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return wrong(
            field,
            format!("1 to {NAME_BYTES_MAX} bytes, not {}", text.len()),
        );
    }
    Ok(())
}

fn time(field: &str, ms: u64) -> Checked {
    if ms == 0 || ms > TIME_MS_MAX {
        return wrong(field, format!("1 to {TIME_MS_MAX} ms, not {ms}"));
    }
    Ok(())
}

fn span(field: &str, span: Span) -> Checked {
    if span.low > span.high {
        return wrong(
            field,
            format!("[{}, {}] has its lowest number last", span.low, span.high),
        );
    }
    if span.high > TIME_MS_MAX {
        return wrong(
            field,
            format!("at most {TIME_MS_MAX} ms, not {}", span.high),
        );
    }
    Ok(())
}

fn latency(field: &str, ms: Span) -> Checked {
    span(field, ms)?;
    if ms.high == 0 || ms.high > 60_000 {
        return wrong(field, format!("1 to 60000 ms, not {}", ms.high));
    }
    Ok(())
}

fn rate(field: &str, share: f64, most: f64) -> Checked {
    if (0.0..=most).contains(&share) {
        Ok(())
    } else {
        wrong(field, format!("0 to {most}, not {share}"))
    }
}

#[cfg(test)]
mod tests;
