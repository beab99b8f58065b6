//! The command line: etcd's flag names, etcd's `ETCD_*` variables, etcd's defaults. What was typed becomes [`Settings`]
//! once, here; nothing further in reads arguments or the environment. A flag whose feature does not exist yet is not
//! accepted, so that nobody believes it works.

use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};
use gatehouse::config::{
    Config, Member, SNAPSHOT_COUNT, SNAPSHOT_PART_BYTES, TOKEN_LIMITS, TOKEN_TTL,
    TOKEN_TTL_HEARTBEATS_MIN, cluster_id,
};
use gatehouse::state::TokenKind;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Longest election timeout, milliseconds: etcd's bound.
const ELECTION_TIMEOUT_MS_MAX: u64 = 50_000;

/// Longest `--auth-token-ttl`, seconds: etcd takes any 32-bit number.
const TOKEN_TTL_SECS_MAX: u64 = u32::MAX as u64;

/// Largest `--max-request-bytes`: raft sends an entry as one message, and peers must get heartbeats through beside it.
const REQUEST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Largest `--max-txn-ops`: a transaction holds up every member for as long as it is applied.
const TXN_OPS_MAX: u64 = 65_536;

/// Largest `--snapshot-count`: a start reads the whole log.
const SNAPSHOT_COUNT_MAX: u64 = 100_000_000;

/// Members of one cluster: raft sends every entry to each of them.
const MEMBERS_MAX: usize = 9;

/// An etcd-v3-compatible key-value server with authentication.
#[derive(Debug, Parser)]
#[command(name = "gatehouse", version, max_term_width = 100)]
pub(crate) struct Args {
    /// Name of this member.
    #[arg(long, env = "ETCD_NAME", default_value = "default")]
    name: String,

    /// Directory of this member's data, created if it does not exist [default: NAME.etcd].
    #[arg(long, env = "ETCD_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Where to listen for clients, comma-separated [default: http://localhost:2379].
    #[arg(
        long,
        env = "ETCD_LISTEN_CLIENT_URLS",
        value_name = "URLS",
        value_delimiter = ','
    )]
    listen_client_urls: Option<Vec<HttpUrl>>,

    /// Where clients reach this member, comma-separated; needed with --listen-client-urls.
    #[arg(
        long,
        env = "ETCD_ADVERTISE_CLIENT_URLS",
        value_name = "URLS",
        value_delimiter = ','
    )]
    advertise_client_urls: Option<Vec<HttpUrl>>,

    /// Where to listen for the other members, comma-separated.
    #[arg(
        long,
        env = "ETCD_LISTEN_PEER_URLS",
        value_name = "URLS",
        value_delimiter = ',',
        default_value = "http://localhost:2380"
    )]
    listen_peer_urls: Vec<HttpUrl>,

    /// Where the other members reach this one.
    #[arg(
        long,
        env = "ETCD_INITIAL_ADVERTISE_PEER_URLS",
        value_name = "URL",
        default_value = "http://localhost:2380"
    )]
    initial_advertise_peer_urls: HttpUrl,

    /// All members as name=URL, comma-separated [default: this member alone].
    #[arg(
        long,
        env = "ETCD_INITIAL_CLUSTER",
        value_name = "MEMBERS",
        value_delimiter = ','
    )]
    initial_cluster: Option<Vec<NamedUrl>>,

    /// Whether the cluster is being created.
    #[arg(long, env = "ETCD_INITIAL_CLUSTER_STATE", default_value = "new")]
    initial_cluster_state: ClusterState,

    /// What tells this cluster from others with the same addresses.
    #[arg(
        long,
        env = "ETCD_INITIAL_CLUSTER_TOKEN",
        value_name = "TEXT",
        default_value = "etcd-cluster"
    )]
    initial_cluster_token: String,

    /// Which tokens logins get.
    #[arg(long, env = "ETCD_AUTH_TOKEN", default_value = "simple")]
    auth_token: AuthToken,

    /// How long simple tokens live after their last use, seconds.
    #[arg(long, env = "ETCD_AUTH_TOKEN_TTL", value_name = "SECONDS", default_value_t = TOKEN_TTL.as_secs(),
          value_parser = clap::value_parser!(u64).range(1..=TOKEN_TTL_SECS_MAX))]
    auth_token_ttl: u64,

    /// bcrypt cost of new password hashes.
    #[arg(long, env = "ETCD_BCRYPT_COST", value_name = "4..31", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(4..=31))]
    bcrypt_cost: u32,

    /// Time between a leader's heartbeats, milliseconds.
    #[arg(long, env = "ETCD_HEARTBEAT_INTERVAL", value_name = "MS", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=ELECTION_TIMEOUT_MS_MAX / 5))]
    heartbeat_interval: u64,

    /// How long a member waits for a leader, milliseconds; at least five heartbeats.
    #[arg(long, env = "ETCD_ELECTION_TIMEOUT", value_name = "MS", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(5..=ELECTION_TIMEOUT_MS_MAX))]
    election_timeout: u64,

    /// Most operations in one transaction.
    #[arg(long, env = "ETCD_MAX_TXN_OPS", value_name = "COUNT", default_value_t = 128,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=TXN_OPS_MAX))]
    max_txn_ops: usize,

    /// Largest request, bytes.
    #[arg(long, env = "ETCD_MAX_REQUEST_BYTES", value_name = "BYTES", default_value_t = 1_572_864,
          value_parser = RangedU64ValueParser::<usize>::new().range(1024..=REQUEST_BYTES_MAX))]
    max_request_bytes: usize,

    /// Applied entries after which the log loses its beginning; a member that needs what is gone gets the state instead.
    #[arg(long, env = "ETCD_SNAPSHOT_COUNT", value_name = "COUNT", default_value_t = SNAPSHOT_COUNT,
          value_parser = clap::value_parser!(u64).range(1..=SNAPSHOT_COUNT_MAX))]
    snapshot_count: u64,

    /// Least severe messages to log, on standard error.
    #[arg(long, env = "ETCD_LOG_LEVEL", default_value = "info")]
    log_level: LogLevel,
}

/// Whether the cluster is being created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClusterState {
    /// All members start for the first time, or again.
    New,
    /// The member joins others that run already; not supported yet.
    #[value(hide = true)]
    Existing,
}

/// Which tokens logins get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthToken {
    /// Random text, known to every member.
    Simple,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// What the server needs, validated.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// How the member runs.
    pub(crate) config: Config,
    /// Where its data lies.
    pub(crate) data_dir: PathBuf,
    /// How much is logged.
    pub(crate) log_level: LogLevel,
}

/// Flags that do not fit together, or a value that does not fit this version. Names the flag and the value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value '{value}' for '--{flag}': {reason}")]
pub(crate) struct ArgsError {
    flag: &'static str,
    value: String,
    reason: String,
}

impl ArgsError {
    fn new(flag: &'static str, value: impl fmt::Display, reason: impl Into<String>) -> ArgsError {
        ArgsError {
            flag,
            value: value.to_string(),
            reason: reason.into(),
        }
    }
}

impl Args {
    /// What the server needs, from what was typed. `cpus` is how many passwords may be hashed at a time.
    ///
    /// # Errors
    /// [`ArgsError`] names the first flag that does not fit.
    pub(crate) fn settings(self, cpus: usize) -> Result<Settings, ArgsError> {
        if self.initial_cluster_state == ClusterState::Existing {
            let reason = "joining a running cluster is not supported yet, only 'new' is";
            return Err(ArgsError::new("initial-cluster-state", "existing", reason));
        }
        let misplaced = |c: char| c.is_control() || "/\\,=".contains(c);
        if self.name.is_empty() || self.name.contains(misplaced) {
            // It is part of a path, of --initial-cluster and of log lines.
            let reason = "must not be empty, and no '/', '\\', ',', '=' or control character may stand in it";
            return Err(ArgsError::new("name", self.name.escape_default(), reason));
        }
        let (election, heartbeat) = (self.election_timeout, self.heartbeat_interval);
        if election < 5 * heartbeat {
            let reason =
                format!("must be at least five times --heartbeat-interval, {heartbeat} ms");
            return Err(ArgsError::new("election-timeout", election, reason));
        }
        let ttl = self.auth_token_ttl;
        if ttl * 1000 < u64::from(TOKEN_TTL_HEARTBEATS_MIN) * heartbeat {
            let reason = format!("must be at least ten times --heartbeat-interval, {heartbeat} ms");
            return Err(ArgsError::new("auth-token-ttl", ttl, reason));
        }
        let members = self.members()?;
        let own = Member::new(
            &self.name,
            &self.initial_advertise_peer_urls.address(),
            &self.initial_cluster_token,
        );
        let config = Config {
            cluster_id: cluster_id(&members, &self.initial_cluster_token),
            member_id: own.id,
            members,
            listen_client: self.listen_client()?,
            listen_peer: listen("listen-peer-urls", &self.listen_peer_urls)?,
            heartbeat: Duration::from_millis(self.heartbeat_interval),
            election: Duration::from_millis(self.election_timeout),
            bcrypt_cost: self.bcrypt_cost,
            password_workers: cpus,
            token_kind: match self.auth_token {
                AuthToken::Simple => TokenKind::Simple,
            },
            token_ttl: Duration::from_secs(self.auth_token_ttl),
            token_limits: TOKEN_LIMITS,
            max_txn_ops: self.max_txn_ops,
            max_request_bytes: self.max_request_bytes,
            snapshot_count: self.snapshot_count,
            snapshot_part_bytes: SNAPSHOT_PART_BYTES,
        };
        let data_dir = self
            .data_dir
            .unwrap_or_else(|| PathBuf::from(format!("{}.etcd", self.name)));
        Ok(Settings {
            config,
            data_dir,
            log_level: self.log_level,
        })
    }

    fn listen_client(&self) -> Result<Vec<SocketAddr>, ArgsError> {
        let Some(urls) = &self.listen_client_urls else {
            return Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 2379))]);
        };
        if self.advertise_client_urls.is_none() {
            // As in etcd: an address to listen at (0.0.0.0, say) is often none to connect to.
            let reason = "--advertise-client-urls is required when this is given";
            return Err(ArgsError::new("listen-client-urls", joined(urls), reason));
        }
        listen("listen-client-urls", urls)
    }

    /// All members by id.
    fn members(&self) -> Result<Vec<Member>, ArgsError> {
        let own = NamedUrl {
            name: self.name.clone(),
            url: self.initial_advertise_peer_urls.clone(),
        };
        let listed = self
            .initial_cluster
            .clone()
            .unwrap_or_else(|| vec![own.clone()]);
        let bad = |reason: String| Err(ArgsError::new("initial-cluster", joined(&listed), reason));
        for (at, member) in listed.iter().enumerate() {
            let before = &listed[..at];
            if before.iter().any(|other| other.name == member.name) {
                return bad(format!("the name '{}' appears twice", member.name));
            }
            if before.iter().any(|other| other.url == member.url) {
                return bad(format!("the URL {} appears twice", member.url));
            }
        }
        if listed.len() > MEMBERS_MAX {
            return bad(format!("more than {MEMBERS_MAX} members"));
        }
        match listed.iter().find(|member| member.name == own.name) {
            None => return bad(format!("this member, --name '{}', is not in it", own.name)),
            Some(listed) if listed.url != own.url => {
                let flag = "initial-advertise-peer-urls";
                let reason = format!(
                    "--initial-cluster says {} for member '{}'",
                    listed.url, own.name
                );
                return Err(ArgsError::new(flag, own.url, reason));
            }
            Some(_) => {}
        }
        let token = &self.initial_cluster_token;
        let member = |named: &NamedUrl| Member::new(&named.name, &named.url.address(), token);
        let mut members: Vec<Member> = listed.iter().map(member).collect();
        members.sort_unstable_by_key(|member| member.id);
        Ok(members)
    }
}

fn joined<T: fmt::Display>(values: &[T]) -> String {
    values
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

/// Addresses to listen at. Names are not looked up, as in etcd: a listener must not depend on a name server.
fn listen(flag: &'static str, urls: &[HttpUrl]) -> Result<Vec<SocketAddr>, ArgsError> {
    let address = |url: &HttpUrl| match url.host.trim_matches(['[', ']']) {
        "localhost" => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, url.port))),
        host => match host.parse::<IpAddr>() {
            Ok(ip) => Ok(SocketAddr::new(ip, url.port)),
            Err(_) => Err(ArgsError::new(
                flag,
                url,
                "the host must be an IP address or localhost",
            )),
        },
    };
    urls.iter().map(address).collect()
}

/// `http://host:port`, and nothing after it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HttpUrl {
    /// A name, an IPv4 address, or an IPv6 address in brackets.
    host: String,
    port: u16,
}

impl HttpUrl {
    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl FromStr for HttpUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<HttpUrl, &'static str> {
        let Some(address) = text.trim().strip_prefix("http://") else {
            return Err("must start with http:// (TLS and sockets by path are not supported yet)");
        };
        let address = address.strip_suffix('/').unwrap_or(address);
        if address.contains(['/', '?', '#', '@']) {
            return Err("must be http://host:port, without a path");
        }
        let Some((host, port)) = address.rsplit_once(':') else {
            return Err("must name a port, as http://host:port");
        };
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || (host.contains(':') && !bracketed) {
            return Err("must name a host, an IPv6 address in brackets");
        }
        match port.parse() {
            Ok(0) | Err(_) => Err("the port must be a number from 1 to 65535"),
            Ok(port) => Ok(HttpUrl {
                host: host.to_owned(),
                port,
            }),
        }
    }
}

/// `name=URL`: one member.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedUrl {
    name: String,
    url: HttpUrl,
}

impl fmt::Display for NamedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.url)
    }
}

impl FromStr for NamedUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedUrl, String> {
        match text.trim().split_once('=') {
            Some((name, url)) if !name.is_empty() => {
                let url = url.parse().map_err(|reason| format!("'{url}': {reason}"))?;
                Ok(NamedUrl {
                    name: name.to_owned(),
                    url,
                })
            }
            _ => Err("must be name=http://host:port".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
