//! One row for each refusal: what is added to a plan that is otherwise right, and the message.

use super::super::Plan;

const BASE: &str = r#"
version = 1
name = "base"
setup = [{ do = "user-add", user = "root", password = "r" }]
[cluster]
members = 3
[[client]]
name = "alice"
member = [1, 2]
steps = [
  { do = "login", user = "root", password = "r", label = "in" },
  { do = "put", key = "k", value = "v", after_ms = [1, 5], wait_for = "in", repeat = 3 },
]
"#;

fn refusal(text: &str) -> String {
    let plan: Plan = toml::from_str(text).unwrap();
    plan.check().unwrap_err().to_string()
}

#[test]
fn a_sound_plan_passes_and_survives_being_written() {
    let plan: Plan = toml::from_str(BASE).unwrap();
    plan.check().unwrap();
    assert_eq!(
        toml::from_str::<Plan>(&toml::to_string(&plan).unwrap()).unwrap(),
        plan
    );
}

/// Replaces the first text by the second and expects the message.
fn check(rows: &[(&str, &str, &str)]) {
    for (from, to, message) in rows {
        assert!(BASE.contains(from), "{from}");
        assert_eq!(refusal(&BASE.replacen(from, to, 1)), *message);
    }
}

#[test]
fn values_out_of_range_are_refused_by_field() {
    check(&[
        (
            "version = 1",
            "version = 9",
            "version: this build reads version 1, not 9",
        ),
        (
            "\"base\"",
            "\"Base\"",
            "name: use lower-case letters, digits and hyphens only",
        ),
        (
            "members = 3",
            "members = 8",
            "cluster.members: 1 to 7, not 8",
        ),
        (
            "members = 3",
            "members = 3\nheartbeat_ms = 0",
            "cluster.heartbeat_ms: 1 to 10000, not 0",
        ),
        (
            "members = 3",
            "members = 3\nelection_ms = 400",
            "cluster.election_ms: five heartbeats (500) to 60000, not 400",
        ),
        (
            "member = [1, 2]",
            "member = [1, 4]",
            "client \"alice\", member: members are numbered 1 to 3, there is no 4",
        ),
        (
            "member = [1, 2]",
            "member = []",
            "client \"alice\", member: an empty list names no member",
        ),
        (
            "[1, 5]",
            "[5, 1]",
            "client \"alice\", step 2, after_ms: [5, 1] has its lowest number last",
        ),
        (
            "repeat = 3",
            "repeat = 0",
            "client \"alice\", step 2, repeat: 1 to 10000, not 0",
        ),
        (
            "repeat = 3",
            "timeout_ms = 0",
            "client \"alice\", step 2, timeout_ms: 1 to 3600000 ms, not 0",
        ),
    ]);
}

#[test]
fn clocks_and_tokens_are_checked() {
    check(&[
        (
            "members = 3",
            "members = 3\ndrift_ppm = [1, 2, 3, 4]",
            "cluster.drift_ppm: 4 clocks for 3 members",
        ),
        (
            "members = 3",
            "members = 3\nsnapshot_count = 0",
            "cluster.snapshot_count: 1 at least, not 0",
        ),
        (
            "members = 3",
            "members = 3\nsnapshot_part_bytes = 1048577",
            "cluster.snapshot_part_bytes: 1 to 1048576, not 1048577",
        ),
        (
            "members = 3",
            "members = 3\ndrift_ppm = [100001]",
            "cluster.drift_ppm: -100000 to 100000, not 100001",
        ),
        (
            "members = 3",
            "members = 3\n[tokens]\nttl_ms = 999",
            "tokens.ttl_ms: 10 heartbeats (1000) at least, not 999",
        ),
        (
            "members = 3",
            "members = 3\n[tokens]\ntotal_max = 0",
            "tokens.total_max: 1 at least, or nobody could log in",
        ),
    ]);
}

#[test]
fn steps_that_nobody_could_run_are_refused() {
    check(&[
        (
            "wait_for = \"in\"",
            "wait_for = \"out\"",
            "client \"alice\", step 2, wait_for: no step is labelled \"out\"",
        ),
        (
            "wait_for = \"in\"",
            "wait_for_start = \"out\"",
            "client \"alice\", step 2, wait_for_start: no step is labelled \"out\"",
        ),
        (
            "wait_for = \"in\"",
            "wait_for = \"in\", use_token_of = \"out\"",
            "client \"alice\", step 2, use_token_of: no step is labelled \"out\"",
        ),
        (
            "wait_for = \"in\", repeat = 3",
            "label = \"me\", use_token_of = \"me\"",
            "client \"alice\", step 2, use_token_of: the step labelled \"me\" is no login",
        ),
        (
            "wait_for = \"in\"",
            "use_token_of = \"in\", session = \"s\"",
            "client \"alice\", step 2, use_token_of: a step presents one token: the session's or that of another login",
        ),
        (
            "label = \"in\"",
            "label = \"in\", anonymous = true",
            "client \"alice\", step 1, anonymous: a login presents no token",
        ),
        (
            "label = \"in\"",
            "label = \"in\", use_token_of = \"in\"",
            "client \"alice\", step 1, use_token_of: a login presents no token",
        ),
        (
            "password = \"r\" }]",
            "password = \"r\", wait_for = \"in\" }]",
            "setup, step 1, wait_for: set-up steps run once, one after the other, until each is done",
        ),
        (
            "password = \"r\" }]",
            "password = \"r\", expect = \"ok\" }]",
            "setup, step 1, expect: set-up steps run once, one after the other, until each is done",
        ),
        (
            "wait_for = \"in\"",
            "wait_for = \"me\", label = \"me\"",
            "client \"alice\", step 2, label: a repeated step has no single moment to wait for",
        ),
        (
            "wait_for = \"in\", repeat = 3",
            "wait_for = \"me\", label = \"me\"",
            "client \"alice\", step 2, wait_for: \"me\" never comes: steps wait for each other and none can go on",
        ),
        (
            "\"login\", user = \"root\"",
            "\"login\", user = \"rot\"",
            "client \"alice\", step 1, user: no step creates \"rot\"; if that is meant, say expect = \"refused\"",
        ),
        (
            "name = \"alice\"",
            "name = \"setup\"",
            "client 1, name: \"setup\" is a name of the simulator's own",
        ),
    ]);
}

/// A transaction that holds `inner`, as a field of a step.
fn txn_of(inner: &str) -> String {
    format!("do = \"txn\", success = [{{ {inner} }}]")
}

#[test]
fn transactions_nest_and_hold_data_calls_only() {
    let put = "do = \"put\", key = \"k\", value = \"v\"";
    let nested = |depth| (1..=depth).fold(put.to_owned(), |inner, _| txn_of(&inner));
    let plan = |step: &str| BASE.replacen(put, step, 1);
    let deep: Plan = toml::from_str(&plan(&nested(8))).unwrap();
    deep.check().unwrap();
    let rows = [
        (
            nested(9),
            "client \"alice\", step 2: transactions nest at most 8 deep",
        ),
        (
            txn_of(&txn_of("do = \"user-list\"")),
            "client \"alice\", step 2, success: a transaction holds put, get, delete and txn only",
        ),
        (
            txn_of("do = \"get\", key = \"k\", revision = -1"),
            "client \"alice\", step 2: a revision is not negative",
        ),
    ];
    for (step, message) in rows {
        assert_eq!(refusal(&plan(&step)), message);
    }
}

#[test]
fn faults_and_windows_are_checked() {
    let rows = [
        (
            "[[window]]\nname = \"commit-to-publish\"\nms = [9, 3]",
            "window 1, ms: [9, 3] has its lowest number last",
        ),
        (
            "[[fault]]\nkind = \"kill\"\nmember = 9",
            "fault 1, member: members are numbered 1 to 3, there is no 9",
        ),
        (
            "[[fault]]\nkind = \"partition\"\na = [1]\nb = [1, 2]",
            "fault 1, b: member 1 stands on both sides",
        ),
        (
            "[[fault]]\nkind = \"partition\"\na = []\nb = [2]",
            "fault 1, a: each side needs a member",
        ),
        (
            "[[fault]]\nkind = \"heal\"\nfor_ms = 5",
            "fault 1, for_ms: this kind of fault is over at once",
        ),
        (
            "[[fault]]\nkind = \"loss\"\nrate = 1.5",
            "fault 1, rate: 0 to 0.9, not 1.5",
        ),
        (
            "[[fault]]\nkind = \"heal\"\nwait_for = \"no\"",
            "fault 1, wait_for: no step is labelled \"no\"",
        ),
        (
            "[[fault]]\nkind = \"heal\"\nwait_for_start = \"no\"",
            "fault 1, wait_for_start: no step is labelled \"no\"",
        ),
        (
            "[[fault]]\nkind = \"partition\"\na = [1]\nb = [4]",
            "fault 1, b: members are numbered 1 to 3, there is no 4",
        ),
        (
            "[[fault]]\nkind = \"clock-drift\"\nmember = 9\nppm = 1",
            "fault 1, member: members are numbered 1 to 3, there is no 9",
        ),
        (
            "[[fault]]\nkind = \"clock-drift\"\nmember = 1\nppm = -100001",
            "fault 1, ppm: -100000 to 100000, not -100001",
        ),
        (
            "[[fault]]\nkind = \"clock-jump\"\nmember = 1\nms = 86400001",
            "fault 1, ms: -86400000 to 86400000, not 86400001",
        ),
    ];
    for (addition, message) in rows {
        assert_eq!(refusal(&format!("{BASE}{addition}\n")), message);
    }
}

#[test]
fn faults_of_disks_are_checked() {
    let rows = [
        (
            "[[fault]]\nkind = \"cut-peers\"\nmember = 9",
            "fault 1, member: members are numbered 1 to 3, there is no 9",
        ),
        (
            "[[fault]]\nkind = \"disk-stall\"\nmember = 9",
            "fault 1, member: members are numbered 1 to 3, there is no 9",
        ),
        (
            "[[fault]]\nkind = \"power-cut\"\nmember = 1\noperations = [9, 3]",
            "fault 1, operations: [9, 3] has its lowest number last",
        ),
        (
            "[[fault]]\nkind = \"power-cut\"\nmember = 1\noperations = 100001",
            "fault 1, operations: at most 100000, not 100001",
        ),
        (
            "[[fault]]\nkind = \"disk-error\"\nmember = 1\noperation = \"sync\"\nnext = 0",
            "fault 1, next: 1 to 1000000, not 0",
        ),
        (
            "[[fault]]\nkind = \"disk-full\"\nmember = 1\nroom = 1073741825",
            "fault 1, room: at most 1073741824, not 1073741825",
        ),
        (
            "[[fault]]\nkind = \"disk-slow\"\nmember = 1\nms = 0",
            "fault 1, ms: 1 to 60000 ms, not 0",
        ),
        (
            "[[fault]]\nkind = \"disk-rot\"\nmember = 1\nbytes = 4097",
            "fault 1, bytes: 1 to 4096, not 4097",
        ),
        (
            "[[fault]]\nkind = \"disk-rot\"\nmember = 1\nrunning = true\nfor_ms = 5",
            "fault 1, for_ms: this kind of fault is over at once",
        ),
        (
            "[[fault]]\nkind = \"disk-rot\"\nmember = 1\n[[fault]]\nkind = \"disk-rot\"\nmember = 1",
            "fault: 2 times disk-rot; of 3 members at most 1 may lose their store",
        ),
    ];
    for (addition, message) in rows {
        assert_eq!(refusal(&format!("{BASE}{addition}\n")), message);
    }
}

#[test]
fn an_expected_mark_is_a_window_or_a_mark_of_histories() {
    let known = format!("{BASE}[expect.marks]\ncommit-to-publish = 1\ntoken-waited = 1\n");
    assert_eq!(toml::from_str::<Plan>(&known).unwrap().check(), Ok(()));
    let message = refusal(&format!("{BASE}[expect.marks]\ntoken-wait = 1\n"));
    let start = "expect.marks: there is no \"token-wait\", only password-checked-to-proposed, ";
    assert!(message.starts_with(start), "{message}");
    assert!(message.contains("token-waited, "), "{message}");
}

#[test]
fn the_judge_is_told_of_the_worst_clock() {
    let drift = |text: &str| {
        let plan: Plan = toml::from_str(text).unwrap();
        plan.check().unwrap();
        plan.token_rules().drift_ppm
    };
    assert_eq!(drift(BASE), 0);
    let drifting = BASE.replacen("members = 3", "members = 3\ndrift_ppm = [7, -9]", 1);
    assert_eq!(drift(&drifting), 9);
    let struck = "[[fault]]\nkind = \"clock-drift\"\nmember = \"leader\"\nppm = -50\nfor_ms = 10\n";
    assert_eq!(drift(&format!("{drifting}{struck}")), 50);
}

#[test]
fn a_parse_error_names_line_column_and_field() {
    let text = BASE.replacen("repeat = 3", "repaet = 3", 1);
    let error = toml::from_str::<Plan>(&text).unwrap_err().to_string();
    assert!(error.contains("line 12, column"), "{error}");
    assert!(error.contains("repaet"), "{error}");
}

#[test]
fn clocks_tokens_copies_and_shown_bugs_are_checked() {
    check(&[
        (
            "members = 3",
            "members = 3\ndrift_ppm = [0, 0, 0, 1]",
            "cluster.drift_ppm: 4 clocks for 3 members",
        ),
        (
            "members = 3",
            "members = 3\ndrift_ppm = [-100001]",
            "cluster.drift_ppm: -100000 to 100000, not -100001",
        ),
        (
            "[cluster]",
            "[tokens]\nttl_ms = 999\n[cluster]",
            "tokens.ttl_ms: 10 heartbeats (1000) at least, not 999",
        ),
        (
            "[cluster]",
            "[tokens]\nper_user_max = 0\n[cluster]",
            "tokens.per_user_max: 1 at least, or nobody could log in",
        ),
        (
            "name = \"alice\"",
            "name = \"alice\"\ncopies = 0",
            "client \"alice\", copies: 1 at least",
        ),
        (
            "name = \"alice\"",
            "name = \"alice\"\ncopies = 65",
            "client: 65 clients, the limit is 64",
        ),
        (
            "name = \"alice\"",
            "name = \"alice\"\ncopies = 2",
            "client \"alice\", copies: a step with a label that several clients run has no single moment to wait for",
        ),
        (
            "setup =",
            "shows = [\"token-activation-lag\", \"root-unprotectd\"]\nsetup =",
            "shows 2, bug: there is no planted bug \"root-unprotectd\"; did you mean \"root-unprotected\"? \
             `gatehouse-sim bugs --help` lists them",
        ),
        (
            "setup =",
            "bug = \"root-unprotectd\"\nsetup =",
            "bug: there is no planted bug \"root-unprotectd\"; did you mean \"root-unprotected\"? \
             `gatehouse-sim bugs --help` lists them",
        ),
        (
            "setup =",
            "shows = [{ bug = \"token-activation-lag\", by = [\"bob\"] }]\nsetup =",
            "shows 1, by: no client is called \"bob\"",
        ),
    ]);
}

#[test]
fn copies_have_names_of_their_own() {
    let text = BASE.replacen(", label = \"in\"", "", 1);
    let text = text.replacen(", wait_for = \"in\"", "", 1);
    let text = text.replacen("name = \"alice\"", "name = \"alice\"\ncopies = 2", 1);
    let plan: Plan = toml::from_str(&text).unwrap();
    plan.check().unwrap();
    let alice = &plan.clients[0];
    assert_eq!(alice.names(), ["alice-1", "alice-2"]);
    let is_called = ["alice", "alice-0", "alice-2", "alice-3"].map(|name| alice.is_called(name));
    assert_eq!(is_called, [false, false, true, false]);
}
