//! Faults as values: what strikes, whom, when and for how long.

use super::split::split;
use super::{Members, Span};
use serde::{Deserialize, Deserializer, Serialize};

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    /// What strikes.
    #[serde(flatten)]
    pub kind: FaultKind,
    /// The rest.
    #[serde(flatten)]
    pub when: FaultTime,
}

/// When a fault strikes and for how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultTime {
    /// Virtual time since the clients started, or since the label was reached, milliseconds.
    pub at_ms: Span,
    /// Counts from the moment in which the step of this label returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
    /// Counts from the moment in which the step of this label was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_start: Option<String>,
    /// How long it lasts, milliseconds; without it, until something undoes it or the healing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<Span>,
}

/// Names of the fields of [`FaultTime`]; a test keeps the two in step.
const TIME_FIELDS: [&str; 4] = ["at_ms", "wait_for", "wait_for_start", "for_ms"];

/// What strikes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FaultKind {
    /// Cuts the power of a member: what its disk had not synced may be lost or torn. `for_ms` later it boots again.
    Kill {
        /// Whose.
        member: Members,
    },
    /// Boots a member again, killed before or not.
    Restart {
        /// Which.
        member: Members,
    },
    /// Freezes a member; its connections stay open. `for_ms` later it goes on.
    Pause {
        /// Which.
        member: Members,
    },
    /// Lets a frozen member go on.
    Resume {
        /// Which.
        member: Members,
    },
    /// Cuts the links between two groups of members; clients still reach both.
    Partition {
        /// One side.
        a: Vec<u64>,
        /// The other side.
        b: Vec<u64>,
        /// Which way nothing passes.
        #[serde(default, skip_serializing_if = "Direction::is_both")]
        direction: Direction,
    },
    /// Cuts a member off from its peers, so that it lags; clients still reach it.
    CutOff {
        /// Which.
        member: Members,
        /// One way: nothing reaches it, and what it sends arrives.
        #[serde(default, skip_serializing_if = "Direction::is_both")]
        direction: Direction,
    },
    /// Cuts a member, the leader as a rule, off from its peers until the others have a leader; `for_ms` later it is joined
    /// to them again. Clients still reach it: what they propose to it meanwhile is a log tail that must be removed.
    CutPeers {
        /// Which.
        member: Members,
    },
    /// Cuts a member off from everything, clients included.
    Isolate {
        /// Which.
        member: Members,
    },
    /// Makes every message travel this long.
    Latency {
        /// How long, milliseconds.
        ms: Span,
    },
    /// Makes the links between two groups of members slow: they hold messages back in bursts of this length.
    SlowLink {
        /// One side.
        a: Vec<u64>,
        /// The other side.
        b: Vec<u64>,
        /// Length of a burst, milliseconds.
        ms: Span,
        /// Which way is slow.
        #[serde(default, skip_serializing_if = "Direction::is_both")]
        direction: Direction,
    },
    /// Loses this share of all messages.
    Loss {
        /// 0 to below 1.
        rate: f64,
    },
    /// Makes a member's clock run fast, or slow below 0: its ticks, and how long its tokens live. Instead of what the plan
    /// says for it.
    ClockDrift {
        /// Whose.
        member: Members,
        /// How much, millionths.
        ppm: i64,
    },
    /// Puts a member's time of day forward, or back below 0; how fast it runs stays.
    ClockJump {
        /// Whose.
        member: Members,
        /// How far from the true time, milliseconds.
        ms: i64,
    },
    /// Cuts a member's power after so many more operations of its disk, so that it fails inside a commit. `for_ms` later
    /// the member boots again.
    PowerCut {
        /// Whose.
        member: Members,
        /// Reads, writes and syncs until then.
        operations: Span,
    },
    /// Changes bytes on a member's disk. Its power is cut before, and `for_ms` later it boots from what is left; or it
    /// goes on meanwhile.
    DiskRot {
        /// Whose.
        member: Members,
        /// How many bytes, all of them in blocks in use.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        bytes: u64,
        /// Leaves its power on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        running: bool,
    },
    /// Lets operations of a member's disk fail with an input/output error. At its end, a member that stopped for it boots
    /// again.
    DiskError {
        /// Whose.
        member: Members,
        /// Which operations.
        operation: DiskOperation,
        /// How many of them; all until the end if not said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
    /// Leaves a member's disk so much room, bytes; a write that needs more fails. At its end there is room again, and a
    /// member that stopped for it boots again.
    DiskFull {
        /// Whose.
        member: Members,
        /// Room left, bytes, in blocks of 4096.
        room: Span,
    },
    /// Lets a member's disk make nothing durable, as if it had stopped.
    DiskStall {
        /// Whose.
        member: Members,
    },
    /// Makes every sync of a member's disk take so long.
    DiskSlow {
        /// Whose.
        member: Members,
        /// How long, milliseconds.
        ms: Span,
    },
    /// Undoes everything that other faults did, but rot.
    Heal {},
}

/// An operation of a disk that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskOperation {
    /// Writes.
    Write,
    /// Syncs. What one was to make durable is then lost in part.
    Sync,
}

fn one() -> u64 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// Which way nothing passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Neither way.
    #[default]
    Both,
    /// From `a` to `b` nothing passes, from `b` to `a` everything does.
    OneWay,
}

impl Direction {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_both(&self) -> bool {
        *self == Direction::Both
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fault, D::Error> {
        let (when, kind) = split(deserializer, &TIME_FIELDS)?;
        Ok(Fault { kind, when })
    }
}

impl FaultKind {
    /// Whether `for_ms` means anything for it.
    pub(crate) fn lasts(&self) -> bool {
        !matches!(
            self,
            FaultKind::Restart { .. }
                | FaultKind::Resume { .. }
                | FaultKind::DiskRot { running: true, .. }
                | FaultKind::Heal {}
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_fields_is_complete() {
        let time = FaultTime {
            at_ms: Span { low: 1, high: 2 },
            wait_for: Some("a".into()),
            wait_for_start: Some("b".into()),
            for_ms: Some(Span { low: 3, high: 3 }),
        };
        let table = toml::Table::try_from(time).unwrap();
        let mut names = TIME_FIELDS.to_vec();
        names.sort_unstable();
        assert_eq!(table.keys().map(String::as_str).collect::<Vec<_>>(), names);
    }

    #[test]
    fn a_fault_survives_being_written_and_read() {
        for text in [
            "kind = \"partition\"\na = [1]\nb = [2, 3]\ndirection = \"one-way\"\nat_ms = [5, 9]\nfor_ms = 70\n",
            "kind = \"power-cut\"\nmember = \"leader\"\noperations = [0, 40]\nfor_ms = 70\n",
            "kind = \"disk-error\"\nmember = 2\noperation = \"sync\"\nnext = 3\n",
            "kind = \"disk-rot\"\nmember = 2\nbytes = 3\nrunning = true\n",
            "kind = \"disk-rot\"\nmember = 2\n",
        ] {
            let fault: Fault = toml::from_str(text).unwrap();
            assert_eq!(
                toml::from_str::<Fault>(&toml::to_string(&fault).unwrap()).unwrap(),
                fault
            );
        }
    }
}
