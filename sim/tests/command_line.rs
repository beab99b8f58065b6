//! The command line as scripts use it: exit codes, JSON fields, messages for bad input.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at what it does not expect"
)]

use std::path::Path;
use std::process::{Command, Output};

/// The program in the source tree's root, with its histories in `report` if the command keeps any.
fn command(report: &Path, arguments: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatehouse-sim"));
    command
        .args(arguments)
        .env_remove("RUST_LOG")
        .current_dir(root);
    if ["run", "replay", "fuzz"].contains(&arguments[0]) {
        command.arg("--report").arg(report);
    }
    command
}

fn simulate(report: &Path, arguments: &[&str]) -> Output {
    command(report, arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json_lines(output: &Output) -> Vec<serde_json::Value> {
    stdout(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const LOGIN: &str = "scenarios/login-vs-change-password.toml";
const SINGLE: &str = "scenarios/single-member.toml";

#[test]
fn run_prints_a_json_line_a_run_and_keeps_the_first_history() {
    let report = tempfile::tempdir().unwrap();
    let output = simulate(
        report.path(),
        &["run", SINGLE, "--seeds", "1..2", "--format", "json"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = json_lines(&output);
    assert_eq!(lines.len(), 2);
    for (line, seed) in lines.iter().zip(1..) {
        assert_eq!(line["scenario"], "single-member");
        assert_eq!(line["seed"], seed);
        assert_eq!(line["verdict"], "ok");
        assert_eq!(line["trace_hash"].as_str().unwrap().len(), 16);
        assert!(line["ops"].as_u64().unwrap() > 0);
        assert!(line["virtual_ms"].as_u64().unwrap() > 0);
        for field in [
            "property",
            "wall_ms",
            "bug",
            "marks",
            "staleness_ms",
            "staleness_entries",
            "explanation",
        ] {
            assert!(line.get(field).is_some(), "{field}");
        }
    }
    let history = lines[0]["history"].as_str().unwrap();
    assert_eq!(
        history,
        report
            .path()
            .join("single-member-1.jsonl")
            .to_str()
            .unwrap()
    );
    assert_eq!(lines[1]["history"], serde_json::Value::Null);
    let judged = simulate(report.path(), &["check", history]);
    assert_eq!(judged.status.code(), Some(0), "{}", stdout(&judged));
    assert!(
        stdout(&judged).ends_with("calls: ok\n"),
        "{}",
        stdout(&judged)
    );
}

#[test]
fn a_planted_bug_is_found_with_exit_0_and_a_violation() {
    let report = tempfile::tempdir().unwrap();
    let bug = "authn-changepw-toctou/a";
    let output = simulate(
        report.path(),
        &[
            "run",
            LOGIN,
            "--seed",
            "1",
            "--bug",
            bug,
            "--general",
            "--format",
            "json",
        ],
    );
    assert_eq!(output.status.code(), Some(0));
    let line = &json_lines(&output)[0];
    assert_eq!(line["verdict"], "violation");
    assert_eq!(line["property"], "P6");
    assert_eq!(line["bug"], bug);
    // The history names its bug, so finding it is as expected there, too.
    let judged = simulate(report.path(), &["check", line["history"].as_str().unwrap()]);
    assert_eq!(judged.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&judged.stdout).contains("violation P6"));
}

#[test]
fn a_planted_bug_that_is_not_found_is_exit_1() {
    let report = tempfile::tempdir().unwrap();
    let output = simulate(
        report.path(),
        &[
            "run",
            SINGLE,
            "--seed",
            "1",
            "--bug",
            "authn-changepw-toctou/b",
        ],
    );
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let missed = "planted, and not found by any run: authn-changepw-toctou/b";
    assert!(stdout(&output).contains(missed), "{}", stdout(&output));
    let history = report
        .path()
        .join("single-member-1-authn-changepw-toctou-b.jsonl");
    let judged = simulate(report.path(), &["check", history.to_str().unwrap()]);
    assert_eq!(judged.status.code(), Some(1), "{}", stdout(&judged));
    let missed = "planted, and not found in this history: authn-changepw-toctou/b";
    assert!(stdout(&judged).contains(missed), "{}", stdout(&judged));
}

#[test]
fn bugs_prints_a_line_a_switch() {
    let report = tempfile::tempdir().unwrap();
    let output = simulate(
        report.path(),
        &["bugs", "authn-changepw-toctou", "--format", "json"],
    );
    assert_eq!(output.status.code(), Some(0));
    let lines = json_lines(&output);
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!(line["found"], true);
        assert_eq!(line["scenario"], "login-vs-change-password");
        for field in [
            "bug",
            "property",
            "seeds_to_find",
            "seconds_to_find",
            "shrunk_ops",
        ] {
            assert!(line.get(field).is_some(), "{field}");
        }
    }
}

#[test]
fn replay_repeats_the_run_with_a_log_on_stderr() {
    let report = tempfile::tempdir().unwrap();
    let run = simulate(
        report.path(),
        &["run", SINGLE, "--seed", "3", "--format", "json"],
    );
    let hash = json_lines(&run)[0]["trace_hash"].clone();
    let bare = [
        "replay",
        "3",
        "--scenario",
        "single-member",
        "--verbose",
        "--format",
        "json",
    ];
    let file = ["replay", SINGLE, "--seed", "3", "--format", "json"];
    let (bare, file) = (
        simulate(report.path(), &bare),
        simulate(report.path(), &file),
    );
    assert_eq!(json_lines(&bare)[0]["trace_hash"], hash);
    assert_eq!(json_lines(&file)[0]["trace_hash"], hash);
    assert!(stderr(&bare).contains("DEBUG"), "{}", stderr(&bare));
    assert_eq!(stderr(&file), "");
}

#[test]
fn twice_compares_two_processes() {
    let report = tempfile::tempdir().unwrap();
    let output = simulate(report.path(), &["twice", SINGLE, LOGIN, "--seeds", "1..2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert_eq!(
        stdout(&output),
        "4 runs, each with the same trace hash in both processes\n"
    );
}

#[test]
fn drawn_plans_are_run_replayed_and_compared() {
    let report = tempfile::tempdir().unwrap();
    let fuzz = [
        "fuzz",
        "--seeds",
        "1..3",
        "--profile",
        "disk",
        "--format",
        "json",
    ];
    let runs = simulate(report.path(), &fuzz);
    assert_eq!(runs.status.code(), Some(0), "{}", stdout(&runs));
    let lines = json_lines(&runs);
    assert_eq!(lines.len(), 3);
    let replay = ["replay", "2", "--profile", "disk", "--format", "json"];
    let again = simulate(report.path(), &replay);
    assert_eq!(json_lines(&again)[0]["trace_hash"], lines[1]["trace_hash"]);
    let twice = ["twice", "--profile", "disk", "--seeds", "1..3"];
    assert_eq!(
        stdout(&simulate(report.path(), &twice)),
        "3 runs, each with the same trace hash in both processes\n"
    );
}

#[test]
fn a_drawn_plan_that_fails_is_kept_and_needs_no_seed_any_more() {
    let report = tempfile::tempdir().unwrap();
    let bug = ["--bug", "stale-member-check/a", "--format", "json"];
    let fuzz = [&["fuzz", "--seeds", "1..40", "--profile", "auth"], &bug[..]].concat();
    let runs = simulate(report.path(), &fuzz);
    assert_eq!(runs.status.code(), Some(0), "found: {}", stdout(&runs));
    let lines = json_lines(&runs);
    let found = lines
        .iter()
        .find(|line| line["verdict"] == "violation")
        .unwrap();
    let history = Path::new(found["history"].as_str().unwrap());
    let plan = history.with_extension("toml");
    let replay = [&["replay", plan.to_str().unwrap()], &bug[..]].concat();
    let again = simulate(report.path(), &replay);
    assert_eq!(json_lines(&again)[0]["trace_hash"], found["trace_hash"]);
}

#[test]
fn bad_input_is_exit_2_with_a_reason() {
    let report = tempfile::tempdir().unwrap();
    let broken = report.path().join("broken.toml");
    std::fs::write(&broken, "version = 1\nname = \"x\"\nmembers = 3\n").unwrap();
    let broken = broken.to_str().unwrap();
    let rows: [(&[&str], &str); 14] = [
        (&["run", "--sead", "1"], "unexpected argument '--sead'"),
        (&["run", "--seed", "one"], "invalid digit"),
        (&["run", "--seeds", "9..1"], "9 is larger than 1"),
        (
            &["run", "no-such.toml"],
            "no-such.toml: No such file or directory (os error 2); did you mean scenarios/",
        ),
        (
            &["twice", "token-lga"],
            "did you mean scenarios/token-lag.toml?",
        ),
        (
            &["replay", "token-lag"],
            "did you mean scenarios/token-lag.toml?",
        ),
        (&["run", broken], "line 3, column 1"),
        (
            &["run", "--bug", "none"],
            "there is no planted bug \"none\"; did you mean \"",
        ),
        (
            &["bugs", "root-unprotectd"],
            "did you mean \"root-unprotected\"? `gatehouse-sim bugs --help` lists them",
        ),
        (
            &["twice", SINGLE, "--bug", "token-lifetme"],
            "did you mean \"token-lifetime\"?",
        ),
        (
            &["replay", "1", "--bug", "token-lifetime/d"],
            "did you mean \"token-lifetime/a\"?",
        ),
        (
            &["run", "--log-level", "gatehouse=loud"],
            "log level \"gatehouse=loud\"",
        ),
        (&["check", broken], "broken.toml:1:"),
        (
            &["replay", "1", "--scenario", "new-enmy"],
            "there is no scenario \"new-enmy\"; did you mean \"new-enemy\"? The files in scenarios are the scenarios",
        ),
    ];
    for (arguments, reason) in rows {
        is_refused(report.path(), arguments, reason);
    }
}

#[test]
fn what_no_plan_can_be_drawn_from_is_exit_2() {
    let report = tempfile::tempdir().unwrap();
    let rows: [(&[&str], &str); 5] = [
        (&["fuzz"], "say which seeds: --seeds A..B or --seed N"),
        (
            &["fuzz", "--seed", "1", "--profile", "disc"],
            "there is no such profile, only default, auth, disk",
        ),
        (
            &["replay", SINGLE, "--profile", "disk"],
            "--profile belongs to a bare seed; a plan file says everything",
        ),
        (&["twice", "--profile", "disk"], "--seed"),
        (
            &["twice", SINGLE, "--profile", "disk", "--seed", "1"],
            "cannot be used with",
        ),
    ];
    for (arguments, reason) in rows {
        is_refused(report.path(), arguments, reason);
    }
}

fn is_refused(report: &Path, arguments: &[&str], reason: &str) {
    let output = simulate(report, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(
        stderr(&output).contains(reason),
        "{arguments:?}: {}",
        stderr(&output)
    );
    assert_eq!(stdout(&output), "", "{arguments:?}");
}

#[test]
fn a_history_of_a_planted_bug_that_does_not_exist_is_exit_2() {
    let report = tempfile::tempdir().unwrap();
    let run = simulate(
        report.path(),
        &["run", SINGLE, "--seed", "1", "--format", "json"],
    );
    let history = json_lines(&run)[0]["history"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(&history).unwrap();
    let mistaken = text.replacen("\"bug\":null", "\"bug\":\"token-activaton-lag\"", 1);
    assert_ne!(mistaken, text);
    std::fs::write(&history, mistaken).unwrap();
    let output = simulate(report.path(), &["check", &history]);
    assert_eq!(output.status.code(), Some(2));
    let reason = "bug: there is no planted bug \"token-activaton-lag\"; did you mean \"token-activation-lag\"?";
    assert!(stderr(&output).contains(&format!("{history}:1:")));
    assert!(stderr(&output).contains(reason), "{}", stderr(&output));
}

#[test]
fn a_damaged_history_is_exit_2_with_its_place() {
    let report = tempfile::tempdir().unwrap();
    let run = simulate(
        report.path(),
        &["run", SINGLE, "--seed", "1", "--format", "json"],
    );
    let history = json_lines(&run)[0]["history"].as_str().unwrap().to_owned();
    let whole = std::fs::read(&history).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let last = lines.len() - 1;
    let swapped = |one: usize, other: usize| {
        let mut lines = lines.clone();
        lines.swap(one, other);
        lines.concat()
    };
    let header = String::from_utf8(lines[0].to_vec()).unwrap();
    let newer = header.replace("\"version\":1", "\"version\":99");
    let damaged: [(&str, Vec<u8>, &str); 10] = [
        ("empty", Vec::new(), ":1:1: the file is empty"),
        (
            "cut in a line",
            whole[..whole.len() / 2].to_vec(),
            "the file ends within this line",
        ),
        (
            "cut between lines",
            lines[..last / 2].concat(),
            "the last line is missing",
        ),
        (
            "without its end",
            lines[..last].concat(),
            "the last line is missing",
        ),
        ("header not first", swapped(0, 1), ":1:"),
        (
            "end not last",
            swapped(last - 1, last),
            "the file says that it has",
        ),
        (
            "first and last event",
            swapped(1, last - 1),
            "time goes back",
        ),
        (
            "a line twice",
            [
                &whole[..whole.len() - lines[last].len()],
                lines[last - 1],
                lines[last],
            ]
            .concat(),
            "the file says that it has",
        ),
        (
            "binary",
            [&[0x7f, b'E', b'L', b'F', 0, 0xff, 0xfe], whole.as_slice()].concat(),
            ":1:6: not text",
        ),
        ("a newer version", newer.into_bytes(), "format version 99"),
    ];
    for (name, bytes, reason) in damaged {
        std::fs::write(&history, bytes).unwrap();
        let output = simulate(report.path(), &["check", &history]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert_eq!(stdout(&output), "", "{name}");
        let talk = stderr(&output);
        assert!(talk.contains(&format!("{history}:")), "{name}: {talk}");
        assert!(talk.contains(reason), "{name}: {talk}");
    }
}

#[test]
fn a_reader_that_leaves_is_told_nothing_but_it_is_no_success() {
    use std::io::Read as _;
    use std::process::Stdio;
    let report = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_gatehouse-sim"))
        .args([
            "run", SINGLE, "--seeds", "1..4", "--format", "json", "--report",
        ])
        .arg(report.path())
        .current_dir(root)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut talk = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut talk)
        .unwrap();
    // What it did not hear may have been a violation.
    assert_eq!(child.wait().unwrap().code(), Some(2));
    // Nothing but what was going to be done.
    assert!(
        talk.starts_with("4 runs, ") && talk.lines().count() == 1,
        "{talk}"
    );
}

#[test]
fn the_planted_bugs_are_listed_where_it_is_said() {
    let report = tempfile::tempdir().unwrap();
    let help = stdout(&simulate(report.path(), &["bugs", "--help"]));
    for name in [
        "authn-changepw-toctou\n",
        "authn-changepw-toctou/c\n",
        "token-lifetime/c\n",
    ] {
        assert!(help.contains(name), "{help}");
    }
}

#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    use std::io::Write as _;
    let report = tempfile::tempdir().unwrap();
    let fifo = report.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let fifo = fifo.to_str().unwrap();
    let socket = report.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let socket = socket.to_str().unwrap();
    for (path, what) in [
        (fifo, "a FIFO, not a file"),
        (socket, "a socket, not a file"),
        ("/dev/zero", "a device, not a file"),
        ("scenarios", "a directory, not a file"),
    ] {
        for name in ["check", "run", "replay", "twice"] {
            let output = simulate(report.path(), &[name, path]);
            assert_eq!(output.status.code(), Some(2), "{name} {path}");
            let said = format!("gatehouse-sim: {path}: {what}\n");
            assert_eq!(stderr(&output), said, "{name} {path}");
        }
    }
    // What the shell has opened is read, whatever it is.
    let mut child = command(report.path(), &["run", "/dev/stdin"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let plan = std::fs::read(root.join(SINGLE)).unwrap();
    child.stdin.take().unwrap().write_all(&plan).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Every command with what makes it say something, as short as it can be.
const EACH: [&[&str]; 7] = [
    &["run", SINGLE, "--seed", "1"],
    &["replay", SINGLE, "--seed", "1"],
    &["twice", SINGLE, "--seed", "1"],
    &["bugs", "token-activation-lag", "--seed", "1"],
    &["check"],
    &["bugs", "--help"],
    &["--version"],
];

#[test]
fn an_output_that_cannot_be_written_is_exit_2() {
    let report = tempfile::tempdir().unwrap();
    simulate(report.path(), &["run", SINGLE, "--seed", "1"]);
    let history = report.path().join("single-member-1.jsonl");
    for arguments in EACH {
        for (redirection, reason) in [
            (">&-", "stdout is closed, so that no result could be told"),
            (">/dev/full", "No space left on device"),
        ] {
            let whole = command(report.path(), arguments);
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &format!("exec \"$0\" \"$@\" {redirection}")])
                .arg(whole.get_program())
                .args(whole.get_args())
                .current_dir(whole.get_current_dir().unwrap());
            if arguments[0] == "check" {
                shell.arg(&history);
            }
            let output = shell.output().unwrap();
            let talk = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(2),
                "{arguments:?} {redirection}: {talk}"
            );
            assert!(talk.contains(reason), "{arguments:?} {redirection}: {talk}");
        }
    }
}

#[test]
fn a_report_directory_of_no_use_is_refused_before_anything_runs() {
    let report = tempfile::tempdir().unwrap();
    let file = report.path().join("file");
    std::fs::write(&file, "").unwrap();
    for arguments in [&["run", "--all"][..], &["replay", "1"]] {
        let output = simulate(&file, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = format!("gatehouse-sim: {}: ", file.display());
        assert!(stderr(&output).starts_with(&said), "{}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
    // The others keep no histories, and say so.
    let directory = report.path().to_str().unwrap();
    for (name, what) in [
        ("twice", SINGLE),
        ("bugs", "root-unprotected"),
        ("check", SINGLE),
    ] {
        let output = simulate(report.path(), &[name, what, "--report", directory]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let said = format!(
            "gatehouse-sim: {name} keeps no histories: --report belongs to run, fuzz and replay\n"
        );
        assert_eq!(stderr(&output), said);
    }
    let left: Vec<_> = std::fs::read_dir(report.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left of the trial: {left:?}");
}
