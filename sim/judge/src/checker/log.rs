//! The agreed log, joined from what each member says that it applied. Where members disagree (P9), or apply an entry
//! twice or not at all (P11), it ends, because nothing behind that point is known.

use super::describe;
use super::findings::Findings;

use super::run::{Moment, Run};
use crate::history::{Applied, Event, History, Installed, Op, What};
use crate::numbered::Numbered;
use crate::words;
use std::collections::BTreeMap;

/// Entries that no call asks for: reports of tokens' use, and the end of those that nobody uses.
pub(super) const OWN_KINDS: [&str; 2] = ["token-refresh", "token-expire"];

/// One entry of the agreed log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'h> {
    /// As the first member said it.
    pub(super) applied: &'h Applied,
    /// When that was.
    pub(super) seen: Moment,
    /// The call that it is for; `None` for raft's own and the cluster's own.
    pub(super) call: Option<u64>,
}

impl Entry<'_> {
    /// Whether it was accepted, so that it has taken effect.
    pub(super) fn is_ok(&self) -> bool {
        self.applied.decision == "ok"
    }
}

/// The agreed log.
#[derive(Debug, Default)]
pub(super) struct Log<'h> {
    entries: Numbered<Entry<'h>>,
    /// Index before the first entry: that of the empty state.
    pub(super) base: u64,
    /// Last index up to which the log is whole and agreed.
    pub(super) end: u64,
    /// Index of each call's first entry.
    by_call: Numbered<u64>,
    /// Indices of all entries of the few calls that have more than one.
    repeated: BTreeMap<u64, Vec<u64>>,
}

impl<'h> Log<'h> {
    /// Joins the members' records.
    pub(super) fn agree(history: &'h History, run: &Run<'h>, findings: &mut Findings) -> Log<'h> {
        let mut log = Log {
            end: u64::MAX,
            ..Log::default()
        };
        let mut members = Members::default();
        for (event, Event { at_us, what }) in history.events.iter().enumerate() {
            let seen = Moment {
                event,
                at_us: *at_us,
            };
            match what {
                What::Applied(applied) => {
                    members.apply(seen, applied, findings);
                    log.add(seen, applied, run, findings);
                }
                What::Installed(installed) => members.install(seen, installed, findings),
                What::Started { member, index } => members.start(*member, *index),
                What::Served {
                    member,
                    call,
                    index,
                } => members.serve(seen, *member, *call, *index, findings),
                _ => {}
            }
        }
        log.close(members.first_start.unwrap_or(0), findings);
        log.check_once(run, findings);
        log
    }

    /// The entry at an index, whether agreed or not.
    pub(super) fn entry(&self, index: u64) -> Option<&Entry<'h>> {
        self.entries.get(&index)
    }

    /// Every entry in order, whether agreed or not.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<'h>> {
        self.entries.values()
    }

    /// The entry that decided a call: the accepted one, else the last refused one. A login that was told to start over
    /// has not been decided by that.
    pub(super) fn decisive(&self, call: u64) -> Option<&Entry<'h>> {
        let first = self.by_call.get(&call)?;
        let indices = match self.repeated.get(&call) {
            Some(indices) => indices,
            None => std::slice::from_ref(first),
        };
        let entries = indices.iter().map(|index| &self.entries[index]);
        let mut decided = entries.filter(|entry| entry.applied.decision != "again");
        let accepted = decided.clone().find(|entry| entry.is_ok());
        accepted.or_else(|| decided.next_back())
    }

    fn add(&mut self, seen: Moment, applied: &'h Applied, run: &Run<'h>, findings: &mut Findings) {
        if let Some(first) = self.entries.get(&applied.index) {
            if let Some(difference) = difference(first.applied, applied) {
                let (one, other) = (first.applied.member, applied.member);
                let index = applied.index;
                let calls = first.call.into_iter().collect();
                let of = first.call.map_or_else(String::new, |call| {
                    format!(", {}", describe::call(run.call(call)))
                });
                let sentence =
                    format!("n{one} and n{other} differ at index {index}{of}: {difference}");
                findings.violation(seen.event, "P9", &sentence, calls);
                self.end = self.end.min(index.saturating_sub(1));
            }
            return;
        }
        let call = self.join(seen, applied, run, findings);
        if let Some(call) = call {
            self.note_entry(call, applied.index);
        }
        self.entries.insert(
            applied.index,
            Entry {
                applied,
                seen,
                call,
            },
        );
    }

    fn note_entry(&mut self, call: u64, index: u64) {
        if let Some(first) = self.by_call.get(&call) {
            let indices = self.repeated.entry(call).or_insert_with(|| vec![*first]);
            indices.push(index);
        } else {
            self.by_call.insert(call, index);
        }
    }

    /// Finds the call that an entry is for.
    fn join(
        &mut self,
        seen: Moment,
        applied: &Applied,
        run: &Run<'h>,
        findings: &mut Findings,
    ) -> Option<u64> {
        let Applied {
            index,
            request_id,
            kind,
            ..
        } = applied;
        if (*request_id == 0 && kind.is_empty()) || OWN_KINDS.contains(&kind.as_str()) {
            return None;
        }
        let proposal = run.proposals.get(request_id);
        let doubt = match proposal {
            None => Some(format!(
                "the `{kind}` entry at index {index} belongs to no call that was proposed"
            )),
            Some((call, proposed)) if seen < *proposed => Some(format!(
                "call {call} is applied at index {index} before it is proposed"
            )),
            Some((call, _)) if !has_kind(run.call(*call).op, kind) => Some(format!(
                "the entry at index {index} says `{kind}`, but is for {}",
                describe::call(run.call(*call))
            )),
            Some(_) => None,
        };
        if let Some(doubt) = doubt {
            findings.doubt(seen.event, doubt, Vec::new());
            self.end = self.end.min(index.saturating_sub(1));
        }
        proposal.map(|(call, _)| *call)
    }

    /// Finds where the log begins and up to where it has no holes.
    fn close(&mut self, first_start: u64, findings: &mut Findings) {
        self.base = first_start;
        let mut whole = self.base;
        let mut last_term = 0;
        for (index, entry) in self.entries.iter() {
            if entry.applied.term < last_term {
                let term = entry.applied.term;
                let doubt =
                    format!("index {index} is of term {term}, after one of term {last_term}");
                findings.doubt(entry.seen.event, doubt, Vec::new());
                break;
            }
            last_term = entry.applied.term;
            let missing = whole.saturating_add(1);
            if index > missing {
                let doubt = format!("no member's record of index {missing} is in the history");
                findings.doubt(entry.seen.event, doubt, Vec::new());
                break;
            }
            whole = whole.max(index);
        }
        self.end = self.end.min(whole);
    }

    /// Each call takes effect once, under whatever request ids.
    fn check_once(&self, run: &Run<'_>, findings: &mut Findings) {
        for (call, indices) in &self.repeated {
            let entries = indices.iter().map(|index| &self.entries[index]);
            let mut effects = entries.filter(|entry| entry.is_ok());
            if let (Some(first), Some(second)) = (effects.next(), effects.next()) {
                let sentence = format!(
                    "{} took effect twice, at index {} and again at index {}",
                    describe::call(run.call(*call)),
                    first.applied.index,
                    second.applied.index
                );
                findings.violation(second.seen.event, "P11", &sentence, vec![*call]);
            }
        }
    }
}

/// How far each member is.
#[derive(Debug, Default)]
struct Members {
    applied: BTreeMap<u64, u64>,
    /// Lowest index that a member had on disk when it first started.
    first_start: Option<u64>,
}

impl Members {
    fn start(&mut self, member: u64, index: u64) {
        if self.applied.insert(member, index).is_none() {
            self.first_start = Some(self.first_start.map_or(index, |first| first.min(index)));
        }
    }

    fn apply(&mut self, seen: Moment, applied: &Applied, findings: &mut Findings) {
        let Applied { member, index, .. } = applied;
        let Some(last) = self.applied.insert(*member, *index) else {
            return;
        };
        if last.checked_add(1) == Some(*index) {
            return;
        }
        let sentence = if *index > last {
            format!(
                "n{member} went on to index {index} from index {last} and left out what is between"
            )
        } else {
            format!("n{member} applied index {index} again after index {last}, without a restart")
        };
        findings.violation(seen.event, "P11", &sentence, Vec::new());
    }

    /// A snapshot takes a member forward over entries that it never applies, and only forward.
    fn install(&mut self, seen: Moment, installed: &Installed, findings: &mut Findings) {
        let Installed { member, index, .. } = installed;
        let last = self.applied.insert(*member, *index);
        if let Some(last) = last.filter(|last| last >= index) {
            let sentence = format!(
                "n{member} installed a snapshot of index {index} over the state of index {last}"
            );
            findings.violation(seen.event, "P11", &sentence, Vec::new());
        }
    }

    fn serve(&self, seen: Moment, member: u64, call: u64, index: u64, findings: &mut Findings) {
        let applied = self.applied.get(&member).copied().unwrap_or(0);
        if index > applied {
            let sentence = format!(
                "n{member} answered call {call} from index {index}, but had applied no more than {applied}"
            );
            findings.violation(seen.event, "P4", &sentence, vec![call]);
        }
    }
}

/// What two members' records of one index differ in, in words.
fn difference(one: &Applied, other: &Applied) -> Option<String> {
    if is_same(one, other) {
        return None;
    }
    let fields = [
        ("term", one.term.to_string(), other.term.to_string()),
        (
            "request id",
            one.request_id.to_string(),
            other.request_id.to_string(),
        ),
        ("operation", one.kind.to_string(), other.kind.to_string()),
        ("user", one.user.to_string(), other.user.to_string()),
        (
            "stamped auth revision",
            one.header_auth_revision.to_string(),
            other.header_auth_revision.to_string(),
        ),
        (
            "decision",
            one.decision.to_string(),
            other.decision.to_string(),
        ),
        (
            "auth revision",
            one.auth_revision.to_string(),
            other.auth_revision.to_string(),
        ),
        (
            "auth flag",
            one.auth_enabled.to_string(),
            other.auth_enabled.to_string(),
        ),
        (
            "key-value revision",
            one.kv_revision.to_string(),
            other.kv_revision.to_string(),
        ),
        ("digest", one.digest.to_string(), other.digest.to_string()),
        (
            "tokens",
            words::tokens(&one.tokens),
            words::tokens(&other.tokens),
        ),
    ];
    let (name, one, other) = fields.into_iter().find(|(_, one, other)| one != other)?;
    Some(format!("{name} `{one}` and `{other}`"))
}

/// Whether two members' records of one index are equal.
fn is_same(one: &Applied, other: &Applied) -> bool {
    let Applied {
        member: _,
        index,
        term,
        request_id,
        kind,
        user,
        header_auth_revision,
        decision,
        auth_revision,
        auth_enabled,
        kv_revision,
        digest,
        tokens,
    } = one;
    *index == other.index
        && *term == other.term
        && *request_id == other.request_id
        && *kind == other.kind
        && *user == other.user
        && *header_auth_revision == other.header_auth_revision
        && *decision == other.decision
        && *auth_revision == other.auth_revision
        && *auth_enabled == other.auth_enabled
        && *kv_revision == other.kv_revision
        && *digest == other.digest
        && *tokens == other.tokens
}

/// Whether an entry's kind is that of the operation: its tag in histories and plans, or, for a login, etcd's name.
fn has_kind(op: &Op, kind: &str) -> bool {
    words::kind(op) == kind || matches!(op, Op::Login { .. }) && kind == "authenticate"
}
