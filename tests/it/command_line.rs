//! What the program accepts and refuses to start with.

use crate::harness::{Cluster, gatehouse, run_to_end};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn wrong_flags_end_with_code_2_and_name_flag_and_value() {
    for (flags, expected) in [
        (
            &["--initial-cluster-state=existing"][..],
            "invalid value 'existing' for '--initial-cluster-state': joining a running cluster is not supported yet",
        ),
        (
            &["--election-timeout", "100"],
            "invalid value '100' for '--election-timeout': must be at least five times --heartbeat-interval, 100 ms",
        ),
        (
            &["--listen-peer-urls=https://localhost:1"],
            "invalid value 'https://localhost:1' for '--listen-peer-urls <URLS>': must start with http://",
        ),
        (
            &["--client-cert-auth"],
            "unexpected argument '--client-cert-auth' found",
        ),
    ] {
        let mut command = gatehouse();
        command.args(flags);
        let output = run_to_end(command);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(
            stderr(&output).contains(expected),
            "{flags:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{flags:?}");
    }
}

#[test]
fn variables_stand_in_for_flags_and_flags_win() {
    let mut command = gatehouse();
    command.env("ETCD_BCRYPT_COST", "99");
    let output = run_to_end(command);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("invalid value '99' for '--bcrypt-cost"),
        "{}",
        stderr(&output)
    );

    let mut command = gatehouse();
    command
        .env("ETCD_BCRYPT_COST", "99")
        .args(["--bcrypt-cost=4", "--initial-cluster-state=existing"]);
    let output = run_to_end(command);
    assert!(
        stderr(&output).contains("--initial-cluster-state"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_port_in_use_is_named() {
    let cluster = Cluster::prepare(1, &[]);
    let member = &cluster.members[0];
    let port: u16 = member
        .address()
        .rsplit_once(':')
        .unwrap()
        .1
        .parse()
        .unwrap();
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let output = run_to_end(member.command());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains(&member.address()),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("in use"), "{}", stderr(&output));
}

#[test]
fn a_data_directory_serves_one_process_and_only_its_owner_may_look() {
    let cluster = Cluster::start(1, &[]);
    let member = &cluster.members[0];
    let mode = std::fs::metadata(&member.data_dir)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);

    // Other ports and the same cluster, so that it is the directory that stands in the way.
    let mut other = Cluster::prepare(1, &[]);
    other.members[0].data_dir = member.data_dir.clone();
    let output = run_to_end(other.members[0].command());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("another process"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_member_that_is_told_to_stop_ends_with_code_0() {
    let mut cluster = Cluster::start(1, &[]);
    let status = cluster.members[0].terminate();
    assert_eq!(status.code(), Some(0), "{}", cluster.members[0].log());
}
