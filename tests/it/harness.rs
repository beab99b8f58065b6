//! Members as child processes, each with a directory, ports and a log of its own. Whatever a test starts is killed when
//! the test ends, however it ends.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything that must happen may take before a test fails. Generous, for a machine that is busy otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks.
const GLANCE: Duration = Duration::from_millis(20);

/// The line that says a member serves.
const READY: &str = "ready to serve client requests";

/// Looks until `look` gives something.
///
/// # Panics
/// After [`PATIENCE`], naming what was waited for.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "still waiting for {what}");
        std::thread::sleep(GLANCE);
    }
}

/// A loopback port that nobody uses. Taken below the range from which the system draws ports for outgoing connections, so
/// that none of those can come in between.
pub(crate) fn free_port() -> u16 {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 18_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        // Two runs at the same time start at different places.
        let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap();
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + start.wrapping_add(step) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// A directory for data that nobody needs for longer than a test: in memory where the system has a place for that, since
/// what matters to a test that keeps both its servers waiting for the disk is what they answer.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    };
    made.unwrap()
}

/// The server's program, in an environment without `ETCD_*`.
pub(crate) fn gatehouse() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse"));
    for (name, _) in std::env::vars() {
        if name.starts_with("ETCD") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs the program to its end, which must come.
pub(crate) fn run_to_end(mut command: Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = Ended(&mut child).wait();
    assert!(ended.is_some(), "the program does not end: {command:?}");
    child.wait_with_output().unwrap()
}

struct Ended<'a>(&'a mut Child);

impl Ended<'_> {
    /// `None` if the child had to be killed.
    fn wait(&mut self) -> Option<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(GLANCE);
        }
        self.0.kill().unwrap();
        None
    }
}

/// One member.
pub(crate) struct Member {
    name: String,
    client_port: u16,
    peer_port: u16,
    flags: Vec<String>,
    directory: PathBuf,
    /// Where its data lies.
    pub(crate) data_dir: PathBuf,
    child: Option<Child>,
}

impl Member {
    /// `host:port` for clients.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    /// Everything it has logged, over all its starts.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join(format!("{}.log", self.name))
    }

    /// The program with all its flags, not started.
    pub(crate) fn command(&self) -> Command {
        let mut command = gatehouse();
        let client = format!("http://{}", self.address());
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        command
            .arg(format!("--name={}", self.name))
            .arg("--data-dir")
            .arg(&self.data_dir);
        command.arg(format!("--listen-client-urls={client}"));
        command.arg(format!("--advertise-client-urls={client}"));
        command.arg(format!("--listen-peer-urls={peer}"));
        command.arg(format!("--initial-advertise-peer-urls={peer}"));
        command.args(&self.flags);
        command
    }

    /// Starts it, without waiting.
    pub(crate) fn start(&mut self) {
        assert!(self.child.is_none(), "{} runs already", self.name);
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        let child = self
            .command()
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// Waits until its latest start serves clients. `starts` counts them.
    pub(crate) fn serves(&mut self, starts: usize) {
        let child = self.child.as_mut().expect("started");
        let log = self.directory.join(format!("{}.log", self.name));
        eventually("a member that serves", || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the member ended with {status}:\n{text}");
            }
            (text.matches(READY).count() >= starts).then_some(())
        });
    }

    /// SIGKILL, as a crash.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().expect("runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// SIGTERM, and how it ends.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("runs");
        let sent = Command::new("kill")
            .arg("-TERM")
            .arg(child.id().to_string())
            .status()
            .unwrap();
        assert!(sent.success());
        Ended(&mut child)
            .wait()
            .expect("a member that was told to stop stops")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already; then there is nothing to do.
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("---- log of {}\n{}", self.name, self.log());
        }
    }
}

/// Members of one cluster in a temporary directory.
pub(crate) struct Cluster {
    /// In the order of their names `m0`, `m1`, …
    pub(crate) members: Vec<Member>,
    directory: TempDir,
}

impl Cluster {
    /// Starts `size` members, each with `flags`, and waits until all serve.
    pub(crate) fn start(size: usize, flags: &[&str]) -> Cluster {
        let mut cluster = Cluster::prepare(size, flags);
        for member in &mut cluster.members {
            member.start();
        }
        for member in &mut cluster.members {
            member.serves(1);
        }
        cluster
    }

    /// Starts one member whose data lies in [`scratch`], and waits until it serves.
    pub(crate) fn start_in_memory(flags: &[&str]) -> Cluster {
        let mut cluster = Cluster::prepare_in(scratch(), 1, flags);
        cluster.members[0].start();
        cluster.members[0].serves(1);
        cluster
    }

    /// Members that are not started yet.
    pub(crate) fn prepare(size: usize, flags: &[&str]) -> Cluster {
        Cluster::prepare_in(TempDir::new().unwrap(), size, flags)
    }

    fn prepare_in(directory: TempDir, size: usize, flags: &[&str]) -> Cluster {
        let ports: Vec<(u16, u16)> = (0..size).map(|_| (free_port(), free_port())).collect();
        let listed: Vec<String> = ports
            .iter()
            .enumerate()
            .map(|(at, (_, peer))| format!("m{at}=http://127.0.0.1:{peer}"))
            .collect();
        let mut all: Vec<String> = flags.iter().map(ToString::to_string).collect();
        all.push(format!("--initial-cluster={}", listed.join(",")));
        let member = |(at, (client_port, peer_port)): (usize, (u16, u16))| Member {
            name: format!("m{at}"),
            client_port,
            peer_port,
            flags: all.clone(),
            directory: directory.path().to_owned(),
            data_dir: directory.path().join(format!("m{at}.data")),
            child: None,
        };
        Cluster {
            members: ports.into_iter().enumerate().map(member).collect(),
            directory,
        }
    }

    /// Where all members keep data and logs.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// All addresses, comma-separated.
    pub(crate) fn addresses(&self) -> String {
        self.members
            .iter()
            .map(Member::address)
            .collect::<Vec<_>>()
            .join(",")
    }
}
