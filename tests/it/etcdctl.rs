//! Debian's `etcdctl` (package `etcd-client`), a client that this project had no hand in.

use std::process::Command;

/// What it printed and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    /// Claims success, and exactly this on standard output.
    #[track_caller]
    pub(crate) fn says(self, stdout: &str) {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (0, stdout),
            "stderr: {}",
            self.stderr
        );
    }

    /// Claims exit code `code` and, as the last line on standard error, `Error: ` with this text.
    #[track_caller]
    pub(crate) fn refuses(self, code: i32, text: &str) {
        let last = self.stderr.lines().last().unwrap_or_default();
        assert_eq!(
            (self.code, last),
            (code, format!("Error: {text}").as_str()),
            "{}",
            self.stdout
        );
    }
}

/// `etcdctl` for one cluster and one user.
pub(crate) struct Etcdctl {
    endpoints: String,
    user: Option<String>,
}

impl Etcdctl {
    /// Without credentials.
    pub(crate) fn anonymous(endpoints: &str) -> Etcdctl {
        Etcdctl {
            endpoints: endpoints.to_owned(),
            user: None,
        }
    }

    /// As `NAME:PASSWORD`.
    pub(crate) fn user(endpoints: &str, user: &str) -> Etcdctl {
        Etcdctl {
            endpoints: endpoints.to_owned(),
            user: Some(user.to_owned()),
        }
    }

    /// Runs the words of `line`.
    pub(crate) fn run(&self, line: &str) -> Answer {
        self.run_with_input(line, "")
    }

    /// Runs the words of `line` with `input` on standard input.
    pub(crate) fn run_with_input(&self, line: &str, input: &str) -> Answer {
        use std::io::Write as _;
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.endpoints]);
        if let Some(user) = &self.user {
            command.args(["--user", user]);
        }
        command.args(line.split_whitespace());
        command.stdin(std::process::Stdio::piped());
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut child = command
            .spawn()
            .expect("etcdctl is installed (Debian: etcd-client)");
        // Most commands read nothing and may be gone already.
        let _ = child
            .stdin
            .take()
            .expect("piped")
            .write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Answer {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Sets up what most stories need: user `root` (password `rootpw`), and `alice` (`alicepw`) who may read `[foo, fop)`;
/// then enables auth. Claims etcdctl's lines along the way.
pub(crate) fn guard(endpoints: &str) -> (Etcdctl, Etcdctl) {
    let anyone = Etcdctl::anonymous(endpoints);
    anyone
        .run("user add root:rootpw")
        .says("User root created\n");
    anyone
        .run("user grant-role root root")
        .says("Role root is granted to user root\n");
    anyone.run("role add reader").says("Role reader created\n");
    anyone
        .run("role grant-permission reader read foo fop")
        .says("Role reader updated\n");
    anyone
        .run("user add alice:alicepw")
        .says("User alice created\n");
    anyone
        .run("user grant-role alice reader")
        .says("Role reader is granted to user alice\n");
    anyone.run("auth enable").says("Authentication Enabled\n");
    (
        Etcdctl::user(endpoints, "root:rootpw"),
        Etcdctl::user(endpoints, "alice:alicepw"),
    )
}
