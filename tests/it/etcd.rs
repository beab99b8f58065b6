//! Debian's `etcd` (package `etcd-server`) as a child process: what this project claims to differ from, and to be like.
//! Where it is not installed, whoever asks is told so and leaves its claims about etcd unchecked.

use crate::client::{Client, block_on};
use crate::harness::{eventually, free_port};
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A release: major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) [u32; 3]);

impl Version {
    /// Reads `3.4.23`.
    pub(crate) fn parse(text: &str) -> Option<Version> {
        let mut numbers = text.trim().split('.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        let version = Version([next()?, next()?, next()?]);
        numbers.next().is_none().then_some(version)
    }

    /// The version of the `etcd` on the path; `None`, and a line that says so, if there is none.
    pub(crate) fn installed() -> Option<Version> {
        let Ok(output) = Command::new("etcd").arg("--version").output() else {
            eprintln!("no etcd is installed (Debian: etcd-server): what it answers is not checked");
            return None;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let version = text.lines().next().and_then(|line| line.split(": ").nth(1));
        let version = version.and_then(Version::parse);
        assert!(version.is_some(), "etcd does not say its version: {text}");
        version
    }

    /// Whether it is older than a change that came with each of `releases`, one for each line of releases (`3.4.42`,
    /// `3.5.28`, `3.6.9`). A line without one is older if the first of `releases` is of a later line.
    pub(crate) fn is_before(self, releases: &[Version]) -> bool {
        let line = |version: Version| (version.0[0], version.0[1]);
        let own = releases
            .iter()
            .find(|release| line(**release) == line(self));
        match own {
            Some(release) => self < *release,
            None => releases.iter().all(|release| self < *release),
        }
    }
}

/// One member of its own cluster, without data. Killed when it is dropped.
pub(crate) struct Etcd {
    client_port: u16,
    child: Child,
    directory: TempDir,
}

impl Etcd {
    /// Starts it and waits until it serves.
    pub(crate) fn start() -> Etcd {
        let directory = crate::harness::scratch();
        let (client_port, peer_port) = (free_port(), free_port());
        let client = format!("http://127.0.0.1:{client_port}");
        let peer = format!("http://127.0.0.1:{peer_port}");
        let log = File::create(directory.path().join("etcd.log")).unwrap();
        let mut command = Command::new("etcd");
        for (name, _) in std::env::vars() {
            if name.starts_with("ETCD") {
                command.env_remove(name);
            }
        }
        command
            .arg("--name=etcd")
            .arg("--data-dir")
            .arg(directory.path().join("etcd.data"))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=etcd={peer}"))
            .arg("--bcrypt-cost=4");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut etcd = Etcd {
            client_port,
            child,
            directory,
        };
        eventually("etcd", || {
            let log = etcd.log();
            if let Some(status) = etcd.child.try_wait().unwrap() {
                panic!("etcd ended with {status}:\n{log}");
            }
            let client = Client::anonymous(&etcd.address());
            block_on(client.get("any")).ok()
        });
        etcd
    }

    /// `host:port` for clients.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("etcd.log")).unwrap_or_default()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_release_is_before_a_change_by_its_own_line_of_releases() {
    let version = |text: &str| Version::parse(text).unwrap();
    let fixed = ["3.4.42", "3.5.28", "3.6.9"].map(version);
    for (release, before) in [
        ("3.3.99", true),
        ("3.4.41", true),
        ("3.4.42", false),
        ("3.5.27", true),
        ("3.5.30", false),
        ("3.6.0", true),
        ("3.7.0", false),
    ] {
        assert_eq!(version(release).is_before(&fixed), before, "{release}");
    }
    assert!(version("3.4.99").is_before(&["3.6.0"].map(version)));
    assert_eq!(Version::parse("3.4"), None);
    assert_eq!(Version::parse("3.4.1.2"), None);
}
