//! One event as it stands in a line of the file. The fields of every kind are read straight into their places: to find
//! the kind first and the fields afterwards would mean to store each line once more, and would lose the columns.

use crate::history::{Applied, Event, Installed, Op, Outcome, TokenNote, What};
use crate::text::Text;
use serde::Deserialize;

/// The `event` of a line.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Invoke,
    Return,
    Proposed,
    Served,
    Applied,
    Started,
    Truncated,
    SnapshotSent,
    Installed,
    Compared,
    Role,
    Fault,
    Healed,
    Probe,
}

/// Every field that some kind of event has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    at_us: u64,
    event: Kind,
    call: Option<u64>,
    client: Option<Text>,
    member: Option<u64>,
    token: Option<u64>,
    op: Option<Box<Op>>,
    outcome: Option<Outcome>,
    request_id: Option<u64>,
    index: Option<u64>,
    first_index: Option<u64>,
    to: Option<u64>,
    equal: Option<bool>,
    term: Option<u64>,
    kind: Option<Text>,
    user: Option<Text>,
    header_auth_revision: Option<u64>,
    decision: Option<Text>,
    auth_revision: Option<u64>,
    auth_enabled: Option<bool>,
    kv_revision: Option<i64>,
    digest: Option<u64>,
    tokens: Option<Vec<TokenNote>>,
    leader: Option<bool>,
    what: Option<String>,
    kv_hash: Option<u32>,
    auth_hash: Option<u64>,
}

/// The field's value, or the sentence that it is missing.
fn need<T>(name: &str, field: &mut Option<T>) -> Result<T, String> {
    field
        .take()
        .ok_or_else(|| format!("missing field `{name}`"))
}

impl Line {
    /// The event.
    ///
    /// # Errors
    /// A field that this kind of event needs and the line lacks, or one that it does not have.
    pub(super) fn into_event(mut self) -> Result<Event, String> {
        let at_us = self.at_us;
        let what = self.take_what()?;
        match self.left_over() {
            None => Ok(Event { at_us, what }),
            Some(name) => Err(format!("unknown field `{name}` in this kind of event")),
        }
    }

    fn take_what(&mut self) -> Result<What, String> {
        Ok(match self.event {
            Kind::Invoke => What::Invoke {
                call: need("call", &mut self.call)?,
                client: need("client", &mut self.client)?,
                member: self.take_member()?,
                token: self.token.take(),
                op: need("op", &mut self.op)?,
            },
            Kind::Return => What::Return {
                call: need("call", &mut self.call)?,
                outcome: need("outcome", &mut self.outcome)?,
            },
            Kind::Proposed => What::Proposed {
                member: self.take_member()?,
                call: need("call", &mut self.call)?,
                request_id: need("request_id", &mut self.request_id)?,
            },
            Kind::Served => What::Served {
                member: self.take_member()?,
                call: need("call", &mut self.call)?,
                index: need("index", &mut self.index)?,
            },
            Kind::Applied => What::Applied(Box::new(self.take_applied()?)),
            Kind::Started => What::Started {
                member: self.take_member()?,
                index: need("index", &mut self.index)?,
            },
            Kind::Truncated => What::Truncated {
                member: self.take_member()?,
                first_index: need("first_index", &mut self.first_index)?,
            },
            Kind::SnapshotSent => What::SnapshotSent {
                member: self.take_member()?,
                to: need("to", &mut self.to)?,
                index: need("index", &mut self.index)?,
            },
            Kind::Installed => What::Installed(Box::new(Installed {
                member: self.take_member()?,
                index: need("index", &mut self.index)?,
                term: need("term", &mut self.term)?,
                auth_revision: need("auth_revision", &mut self.auth_revision)?,
                auth_enabled: need("auth_enabled", &mut self.auth_enabled)?,
                kv_revision: need("kv_revision", &mut self.kv_revision)?,
                digest: need("digest", &mut self.digest)?,
            })),
            Kind::Compared => What::Compared {
                member: self.take_member()?,
                index: need("index", &mut self.index)?,
                equal: need("equal", &mut self.equal)?,
            },
            Kind::Role => What::Role {
                member: self.take_member()?,
                term: need("term", &mut self.term)?,
                leader: need("leader", &mut self.leader)?,
            },
            Kind::Fault => What::Fault {
                what: need("what", &mut self.what)?,
            },
            Kind::Healed => What::Healed,
            Kind::Probe => What::Probe {
                member: self.take_member()?,
                index: need("index", &mut self.index)?,
                kv_hash: need("kv_hash", &mut self.kv_hash)?,
                auth_hash: need("auth_hash", &mut self.auth_hash)?,
                digest: need("digest", &mut self.digest)?,
            },
        })
    }

    fn take_member(&mut self) -> Result<u64, String> {
        need("member", &mut self.member)
    }

    fn take_applied(&mut self) -> Result<Applied, String> {
        Ok(Applied {
            member: self.take_member()?,
            index: need("index", &mut self.index)?,
            term: need("term", &mut self.term)?,
            request_id: need("request_id", &mut self.request_id)?,
            kind: need("kind", &mut self.kind)?,
            user: need("user", &mut self.user)?,
            header_auth_revision: need("header_auth_revision", &mut self.header_auth_revision)?,
            decision: need("decision", &mut self.decision)?,
            auth_revision: need("auth_revision", &mut self.auth_revision)?,
            auth_enabled: need("auth_enabled", &mut self.auth_enabled)?,
            kv_revision: need("kv_revision", &mut self.kv_revision)?,
            digest: need("digest", &mut self.digest)?,
            tokens: self.tokens.take().unwrap_or_default(),
        })
    }

    /// A field that the event's kind did not take.
    fn left_over(&self) -> Option<&'static str> {
        let fields = [
            ("call", self.call.is_some()),
            ("client", self.client.is_some()),
            ("member", self.member.is_some()),
            ("token", self.token.is_some()),
            ("op", self.op.is_some()),
            ("outcome", self.outcome.is_some()),
            ("request_id", self.request_id.is_some()),
            ("index", self.index.is_some()),
            ("first_index", self.first_index.is_some()),
            ("to", self.to.is_some()),
            ("equal", self.equal.is_some()),
            ("term", self.term.is_some()),
            ("kind", self.kind.is_some()),
            ("user", self.user.is_some()),
            ("header_auth_revision", self.header_auth_revision.is_some()),
            ("decision", self.decision.is_some()),
            ("auth_revision", self.auth_revision.is_some()),
            ("auth_enabled", self.auth_enabled.is_some()),
            ("kv_revision", self.kv_revision.is_some()),
            ("digest", self.digest.is_some()),
            ("tokens", self.tokens.is_some()),
            ("leader", self.leader.is_some()),
            ("what", self.what.is_some()),
            ("kv_hash", self.kv_hash.is_some()),
            ("auth_hash", self.auth_hash.is_some()),
        ];
        fields
            .into_iter()
            .find_map(|(name, is_left)| is_left.then_some(name))
    }
}
