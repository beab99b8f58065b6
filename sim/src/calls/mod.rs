//! One call of a client: sent through the real gRPC client, recorded from its start to its end, its outcome classified.
//!
//! Nothing here repeats a call: whoever repeats makes another call, with a number of its own in the history.

mod answer;
mod outcome;
mod password;
mod request;

pub(crate) use outcome::code_name;
pub use password::PASSWORD_MARKER;
use password::password;

use crate::recorder::Recorder;
use gatehouse::pb::etcdserverpb::auth_client::AuthClient;
use gatehouse::pb::etcdserverpb::kv_client::KvClient;
use gatehouse::pb::etcdserverpb::maintenance_client::MaintenanceClient;
use gatehouse::pb::etcdserverpb::{HashKvRequest, HashKvResponse};
use gatehouse::platform::{Channel, ChannelOptions, Keepalive, is_unsent};
use gatehouse_judge::history::{Op, Outcome, Reply};
use std::collections::BTreeMap;
use std::time::Duration;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::{Code, Request, Status};

/// Pings of a client's connection: one after so much silence, with as long again for the answer. So a partition costs a
/// client at most two of these, and the server's side of the connection is cleaned up too.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(1);

/// Where members listen for clients.
pub(crate) const CLIENT_PORT: u16 = 2379;

/// A token as a client holds it. Histories know it by the login's call number.
#[derive(Clone)]
pub(crate) struct Token {
    /// The login's call number.
    pub(crate) login: u64,
    text: AsciiMetadataValue,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token(of call {})", self.login)
    }
}

/// One call to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'c> {
    /// Where it goes.
    pub(crate) member: u64,
    /// What is asked.
    pub(crate) op: &'c Op,
    /// Whose token goes with it.
    pub(crate) token: Option<&'c Token>,
    /// How long it may take.
    pub(crate) timeout: Duration,
}

/// A call that is over.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// Its number.
    pub(crate) number: u64,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// The token, if it was a login that gave one.
    pub(crate) token: Option<Token>,
}

/// A client's connections, and the record of what it does.
pub(crate) struct Caller {
    name: String,
    seed: u64,
    recorder: Recorder,
    channels: BTreeMap<u64, Channel>,
}

impl Caller {
    /// A client called `name`, not yet connected.
    pub(crate) fn new(name: impl Into<String>, seed: u64, recorder: Recorder) -> Caller {
        Caller {
            name: name.into(),
            seed,
            recorder,
            channels: BTreeMap::new(),
        }
    }

    /// Its name in the history.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Makes a call, and waits for its end.
    pub(crate) async fn call(&mut self, call: Call<'_>) -> Called {
        let token = call.token.map(|token| token.login);
        let number = self
            .recorder
            .invoke(&self.name, call.member, token, call.op);
        let answer = self.send(number, call).await;
        let (outcome, token) = match answer {
            Ok((reply, token)) => (
                Outcome::Ok(Box::new(reply)),
                token.map(|text| Token {
                    login: number,
                    text,
                }),
            ),
            Err(status) => {
                self.after_failure(call.member, &status);
                (outcome::classify(&status), None)
            }
        };
        tracing::debug!(
            client = self.name,
            call = number,
            member = call.member,
            op = ?call.op,
            outcome = ?outcome,
            "call"
        );
        self.recorder.returned(number, &outcome);
        Called {
            number,
            outcome,
            token,
        }
    }

    /// Reads a member's hashes. Not a call of the history: it reports what a member holds, not what a user may do.
    ///
    /// # Errors
    /// Whatever the member or the way to it says.
    pub(crate) async fn hashes(
        &mut self,
        member: u64,
        token: Option<&Token>,
        timeout: Duration,
    ) -> Result<HashKvResponse, Status> {
        let mut client = MaintenanceClient::new(self.channel(member));
        let mut request = Request::new(HashKvRequest { revision: 0 });
        request.set_timeout(timeout);
        present(&mut request, token);
        let answer = in_time(timeout, client.hash_kv(request)).await;
        if let Err(status) = &answer {
            self.after_failure(member, status);
        }
        answer
    }

    fn channel(&mut self, member: u64) -> Channel {
        let connect = || {
            let keepalive = Keepalive {
                interval: KEEPALIVE,
                timeout: KEEPALIVE,
            };
            let options = ChannelOptions {
                connect_timeout: KEEPALIVE,
                keepalive: Some(keepalive),
            };
            Channel::new(format!("10.0.0.{member}:{CLIENT_PORT}"), options)
        };
        self.channels.entry(member).or_insert_with(connect).clone()
    }

    /// A call that timed out may hang in a dead connection, so the next one gets a new connection.
    fn after_failure(&mut self, member: u64, status: &Status) {
        if status.code() == Code::DeadlineExceeded && !is_unsent(status) {
            self.channels.remove(&member);
        }
    }

    async fn send(
        &mut self,
        number: u64,
        call: Call<'_>,
    ) -> Result<(Reply, Option<AsciiMetadataValue>), Status> {
        let channel = self.channel(call.member);
        let wire = Wire {
            kv: KvClient::new(channel.clone()),
            auth: AuthClient::new(channel),
            number,
            token: call.token,
            timeout: call.timeout,
        };
        wire.send(call.op, self.seed).await
    }
}

/// What one call needs on its way.
struct Wire<'c> {
    kv: KvClient<Channel>,
    auth: AuthClient<Channel>,
    number: u64,
    token: Option<&'c Token>,
    timeout: Duration,
}

fn present<T>(request: &mut Request<T>, token: Option<&Token>) {
    if let Some(token) = token {
        let name = AsciiMetadataKey::from_static("token");
        request.metadata_mut().insert(name, token.text.clone());
    }
}

impl Wire<'_> {
    /// The message with everything that goes with it.
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        request
            .metadata_mut()
            .insert("x-request-id", AsciiMetadataValue::from(self.number));
        present(&mut request, self.token);
        request
    }

    /// Waits for the answer's message.
    async fn finish<R>(
        &self,
        call: impl Future<Output = Result<tonic::Response<R>, Status>>,
    ) -> Result<R, Status> {
        in_time(self.timeout, call).await
    }
}

/// How much longer than its deadline a call is waited for, so that the channel, which knows whether it was sent, speaks
/// first.
const SLACK: Duration = Duration::from_millis(20);

/// Awaits a whole call, body and trailers included. The platform's own `with_deadline` takes an async closure, which the
/// compiler cannot show to be `Send` in a task that is spawned with borrowed arguments.
async fn in_time<R>(
    timeout: Duration,
    call: impl Future<Output = Result<tonic::Response<R>, Status>>,
) -> Result<R, Status> {
    let late = || Err(Status::deadline_exceeded("the call's deadline passed"));
    let answer = tokio::time::timeout(timeout.saturating_add(SLACK), call).await;
    answer
        .unwrap_or_else(|_| late())
        .map(tonic::Response::into_inner)
}
