//! Tests of the reader: right files come back as they were, and each defect is named with its place.

use super::*;
use crate::history::{
    Applied, Event, FORMAT_VERSION, Header, Installed, Op, Outcome, TokenNote, TokenRules, What,
};

const HEADER: &str =
    r#"{"format":"gatehouse-history","version":1,"scenario":"s","seed":7,"bug":null,"members":3}"#;
const INVOKE: &str =
    r#"{"at_us":5,"event":"invoke","call":1,"client":"a","member":2,"op":{"do":"auth-enable"}}"#;
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

fn of_clients() -> Vec<What> {
    let put = Op::Put {
        key: "a\n\"\0é".into(),
        value: "v".into(),
        prev_kv: true,
    };
    vec![
        What::Started {
            member: 1,
            index: 0,
        },
        What::Invoke {
            call: u64::MAX - 1,
            client: "b".into(),
            member: 3,
            token: None,
            op: Box::new(Op::Login {
                user: "u".into(),
                password: "p".into(),
            }),
        },
        What::Return {
            call: u64::MAX - 1,
            outcome: Outcome::Refused {
                code: "FailedPrecondition".into(),
                message: "m".into(),
            },
        },
        What::Invoke {
            call: u64::MAX,
            client: "a".into(),
            member: 1,
            token: Some(u64::MAX - 1),
            op: Box::new(Op::Txn {
                compare: vec![],
                success: vec![put],
                failure: vec![],
            }),
        },
        What::Return {
            call: u64::MAX,
            outcome: Outcome::Ok(Box::default()),
        },
    ]
}

fn of_members() -> Vec<What> {
    let login = Applied {
        member: 1,
        index: 3,
        term: 2,
        request_id: u64::MAX - 1,
        kind: "login".into(),
        user: "a".into(),
        header_auth_revision: 3,
        decision: "ok".into(),
        auth_revision: 3,
        auth_enabled: true,
        kv_revision: i64::MAX,
        digest: u64::MAX,
        tokens: Vec::new(),
    };
    let expiry = Applied {
        index: 4,
        request_id: u64::MAX,
        kind: "token-expire".into(),
        tokens: vec![TokenNote {
            login_index: 3,
            refresh_count: 1,
        }],
        ..login.clone()
    };
    vec![
        What::Applied(Box::new(login)),
        What::Applied(Box::new(expiry)),
        What::Proposed {
            member: 1,
            call: u64::MAX,
            request_id: 1,
        },
        What::Served {
            member: 1,
            call: u64::MAX,
            index: u64::MAX,
        },
        What::Role {
            member: 3,
            term: 2,
            leader: false,
        },
        What::Fault {
            what: "kill n2".into(),
        },
        What::Probe {
            member: 1,
            index: 4,
            kv_hash: u32::MAX,
            auth_hash: u64::MAX,
            digest: 0,
        },
        What::Healed,
    ]
}

fn of_snapshots() -> Vec<What> {
    vec![
        What::Truncated {
            member: 2,
            first_index: 3,
        },
        What::SnapshotSent {
            member: 2,
            to: 3,
            index: u64::MAX,
        },
        What::Installed(Box::new(Installed {
            member: 3,
            index: 9,
            term: 2,
            auth_revision: 4,
            auth_enabled: true,
            kv_revision: 5,
            digest: u64::MAX,
        })),
        What::Compared {
            member: 3,
            index: 9,
            equal: false,
        },
    ]
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
    let whats = [of_clients(), of_members(), of_snapshots()].concat();
    let event = |what| Event { at_us: 17, what };
    let events = whats.into_iter().map(event).collect();
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
        ":1:1: the file is empty; a history begins with a header line"
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
        ":1:88: members: 1 to 1000, not 0",
    );
    assert_eq!(
        error(b"\x7fELF\x02\xff\x00\n"),
        ":1:6: not text: the bytes are not UTF-8"
    );
}

#[test]
fn header_values_that_cannot_be_are_refused() {
    let rows = [
        (
            r#""bug":null,"tokens":{"ttl_ms":0}"#,
            "ttl_ms: 1 at least, or nobody could log in",
        ),
        (
            r#""bug":null,"tokens":{"per_user_max":0}"#,
            "per_user_max: 1 at least, or nobody could log in",
        ),
        (
            r#""bug":null,"tokens":{"total_max":0}"#,
            "total_max: 1 at least, or nobody could log in",
        ),
        (
            r#""bug":null,"tokens":{"drift_ppm":1000000}"#,
            "drift_ppm: below 1000000, not 1000000",
        ),
    ];
    for (fields, expected) in rows {
        let header = HEADER.replace(r#""bug":null"#, fields);
        let text = error(format!("{header}\n").as_bytes());
        // The column is that of the value.
        let field = expected.split(':').next().unwrap();
        let name = format!("\"{field}\":");
        let value = header.find(&name).unwrap() + name.len();
        let blanks = header[value..].len() - header[value..].trim_start().len();
        let place = format!(":1:{}: ", value + blanks + 1);
        assert!(text.starts_with(&format!("{place}{expected}")), "{text}");
    }
}

#[test]
fn an_objection_to_the_header_is_a_defect_at_its_field() {
    let object = |header: &Header| header.bug.as_ref().map(|bug| ("bug", format!("no {bug}")));
    for (value, name) in [("\"x\"", "x"), (" \"y/a\"", "y/a")] {
        let header = HEADER.replace("null", value);
        let text = format!("{header}\n{{\"end\":0}}\n");
        let found = read(Path::new("h"), text.as_bytes(), &object).unwrap_err();
        let column = header.find(value.trim_start()).unwrap() + 1;
        assert_eq!(found.to_string(), format!("h:1:{column}: bug: no {name}"));
        assert!(read(Path::new("h"), text.as_bytes(), &|_| None).is_ok());
    }
}

#[test]
fn the_column_is_that_of_the_field_and_not_of_a_like_text() {
    let line = r#"{"client":"member","what":"\"member\":1","member" : 7}"#;
    assert_eq!(column_of(line, "member"), line.find('7').map(|at| at + 1));
    assert_eq!(column_of(line, "call"), None);
}

#[test]
fn a_newer_version_is_refused_by_its_number() {
    let newer = HEADER.replace(r#""version":1"#, r#""version":2,"more":true"#);
    check(
        &[&newer],
        ":1:1: the file has format version 2, this program reads up to 1",
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

/// An event at 7 µs, in the file's words.
fn event(text: &str) -> String {
    format!(r#"{{"at_us":7,"event":{text}}}"#)
}

#[test]
fn fields_that_an_event_does_not_have_are_refused() {
    let rows = [
        (
            r#""healed","member":1"#,
            ":3:1: unknown field `member` in this kind of event",
        ),
        (r#""started","member":1"#, ":3:1: missing field `index`"),
        (
            r#""started","member":4,"index":0"#,
            ":3:39: member 4: the header says that there are 3, from 1",
        ),
        (
            r#""started","member":0,"index":0"#,
            ":3:39: member 0: the header says that there are 3, from 1",
        ),
        (
            r#""started","member":1,"index":18446744073709551616"#,
            ":3:68: invalid type: floating point `1.8446744073709552e+19`, expected u64",
        ),
        (
            r#""started","member":"1","index":0"#,
            ":3:41: invalid type: string \"1\", expected u64",
        ),
        (
            r#""started","member":1,"member":1,"index":0"#,
            ":3:48: duplicate field `member`",
        ),
    ];
    for (text, expected) in rows {
        check(&[HEADER, INVOKE, &event(text)], expected);
    }
}

/// Claims that the last line is refused, where its field's value begins.
#[track_caller]
fn refused(lines: &[&str], field: &str, expected: &str) {
    let last = lines.last().unwrap();
    let name = format!("\"{field}\":");
    let column = last.find(&name).unwrap() + name.len() + 1;
    let expected = format!(":{}:{column}: {expected}", lines.len() + 1);
    check(&[&[HEADER], lines].concat(), &expected);
}

fn invoke(call: u64, client: &str, more: &str) -> String {
    event(&format!(
        r#""invoke","call":{call},"client":"{client}","member":1,"op":{{"do":"auth-enable"}}{more}"#
    ))
}

fn login() -> String {
    event(
        r#""invoke","call":2,"client":"b","member":1,"op":{"do":"login","user":"u","password":"p"}"#,
    )
}

#[test]
fn calls_out_of_order_are_refused() {
    let early = r#"{"at_us":4,"event":"healed"}"#;
    let odd = INVOKE.replace(
        r#"{"do":"auth-enable"}"#,
        r#"{"do":"txn","success":[{"do":"auth-enable"}]}"#,
    );
    let next = invoke(2, "a", "");
    let with_token_1 = invoke(2, "b", r#","token":1"#);
    let with_token_2 = invoke(3, "c", r#","token":2"#);
    let too_soon = "call 3 carries the token of call 2 before that has ended";
    let rows: [(&[&str], &str, &str); 9] = [
        (&[RETURN], "call", "call 1 ends before it was sent"),
        (&[INVOKE, INVOKE], "call", "call 1 is sent a second time"),
        (
            &[INVOKE, RETURN, RETURN],
            "call",
            "call 1 ends a second time",
        ),
        (
            &[INVOKE, early],
            "at_us",
            "time goes back: 4 µs after 5 µs; the events are not in order",
        ),
        (
            &[INVOKE, &next],
            "client",
            "a sends call 2 while it waits for call 1",
        ),
        (
            &[INVOKE, &with_token_1],
            "token",
            "call 2 carries the token of call 1, which is no login",
        ),
        (&[&with_token_2], "token", too_soon),
        (&[&login(), &with_token_2], "token", too_soon),
        (
            &[&odd],
            "op",
            "the transaction of call 1 holds more than data calls",
        ),
    ];
    for (lines, field, expected) in rows {
        refused(lines, field, expected);
    }
}

#[test]
fn records_that_fit_to_no_call_are_refused() {
    let proposed = event(r#""proposed","member":2,"call":1,"request_id":9"#);
    let served = event(r#""served","member":2,"call":1,"index":9"#);
    let applied = event(
        r#""applied","member":1,"index":2,"term":1,"request_id":9,"kind":"put","user":"","header_auth_revision":0,"decision":"ok","auth_revision":1,"auth_enabled":false,"kv_revision":2,"digest":1"#,
    );
    let other = event(r#""proposed","member":1,"call":2,"request_id":9"#);
    let elsewhere = event(r#""proposed","member":3,"call":1,"request_id":9"#);
    let not_there = event(r#""served","member":1,"call":1,"index":9"#);
    let note = applied.replace('}', r#","tokens":[{"login_index":1}]}"#);
    let rows: [(&[&str], &str, &str); 7] = [
        (
            &[&proposed],
            "call",
            "call 1 is proposed before it was sent",
        ),
        (&[&served], "call", "call 1 is answered before it was sent"),
        (
            &[INVOKE, &applied, &proposed],
            "request_id",
            "request id 9 is proposed after it was applied",
        ),
        (
            &[INVOKE, &login(), &proposed, &other],
            "request_id",
            "request id 9 stands for call 1 and for call 2",
        ),
        (
            &[INVOKE, &elsewhere],
            "member",
            "n3 says that it took call 1, which was sent to n2",
        ),
        (
            &[INVOKE, &not_there],
            "member",
            "n1 says that it took call 1, which was sent to n2",
        ),
        (
            &[INVOKE, &note],
            "tokens",
            "index 2 speaks of the token of index 1, where no login was applied",
        ),
    ];
    for (lines, field, expected) in rows {
        refused(lines, field, expected);
    }
}

#[test]
fn a_missing_file_is_named() {
    let text = read_history("/nonexistent/h.jsonl")
        .unwrap_err()
        .to_string();
    assert!(text.starts_with("/nonexistent/h.jsonl: "), "{text}");
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let long = "é".repeat(LINE_BYTES_MAX);
    let text = error(format!("{HEADER}\n{long}\n").as_bytes());
    assert_eq!(
        text,
        format!(":2:1: the line is longer than {LINE_BYTES_MAX} bytes")
    );
}
