//! `docs/differences.md`, row by row: what the table says about the server is asked of the server, what it says about
//! etcd is asked of Debian's `etcd` where that is installed. A row without a check fails, and a check without a row.

mod contents;
mod deliberate;
mod document;
mod gates;
mod guarded;
mod older;
mod requests;

use crate::client::block_on;
use crate::differential::request::{Answer, Request};
use crate::differential::step::Step;
use crate::etcd::{Etcd, Version};
use crate::harness::Cluster;
use document::Said;
use guarded::Guarded;
use std::collections::BTreeSet;
use std::pin::Pin;

/// The check of one row.
pub(crate) struct Row {
    /// The row's name in the table.
    pub(crate) id: &'static str,
    /// Does what the row is about, and shows what came of it in the table's words.
    shows: for<'g> fn(&'g Guarded) -> Shown<'g>,
    /// Whether a difference between two answers to one random call is this row's, and what to do then so that the two
    /// servers hold the same again. `None`: no random call meets it.
    pub(crate) explains: Option<fn(&Difference<'_>) -> Option<Mend>>,
}

/// What came of a row's calls.
type Shown<'g> = Pin<Box<dyn Future<Output = String> + 'g>>;

/// Two answers to one call that are not the same.
pub(crate) struct Difference<'a> {
    /// Etcd's version.
    pub(crate) version: Version,
    /// Whether auth was on before.
    pub(crate) auth_on: bool,
    pub(crate) step: &'a Step,
    pub(crate) etcd: &'a Answer,
    pub(crate) ours: &'a Answer,
}

impl Difference<'_> {
    /// Whether etcd is older than the change that came with these releases, separated by slashes.
    fn is_before(&self, releases: &str) -> bool {
        let releases: Option<Vec<Version>> = releases.split('/').map(Version::parse).collect();
        self.version.is_before(&releases.expect("releases"))
    }
}

/// What makes two servers hold the same again after an explained difference.
pub(crate) enum Mend {
    /// Neither has changed anything.
    Nothing,
    /// The same call by an administrator of ours, whose answer is compared with etcd's.
    OursAsRoot,
    /// The same call by an administrator of etcd's, whose answer is compared with ours.
    EtcdAsOurs,
    /// Calls by an administrator of etcd's.
    EtcdAsRoot(Vec<Request>),
}

impl Row {
    /// Every check.
    pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
        deliberate::ROWS
            .iter()
            .chain(gates::ROWS)
            .chain(older::ROWS)
    }

    /// What one server shows. Each row begins with new users and without keys of its own.
    fn show(&self, address: &str) -> String {
        block_on(async {
            let guarded = Guarded::begin(address).await;
            (self.shows)(&guarded).await
        })
    }
}

#[test]
fn every_difference_in_the_document_is_one_and_there_are_no_others() {
    let said = document::rows();
    let in_document: BTreeSet<&str> = said.iter().map(|row| row.id.as_str()).collect();
    let checked: BTreeSet<&str> = Row::all().map(|row| row.id).collect();
    assert_eq!(in_document.len(), said.len(), "a name stands in two rows");
    assert_eq!(in_document, checked, "rows of the document, and checks");
    let cluster = Cluster::start(1, &["--bcrypt-cost=4"]);
    let installed = Version::installed();
    let etcd = installed.map(|version| (version, Etcd::start()));
    let mut wrong = Vec::new();
    for row in Row::all() {
        let said = said
            .iter()
            .find(|said| said.id == row.id)
            .expect("compared above");
        compare(
            said,
            "Gatehouse",
            &said.ours,
            &row.show(&cluster.members[0].address()),
            &mut wrong,
        );
        match &etcd {
            Some((version, etcd)) if said.holds_for(*version) => {
                compare(
                    said,
                    "etcd",
                    &said.etcd,
                    &row.show(&etcd.address()),
                    &mut wrong,
                );
            }
            Some((version, _)) => eprintln!("{}: not of etcd {:?}", row.id, version.0),
            None => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "the document is wrong:\n{}",
        wrong.join("\n")
    );
}

fn compare(row: &Said, who: &str, said: &str, shown: &str, wrong: &mut Vec<String>) {
    if said != shown {
        wrong.push(format!(
            "{}: {who} is said to show `{said}` and shows `{shown}`",
            row.id
        ));
    }
}
