//! Reads the tables of `docs/differences.md`: rows that begin with a name in a code span. What a server shows is the first
//! code span of its cell; `since` and `before` after it say for which releases of etcd that holds.

use crate::etcd::Version;

/// What one row says.
pub(super) struct Said {
    pub(super) id: String,
    /// What etcd shows.
    pub(super) etcd: String,
    /// What the server shows.
    pub(super) ours: String,
    since: Vec<Version>,
    before: Vec<Version>,
}

impl Said {
    /// Whether what the row says about etcd is about `version`.
    pub(super) fn holds_for(&self, version: Version) -> bool {
        let before = |releases: &[Version]| version.is_before(releases);
        (self.since.is_empty() || !before(&self.since))
            && (self.before.is_empty() || before(&self.before))
    }
}

/// Every row of every table.
pub(super) fn rows() -> Vec<Said> {
    include_str!("../../../docs/differences.md")
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(row)
        .collect()
}

fn row(line: &str) -> Said {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [_, id, _, etcd, ours, _, _] = cells[..] else {
        panic!("a row has five cells: {line}");
    };
    Said {
        id: span(id),
        etcd: span(etcd),
        ours: span(ours),
        since: releases(etcd, " since "),
        before: releases(etcd, " before "),
    }
}

/// The first code span of a cell.
fn span(cell: &str) -> String {
    let span = cell.split('`').nth(1);
    span.unwrap_or_else(|| panic!("a cell without a code span: {cell}"))
        .to_owned()
}

/// The releases that follow `word`, separated by slashes.
fn releases(cell: &str, word: &str) -> Vec<Version> {
    let Some((_, rest)) = cell.split_once(word) else {
        return Vec::new();
    };
    let listed = rest.split([' ', ',', ';']).next().unwrap_or_default();
    let version = |text: &str| {
        Version::parse(text).unwrap_or_else(|| panic!("{text} in {cell} is no release"))
    };
    listed.split('/').map(version).collect()
}

#[test]
fn a_row_is_read_with_the_releases_that_it_is_about() {
    let line =
        "| `x` | a call | `ok` since 3.5.0, before 3.6.9/3.7.1 | `no: a, b` here | because |";
    let said = row(line);
    assert_eq!(
        (said.id.as_str(), said.etcd.as_str(), said.ours.as_str()),
        ("x", "ok", "no: a, b")
    );
    for (release, holds) in [
        ("3.4.23", false),
        ("3.5.0", true),
        ("3.6.9", false),
        ("3.7.0", true),
    ] {
        assert_eq!(
            said.holds_for(Version::parse(release).unwrap()),
            holds,
            "{release}"
        );
    }
}
