//! The trace hash: one number for everything that happened in a run. The same build, plan and seed must give the same
//! number in another process, with any log level, next to any number of other runs; if not, the run was not
//! deterministic.
//!
//! Hashed are the events of the history and what is not in it (published views, message counts at each event, the state
//! of the disks, the generator at the end), each with its virtual time in nanoseconds: a difference in any draw, message
//! or disk operation moves a time soon after. The log plays no part.

use serde::Serialize;
use std::io;
use xxhash_rust::xxh3::Xxh3Default;

/// A running hash over events.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    hash: Xxh3Default,
    /// What was noted, a line each, if somebody wants to see where two traces part.
    lines: Option<Vec<String>>,
}

impl Trace {
    /// From now on keeps what is noted.
    pub(crate) fn keep(&mut self) {
        self.lines = Some(Vec::new());
    }

    /// What was noted since [`Trace::keep`].
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }

    /// Takes note of `what`, which happened at `nanos` of virtual time, when `messages` had been sent.
    pub(crate) fn note(&mut self, nanos: u64, messages: u64, what: &impl Serialize) {
        self.hash.update(&nanos.to_le_bytes());
        self.hash.update(&messages.to_le_bytes());
        if let Some(lines) = &mut self.lines {
            let what = serde_json::to_string(what).unwrap_or_default();
            lines.push(format!("{nanos} ns, {messages} messages: {what}"));
        }
        serde_json::to_writer(Hashing(&mut self.hash), what)
            .expect("events have string keys and a hash takes all bytes");
    }

    /// Takes note of a number.
    pub(crate) fn number(&mut self, number: u64) {
        self.hash.update(&number.to_le_bytes());
        if let Some(lines) = &mut self.lines {
            lines.push(number.to_string());
        }
    }

    /// The hash of all that was noted.
    pub(crate) fn digest(&self) -> u64 {
        self.hash.digest()
    }
}

struct Hashing<'h>(&'h mut Xxh3Default);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatehouse_judge::history::What;

    fn traced(nanos: u64, messages: u64, what: &What) -> u64 {
        let mut trace = Trace::default();
        trace.note(nanos, messages, what);
        trace.digest()
    }

    #[test]
    fn every_part_of_an_event_counts() {
        let base = traced(5, 7, &What::Healed);
        assert_eq!(traced(5, 7, &What::Healed), base);
        assert_ne!(traced(6, 7, &What::Healed), base);
        assert_ne!(traced(5, 8, &What::Healed), base);
        assert_ne!(
            traced(
                5,
                7,
                &What::Fault {
                    what: "kill n1".into()
                }
            ),
            base
        );
    }
}
