//! Histories as files: JSON lines, the header first, then one event a line, at last the number of events: so a file that
//! was cut between two lines is not taken for a shorter history. A file is outside input, so every defect is
//! an error that says where it is and what is wrong; nothing is repaired and nothing is skipped.

use crate::history::{Event, FORMAT_VERSION, Header, History, What};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// What the header's `format` says.
pub const FORMAT: &str = "gatehouse-history";

/// Longest line in bytes: ten times the largest request that a server takes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Most events in a file: about a hundred times a long run, and some gigabytes of memory.
pub const EVENTS_MAX: usize = 10_000_000;

/// Most members that a history speaks of; far above any cluster.
pub const MEMBERS_MAX: u64 = 1_000;

/// Why a history could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file system refused.
    #[error("{}: {cause}", file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// What it said.
        cause: io::Error,
    },
    /// The file holds nothing.
    #[error("{}: the file is empty; a history begins with a header line", file.display())]
    Empty {
        /// Which file.
        file: PathBuf,
    },
    /// The header says a version that this program does not know.
    #[error(
        "{}: the file has format version {version}, this program reads up to {FORMAT_VERSION}",
        file.display()
    )]
    TooNew {
        /// Which file.
        file: PathBuf,
        /// The file's version.
        version: u64,
    },
    /// The file is not a history.
    #[error("{}:{line}:{column}: {what}", file.display())]
    Malformed {
        /// Which file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Byte in the line, from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
}

/// Reads a history.
///
/// # Errors
/// [`HistoryError`], for the first defect in the file. Times that decrease and answers without a question are defects.
pub fn read_history(path: impl AsRef<Path>) -> Result<History, HistoryError> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|cause| io_error(path, cause))?;
    let mut lines = Lines {
        file: path,
        input: BufReader::new(file),
        number: 0,
    };
    let Some(first) = lines.next_line()? else {
        let file = path.to_owned();
        return Err(HistoryError::Empty { file });
    };
    let header = header(&lines, &first)?;
    let mut order = Order::default();
    let mut events = Vec::new();
    loop {
        let Some(line) = lines.next_line()? else {
            let what = "the last line is missing, which says how many events there are: the file was cut off";
            return Err(lines.error(1, what.to_owned()));
        };
        if let Ok(End { end }) = serde_json::from_str(&line) {
            lines.end(end, events.len())?;
            break;
        }
        if events.len() == EVENTS_MAX {
            return Err(lines.error(1, format!("more than {EVENTS_MAX} events")));
        }
        let event: Event = serde_json::from_str(&line).map_err(|cause| lines.json(&cause))?;
        order.follow(&event).map_err(|what| lines.error(1, what))?;
        events.push(event);
    }
    Ok(History { header, events })
}

/// Writes a history, in place of what the file held.
///
/// # Errors
/// [`HistoryError::Io`].
pub fn write_history(path: impl AsRef<Path>, history: &History) -> Result<(), HistoryError> {
    let path = path.as_ref();
    let write = || -> io::Result<()> {
        let mut output = BufWriter::new(File::create(path)?);
        serde_json::to_writer(&mut output, &history.header)?;
        output.write_all(b"\n")?;
        for event in &history.events {
            serde_json::to_writer(&mut output, event)?;
            output.write_all(b"\n")?;
        }
        let end = history.events.len();
        serde_json::to_writer(&mut output, &End { end })?;
        output.write_all(b"\n")?;
        output.flush()
    };
    write().map_err(|cause| io_error(path, cause))
}

/// The last line.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct End {
    /// How many events stand before it.
    end: usize,
}

fn header(lines: &Lines<'_>, line: &str) -> Result<Header, HistoryError> {
    /// What every version's header has; a newer one may have more.
    #[derive(Deserialize)]
    struct Introduction {
        format: String,
        version: u64,
    }
    let introduction: Introduction =
        serde_json::from_str(line).map_err(|cause| lines.json(&cause))?;
    if introduction.format != FORMAT {
        let what = format!(
            "the format is `{}`, not `{FORMAT}`",
            introduction.format.escape_default()
        );
        return Err(lines.error(1, what));
    }
    let version = introduction.version;
    if version > u64::from(FORMAT_VERSION) {
        let file = lines.file.to_owned();
        return Err(HistoryError::TooNew { file, version });
    }
    if version == 0 {
        return Err(lines.error(1, "version 0 has never existed".to_owned()));
    }
    let header: Header = serde_json::from_str(line).map_err(|cause| lines.json(&cause))?;
    if !(1..=MEMBERS_MAX).contains(&header.members) {
        let members = header.members;
        return Err(lines.error(1, format!("members: 1 to {MEMBERS_MAX}, not {members}")));
    }
    Ok(header)
}

fn io_error(path: &Path, cause: io::Error) -> HistoryError {
    let file = path.to_owned();
    HistoryError::Io { file, cause }
}

/// The lines of a file, each of which must be whole.
struct Lines<'a> {
    file: &'a Path,
    input: BufReader<File>,
    number: usize,
}

impl Lines<'_> {
    fn next_line(&mut self) -> Result<Option<String>, HistoryError> {
        let mut bytes = Vec::new();
        let most = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let mut limited = self.input.by_ref().take(most);
        limited
            .read_until(b'\n', &mut bytes)
            .map_err(|cause| io_error(self.file, cause))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let line = String::from_utf8(bytes).map_err(|cause| {
            let column = cause.utf8_error().valid_up_to() + 1;
            self.error(column, "not text: the bytes are not UTF-8".to_owned())
        })?;
        match line.strip_suffix('\n') {
            Some("") => Err(self.error(1, "the line is empty".to_owned())),
            Some(line) => Ok(Some(line.to_owned())),
            None if line.len() == LINE_BYTES_MAX => {
                Err(self.error(1, format!("the line is longer than {LINE_BYTES_MAX} bytes")))
            }
            None => {
                let what = "the file ends within this line: it was cut off".to_owned();
                Err(self.error(line.len() + 1, what))
            }
        }
    }

    /// Checks the last line: it says `said` events, there were `seen`, and nothing may follow.
    fn end(&mut self, said: usize, seen: usize) -> Result<(), HistoryError> {
        if said != seen {
            let what = format!("the file says that it has {said} events, but it has {seen}");
            return Err(self.error(1, what));
        }
        match self.next_line()? {
            None => Ok(()),
            Some(_) => Err(self.error(1, "a line after the last one".to_owned())),
        }
    }

    fn error(&self, column: usize, what: String) -> HistoryError {
        let file = self.file.to_owned();
        HistoryError::Malformed {
            file,
            line: self.number,
            column,
            what,
        }
    }

    fn json(&self, cause: &serde_json::Error) -> HistoryError {
        // The parser sees one line at a time, so the line in its own message is always 1 and would mislead.
        let text = cause.to_string();
        let place = format!(" at line {} column {}", cause.line(), cause.column());
        let what = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        self.error(cause.column().max(1), what)
    }
}

/// What the events so far allow the next one to be.
#[derive(Default)]
struct Order {
    last_us: u64,
    calls: BTreeSet<u64>,
    ended: BTreeSet<u64>,
}

impl Order {
    fn follow(&mut self, event: &Event) -> Result<(), String> {
        let Event { at_us, what } = event;
        if *at_us < self.last_us {
            let last = self.last_us;
            return Err(format!(
                "time goes back: {at_us} µs after {last} µs; the lines are not in order"
            ));
        }
        self.last_us = *at_us;
        match what {
            What::Invoke { call, .. } if !self.calls.insert(*call) => {
                Err(format!("call {call} is sent a second time"))
            }
            What::Return { call, .. } if !self.calls.contains(call) => {
                Err(format!("call {call} ends before it was sent"))
            }
            What::Return { call, .. } if !self.ended.insert(*call) => {
                Err(format!("call {call} ends a second time"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Applied, Op, Outcome, Reply, TokenNote, TokenRules};

    const HEADER: &str = r#"{"format":"gatehouse-history","version":1,"scenario":"s","seed":7,"bug":null,"members":3}"#;
    const INVOKE: &str = r#"{"at_us":5,"event":"invoke","call":1,"client":"a","member":2,"op":{"do":"auth-enable"}}"#;
    const RETURN: &str =
        r#"{"at_us":9,"event":"return","call":1,"outcome":{"outcome":"ok","revision":1}}"#;

    /// Reads `bytes` as a file and gives the error's text after the file's name.
    fn error(bytes: &[u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.jsonl");
        std::fs::write(&path, bytes).unwrap();
        let text = read_history(&path).unwrap_err().to_string();
        let name = path.display().to_string();
        text.strip_prefix(&name).expect("names the file").to_owned()
    }

    fn check(lines: &[&str], expected: &str) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(error(text.as_bytes()), expected);
    }

    #[test]
    fn what_was_written_is_read_again() {
        let header = Header {
            format: FORMAT.into(),
            version: FORMAT_VERSION,
            scenario: "s".into(),
            seed: u64::MAX,
            bug: Some("authn-changepw-toctou/a".into()),
            members: 3,
            tokens: TokenRules::default(),
        };
        let login = Op::Login {
            user: "a\n\"\0é".into(),
            password: "p".into(),
        };
        let whats = [
            What::Started {
                member: 1,
                index: 0,
            },
            What::Invoke {
                call: 1,
                client: "a".into(),
                member: 1,
                token: Some(u64::MAX),
                op: Box::new(Op::Txn {
                    compare: vec![],
                    success: vec![login],
                    failure: vec![],
                }),
            },
            What::Applied(Box::new(Applied {
                member: 1,
                index: 4,
                term: 2,
                request_id: u64::MAX,
                kind: "txn".into(),
                user: "a".into(),
                header_auth_revision: 3,
                decision: "ok".into(),
                auth_revision: 3,
                auth_enabled: true,
                kv_revision: i64::MAX,
                digest: u64::MAX,
                tokens: vec![TokenNote {
                    login_index: 3,
                    refresh_count: 1,
                }],
            })),
            What::Return {
                call: 1,
                outcome: Outcome::Ok(Box::new(Reply::default())),
            },
            What::Healed,
        ];
        let events = whats.map(|what| Event { at_us: 17, what }).to_vec();
        let history = History { header, events };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h.jsonl");
        write_history(&path, &history).unwrap();
        assert_eq!(read_history(&path).unwrap(), history);
    }

    #[test]
    fn a_file_that_is_no_history_is_refused() {
        assert_eq!(
            error(b""),
            ": the file is empty; a history begins with a header line"
        );
        check(&["hello"], ":1:1: expected value");
        check(&["{}"], ":1:2: missing field `format`");
        check(
            &[r#"{"format":"x","version":1}"#],
            ":1:1: the format is `x`, not `gatehouse-history`",
        );
        check(&[INVOKE], ":1:87: missing field `format`");
        check(
            &[&HEADER.replace(r#""members":3"#, r#""members":0"#)],
            ":1:1: members: 1 to 1000, not 0",
        );
        assert_eq!(
            error(b"\x7fELF\x02\xff\x00\n"),
            ":1:6: not text: the bytes are not UTF-8"
        );
    }

    #[test]
    fn a_newer_version_is_refused_by_its_number() {
        let newer = HEADER.replace(r#""version":1"#, r#""version":2,"more":true"#);
        check(
            &[&newer],
            ": the file has format version 2, this program reads up to 1",
        );
        let zero = HEADER.replace(r#""version":1"#, r#""version":0"#);
        check(&[&zero], ":1:1: version 0 has never existed");
    }

    #[test]
    fn a_file_that_was_cut_off_is_refused() {
        check(
            &[HEADER, INVOKE, RETURN],
            ":3:1: the last line is missing, which says how many events there are: the file was cut off",
        );
        check(
            &[HEADER, INVOKE, r#"{"end":2}"#],
            ":3:1: the file says that it has 2 events, but it has 1",
        );
        check(
            &[HEADER, INVOKE, r#"{"end":1}"#, RETURN],
            ":4:1: a line after the last one",
        );
        let whole = format!("{HEADER}\n{INVOKE}\n{RETURN}\n");
        let cut = &whole.as_bytes()[..whole.len() - 5];
        assert_eq!(
            error(cut),
            ":3:74: the file ends within this line: it was cut off"
        );
        assert_eq!(
            error(&HEADER.as_bytes()[..20]),
            ":1:21: the file ends within this line: it was cut off"
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        check(&[HEADER, ""], ":2:1: the line is empty");
        check(&[HEADER, INVOKE, "{"], ":3:1: EOF while parsing an object");
        let unknown = INVOKE.replace("auth-enable", "auth-explode");
        let text = error(format!("{HEADER}\n{unknown}\n").as_bytes());
        assert!(text.starts_with(":2:"), "{text}");
        assert!(text.contains("unknown variant `auth-explode`"), "{text}");
    }

    #[test]
    fn events_out_of_order_are_refused() {
        check(&[HEADER, RETURN], ":2:1: call 1 ends before it was sent");
        check(
            &[HEADER, INVOKE, INVOKE],
            ":3:1: call 1 is sent a second time",
        );
        check(
            &[HEADER, INVOKE, RETURN, RETURN],
            ":4:1: call 1 ends a second time",
        );
        let early = r#"{"at_us":4,"event":"healed"}"#;
        check(
            &[HEADER, INVOKE, early],
            ":3:1: time goes back: 4 µs after 5 µs; the lines are not in order",
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let text = read_history("/nonexistent/h.jsonl")
            .unwrap_err()
            .to_string();
        assert!(text.starts_with("/nonexistent/h.jsonl: "), "{text}");
    }
}
