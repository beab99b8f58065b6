//! What is typed and what becomes of it.

use super::*;

fn parse(flags: &str) -> Result<Settings, String> {
    let words = std::iter::once("gatehouse").chain(flags.split_whitespace());
    let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
    args.settings(2).map_err(|error| error.to_string())
}

/// The first line of the message, which is the one that counts.
fn refusal(flags: &str) -> String {
    let message = parse(flags).expect_err(flags);
    message
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned()
}

#[test]
fn the_flags_are_consistent() {
    use clap::CommandFactory;
    Args::command().debug_assert();
}

#[test]
fn without_flags_etcds_defaults_hold() {
    let settings = parse("").unwrap();
    let Config {
        members,
        listen_client,
        listen_peer,
        election,
        ..
    } = &settings.config;
    assert_eq!(settings.data_dir, PathBuf::from("default.etcd"));
    assert_eq!(*listen_client, ["127.0.0.1:2379".parse().unwrap()]);
    assert_eq!(*listen_peer, ["127.0.0.1:2380".parse().unwrap()]);
    assert_eq!(
        *members,
        [Member::new("default", "localhost:2380", "etcd-cluster")]
    );
    assert_eq!(settings.config.member_id, members[0].id);
    assert_eq!(*election, Duration::from_secs(1));
    assert_eq!(settings.config.bcrypt_cost, 10);
    assert_eq!(settings.config.token_ttl, Duration::from_secs(300));
    assert_eq!(settings.config.max_txn_ops, 128);
    assert_eq!(settings.config.max_request_bytes, 1_572_864);
    assert_eq!(settings.config.snapshot_count, 10_000);
}

#[test]
fn members_agree_on_the_cluster_whatever_the_order() {
    let one = parse(
        "--name=a --initial-advertise-peer-urls=http://h:1 --initial-cluster a=http://h:1,b=http://h:2",
    );
    let two = parse(
        "--name=b --initial-advertise-peer-urls=http://h:2 --initial-cluster b=http://h:2,a=http://h:1",
    );
    let (one, two) = (one.unwrap().config, two.unwrap().config);
    assert_eq!(one.members, two.members);
    assert_eq!(one.cluster_id, two.cluster_id);
    assert_ne!(one.member_id, two.member_id);
    assert!(one.members.is_sorted_by_key(|member| member.id));
}

#[track_caller]
fn check_refusals(rows: &[(&str, &str)]) {
    for (flags, expected) in rows {
        assert_eq!(refusal(flags), *expected, "{flags}");
    }
}

#[test]
fn a_refusal_names_the_flag_the_value_and_the_reason() {
    check_refusals(&[
        (
            "--initial-cluster-state=existing",
            "invalid value 'existing' for '--initial-cluster-state': \
             joining a running cluster is not supported yet, only 'new' is",
        ),
        (
            "--election-timeout 400",
            "invalid value '400' for '--election-timeout': \
             must be at least five times --heartbeat-interval, 100 ms",
        ),
        (
            "--listen-client-urls http://localhost:1",
            "invalid value 'http://localhost:1' for '--listen-client-urls': \
             --advertise-client-urls is required when this is given",
        ),
        (
            "--listen-peer-urls http://example.com:1",
            "invalid value 'http://example.com:1' for '--listen-peer-urls': \
             the host must be an IP address or localhost",
        ),
        (
            "--initial-cluster default=http://localhost:9",
            "invalid value 'http://localhost:2380' for '--initial-advertise-peer-urls': \
             --initial-cluster says http://localhost:9 for member 'default'",
        ),
        (
            "--initial-cluster other=http://localhost:9",
            "invalid value 'other=http://localhost:9' for '--initial-cluster': \
             this member, --name 'default', is not in it",
        ),
        (
            "--initial-cluster default=http://h:1,default=http://h:2",
            "invalid value 'default=http://h:1,default=http://h:2' for '--initial-cluster': \
             the name 'default' appears twice",
        ),
        (
            "--initial-cluster default=http://h:1,other=http://h:1",
            "invalid value 'default=http://h:1,other=http://h:1' for '--initial-cluster': \
             the URL http://h:1 appears twice",
        ),
        (
            "--initial-cluster http://h:1",
            "invalid value 'http://h:1' for '--initial-cluster <MEMBERS>': must be name=http://host:port",
        ),
        (
            "--bcrypt-cost=3",
            "invalid value '3' for '--bcrypt-cost <4..31>': 3 is not in 4..=31",
        ),
        (
            "--auth-token-ttl 1 --heartbeat-interval 101",
            "invalid value '1' for '--auth-token-ttl': \
             must be at least ten times --heartbeat-interval, 101 ms",
        ),
        (
            "--auth-token=jwt",
            "invalid value 'jwt' for '--auth-token <AUTH_TOKEN>'",
        ),
        ("--auto-tls", "unexpected argument '--auto-tls' found"),
        (
            "--name ../elsewhere",
            "invalid value '../elsewhere' for '--name': \
             must not be empty, and no '/', '\\', ',', '=' or control character may stand in it",
        ),
        (
            "--name=",
            "invalid value '' for '--name': \
             must not be empty, and no '/', '\\', ',', '=' or control character may stand in it",
        ),
    ]);
}

#[test]
fn only_plain_http_urls_with_a_port_are_taken() {
    check_refusals(&[
        (
            "--listen-peer-urls https://localhost:1",
            "invalid value 'https://localhost:1' for '--listen-peer-urls <URLS>': \
             must start with http:// (TLS and sockets by path are not supported yet)",
        ),
        (
            "--listen-peer-urls http://localhost",
            "invalid value 'http://localhost' for '--listen-peer-urls <URLS>': \
             must name a port, as http://host:port",
        ),
        (
            "--listen-peer-urls http://localhost:0",
            "invalid value 'http://localhost:0' for '--listen-peer-urls <URLS>': \
             the port must be a number from 1 to 65535",
        ),
    ]);
}

#[test]
fn addresses_are_read_as_written() {
    let settings = parse(
        "--listen-client-urls http://[::1]:1,http://0.0.0.0:2 --advertise-client-urls http://me.example:1/",
    );
    let listen = settings.unwrap().config.listen_client;
    assert_eq!(
        listen,
        ["[::1]:1".parse().unwrap(), "0.0.0.0:2".parse().unwrap()]
    );
}
