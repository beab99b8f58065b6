//! The real build: one call over a real socket, and the errors of real ports and files.

use super::probe::{Probe, ProbeClient, item};
use crate::platform::{
    Channel, ChannelOptions, Clock, Disk, Keepalive, ServeOptions, bind, blocking, is_unsent,
    random_bytes, random_u64, serve, with_deadline,
};
use redb::{Database, ReadableDatabase};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tonic::Code;

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

#[tokio::test]
async fn calls_of_every_kind_work_over_a_socket_and_stop_ends_the_server() {
    let keepalive = Some(Keepalive {
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
    });
    let listener = bind(any_port()).await.unwrap();
    let address = listener.local_addr().to_string();
    let (stop, stop_signal) = watch::channel(false);
    let options = ServeOptions {
        keepalive,
        ..ServeOptions::default()
    };
    let probe = Probe::default();
    let server = tokio::spawn(serve(listener, probe.router(), options, stop_signal));
    let options = ChannelOptions {
        keepalive,
        ..ChannelOptions::default()
    };
    let mut client = ProbeClient::new(Channel::new(address, options));

    assert_eq!(
        client.echo(item(7, 0)).await.unwrap().into_inner().number,
        7
    );
    let mut tail = client.tail(item(3, 1)).await.unwrap().into_inner();
    for number in 0..3 {
        assert_eq!(tail.message().await.unwrap().unwrap().number, number);
    }
    let requests = tokio_stream::iter([item(1, 0), item(2, 0)]);
    let mut answers = client.exchange(requests).await.unwrap().into_inner();
    for number in 1..=2 {
        assert_eq!(answers.message().await.unwrap().unwrap().number, number);
    }
    let limit = Duration::from_millis(50);
    let late = with_deadline(limit, item(0, 60_000), |request| client.echo(request)).await;
    assert_eq!(late.unwrap_err().code(), Code::DeadlineExceeded);

    drop((tail, answers));
    stop.send_replace(true);
    server.await.unwrap();
    assert_eq!((probe.started(), probe.finished()), (4, 3));
    assert_eq!(probe.abandoned(), 1, "the call that was late");
    let refused = client.echo(item(0, 0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(is_unsent(&refused), "{refused}");
}

#[tokio::test]
async fn port_in_use_is_named() {
    let listener = bind(any_port()).await.unwrap();
    let address = listener.local_addr();
    let error = bind(address).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert_eq!(
        error.to_string(),
        format!("listen on {address}: address in use")
    );
}

#[tokio::test]
async fn file_opens_once_and_keeps_what_was_committed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("member/store.redb");
    let disk = Disk::file(path.clone());
    let table = redb::TableDefinition::<u64, u64>::new("numbers");
    let open = || Database::builder().create_with_backend(disk.backend().unwrap());

    let database = open().unwrap();
    let writing = database.begin_write().unwrap();
    writing.open_table(table).unwrap().insert(1, 2).unwrap();
    writing.commit().unwrap();
    disk.barrier().await.unwrap();
    disk.keep().unwrap();

    let error = disk.backend().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    let expected = format!("{}: in use by another process", path.display());
    assert_eq!(error.to_string(), expected);

    drop(database);
    let database = open().unwrap();
    let reading = database.begin_read().unwrap();
    let value = reading.open_table(table).unwrap().get(1).unwrap().unwrap();
    assert_eq!(value.value(), 2);
}

#[test]
fn file_left_by_an_interrupted_creation_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::file(directory.path().join("store.redb"));
    for content in [&b""[..], &[0; 5_000], b"half a database"] {
        std::fs::write(directory.path().join("store.redb.new"), content).unwrap();
        let database = Database::builder().create_with_backend(disk.backend().unwrap());
        database.unwrap();
    }
}

#[test]
fn blank_file_that_was_complete_once_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    let disk = Disk::file(path.clone());
    let database = Database::builder().create_with_backend(disk.backend().unwrap());
    drop(database.unwrap());
    disk.keep().unwrap();
    for blank in [0, 5, 1_000_000] {
        std::fs::write(&path, vec![0; blank]).unwrap();
        let error = disk.backend().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let expected = format!("{}: the file has {blank} bytes", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn none_but_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("member/store.redb");
    let disk = Disk::file(path.clone());
    disk.backend().unwrap();
    disk.keep().unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[test]
fn unusable_path_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().join("store.redb");
    let error = Disk::file(path.clone()).backend().unwrap_err();
    assert!(error.to_string().starts_with(&path.display().to_string()));
}

#[test]
fn blocking_work_runs_inside_and_outside_of_any_runtime() {
    assert_eq!(blocking(|| 1), 1);
    let single = tokio::runtime::Builder::new_current_thread().build();
    assert_eq!(single.unwrap().block_on(async { blocking(|| 2) }), 2);
    let many = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    assert_eq!(many.block_on(async { blocking(|| 3) }), 3);
}

#[test]
fn clock_and_randomness_are_the_systems() {
    let clock = Clock::system();
    let start = clock.mono();
    assert!(clock.mono() >= start);
    assert!(clock.wall() > SystemTime::UNIX_EPOCH);
    assert_ne!(random_u64(), random_u64());
    assert_ne!(random_bytes::<16>(), [0; 16]);
}
