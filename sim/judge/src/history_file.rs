//! Histories as files: JSON lines, the header first, then one event a line, at last the number of events: so a file that
//! was cut between two lines is not taken for a shorter history. A file is outside input, so every defect is
//! an error that says where it is and what is wrong; nothing is repaired and nothing is skipped.

mod header;
mod line;

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;

use crate::history::{FORMAT_VERSION, Header, History};
use crate::input_file;
use crate::sequence::Sequence;
use line::Line;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// What the header's `format` says.
pub const FORMAT: &str = "gatehouse-history";

/// Longest line in bytes: ten times the largest request that a server takes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Most events in a file: some two million calls, and some two gigabytes of memory.
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
    #[error("{}:1:1: the file is empty; a history begins with a header line", file.display())]
    Empty {
        /// Which file.
        file: PathBuf,
    },
    /// The header says a version that this program does not know.
    #[error(
        "{}:1:1: the file has format version {version}, this program reads up to {FORMAT_VERSION}",
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
    read_history_unless(path, &|_| None)
}

/// What somebody who knows more than the format has against a header: the field, and why.
pub type Objection<'o> = &'o dyn Fn(&Header) -> Option<(&'static str, String)>;

/// Reads a history, unless there is an objection to its header.
///
/// # Errors
/// As [`read_history`]; an objection is one more defect, at its field.
pub fn read_history_unless(
    path: impl AsRef<Path>,
    object: Objection<'_>,
) -> Result<History, HistoryError> {
    let path = path.as_ref();
    let input = input_file::open(path).map_err(|cause| io_error(path, cause))?;
    read(path, BufReader::new(input), object)
}

fn read(file: &Path, input: impl BufRead, object: Objection<'_>) -> Result<History, HistoryError> {
    let mut lines = Lines {
        file,
        input,
        number: 0,
        line: Vec::new(),
    };
    let Some(first) = lines.next_line()? else {
        let file = file.to_owned();
        return Err(HistoryError::Empty { file });
    };
    let header = header::read(first, object).map_err(|defect| lines.error(defect))?;
    let mut sequence = Sequence::new(&header);
    let mut events = Vec::new();
    loop {
        let Some(text) = lines.next_line()? else {
            let what = "the last line is missing, which says how many events there are: the file was cut off";
            return Err(lines.error(Defect::at_start(what)));
        };
        let line: Line = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(cause) => match serde_json::from_str(text) {
                Ok(End { end }) => {
                    lines.end(end, events.len())?;
                    break;
                }
                Err(_) => return Err(lines.error(Defect::from(cause))),
            },
        };
        if events.len() == EVENTS_MAX {
            let what = format!("more than {EVENTS_MAX} events");
            return Err(lines.error(Defect::at_start(what)));
        }
        let event = line.into_event().map_err(Defect::at_start);
        let event = event.and_then(|event| match sequence.follow(&event) {
            Ok(()) => Ok(event),
            Err(defect) => Err(Defect::at_field(text, defect.field, defect.what)),
        });
        match event {
            Ok(event) => events.push(event),
            Err(defect) => return Err(lines.error(defect)),
        }
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

/// What is wrong with a line, and where in it.
enum Defect {
    Here { column: usize, what: String },
    TooNew { version: u64 },
}

impl Defect {
    fn at_start(what: impl Into<String>) -> Defect {
        let what = what.into();
        Defect::Here { column: 1, what }
    }

    /// At the value of a field of the line, which is known to be JSON.
    fn at_field(line: &str, field: &str, what: String) -> Defect {
        let column = column_of(line, field).unwrap_or(1);
        Defect::Here { column, what }
    }
}

/// Where the value of a field begins, in bytes from 1. Within a text each quote has a backslash before it, so the name in
/// quotes is either a text of its own or, with a colon behind it, a field.
fn column_of(line: &str, field: &str) -> Option<usize> {
    let name = format!("\"{field}\"");
    line.match_indices(&name).find_map(|(at, name)| {
        let rest = line[at + name.len()..].trim_start().strip_prefix(':')?;
        Some(line.len() - rest.trim_start().len() + 1)
    })
}

impl From<serde_json::Error> for Defect {
    fn from(cause: serde_json::Error) -> Defect {
        // The parser sees one line at a time, so the line in its own message is always 1 and would mislead.
        let text = cause.to_string();
        let place = format!(" at line {} column {}", cause.line(), cause.column());
        let what = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        let column = cause.column().max(1);
        Defect::Here { column, what }
    }
}

fn io_error(path: &Path, cause: io::Error) -> HistoryError {
    let file = path.to_owned();
    HistoryError::Io { file, cause }
}

/// The lines of a file, each of which must be whole.
struct Lines<'a, R> {
    file: &'a Path,
    input: R,
    number: usize,
    /// The last one, whose memory the next one takes over.
    line: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    fn next_line(&mut self) -> Result<Option<&str>, HistoryError> {
        self.line.clear();
        let most = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let mut limited = self.input.by_ref().take(most);
        limited
            .read_until(b'\n', &mut self.line)
            .map_err(|cause| io_error(self.file, cause))?;
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        whole(&self.line)
            .map(Some)
            .map_err(|defect| error(self.file, self.number, defect))
    }

    /// Checks the last line: it says `said` events, there were `seen`, and nothing may follow.
    fn end(&mut self, said: usize, seen: usize) -> Result<(), HistoryError> {
        if said != seen {
            let what = format!("the file says that it has {said} events, but it has {seen}");
            return Err(self.error(Defect::at_start(what)));
        }
        match self.next_line()? {
            None => Ok(()),
            Some(_) => Err(self.error(Defect::at_start("a line after the last one"))),
        }
    }

    fn error(&self, defect: Defect) -> HistoryError {
        error(self.file, self.number, defect)
    }
}

/// The text of a line that ends.
fn whole(bytes: &[u8]) -> Result<&str, Defect> {
    let ends = bytes.last() == Some(&b'\n');
    if bytes.len() == LINE_BYTES_MAX && !ends {
        let what = format!("the line is longer than {LINE_BYTES_MAX} bytes");
        return Err(Defect::at_start(what));
    }
    let cut = || Defect::Here {
        column: bytes.len() + 1,
        what: "the file ends within this line: it was cut off".to_owned(),
    };
    let line = std::str::from_utf8(bytes).map_err(|cause| match cause.error_len() {
        // The beginning of a character.
        None => cut(),
        Some(_) => Defect::Here {
            column: cause.valid_up_to() + 1,
            what: "not text: the bytes are not UTF-8".to_owned(),
        },
    })?;
    match line.strip_suffix('\n') {
        Some("") => Err(Defect::at_start("the line is empty")),
        Some(line) => Ok(line),
        None => Err(cut()),
    }
}

fn error(file: &Path, line: usize, defect: Defect) -> HistoryError {
    let file = file.to_owned();
    match defect {
        Defect::TooNew { version } => HistoryError::TooNew { file, version },
        Defect::Here { column, what } => HistoryError::Malformed {
            file,
            line,
            column,
            what,
        },
    }
}
