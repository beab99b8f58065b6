//! From arguments to a running member: logging, the data directory, the runtime and the signals that end it.

use crate::args::{Args, LogLevel, Settings};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use gatehouse::observer::Unobserved;
use gatehouse::platform::{Clock, Disk};
use gatehouse::server::{self, Parts};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The member's store, inside the data directory.
const STORE_FILE: &str = "member.redb";

/// Only the server's own account may look into the data directory: it holds password hashes.
const DATA_DIR_MODE: u32 = 0o700;

/// Runs the server until it fails or is told to stop.
pub(crate) fn run() -> ExitCode {
    let args = Args::parse();
    let cpus = available_parallelism().map_or(1, usize::from);
    let settings = match args.settings(cpus) {
        Ok(settings) => settings,
        // Exits with 2, like clap's own errors.
        Err(error) => Args::command()
            .error(ErrorKind::ValueValidation, error)
            .exit(),
    };
    log_to_stderr(settings.log_level);
    match serve(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Logs what this server says at `level`. Libraries are held to warnings: some trace what passes through them, and that
/// includes passwords.
fn log_to_stderr(level: LogLevel) {
    let level = match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let targets = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("gatehouse", level);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false);
    tracing_subscriber::registry()
        .with(lines)
        .with(targets)
        .init();
}

/// Why the program failed.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error("cannot create the data directory {path}: {error}")]
    DataDir { path: String, error: io::Error },
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    #[error(transparent)]
    Server(#[from] server::ServerError),
}

fn serve(settings: Settings) -> Result<(), ProgramError> {
    create_private(&settings.data_dir).map_err(|error| ProgramError::DataDir {
        path: settings.data_dir.display().to_string(),
        error,
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ProgramError::Runtime)?;
    runtime.block_on(async {
        let interrupt = signal(SignalKind::interrupt()).map_err(ProgramError::Runtime)?;
        let terminate = signal(SignalKind::terminate()).map_err(ProgramError::Runtime)?;
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(stop_on_signal(interrupt, terminate, stop));
        let parts = Parts {
            disk: Disk::file(settings.data_dir.join(STORE_FILE)),
            clock: Clock::system(),
            observer: Arc::new(Unobserved),
        };
        Ok(server::run(settings.config, parts, stopped).await?)
    })
}

fn create_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(DATA_DIR_MODE)
        .create(path)
}

/// The first signal stops the server in good order, a second one at once.
async fn stop_on_signal(mut interrupt: Signal, mut terminate: Signal, stop: watch::Sender<bool>) {
    any(&mut interrupt, &mut terminate).await;
    tracing::info!("stopping");
    stop.send_replace(true);
    any(&mut interrupt, &mut terminate).await;
    tracing::warn!("stopping at once");
    std::process::exit(1);
}

async fn any(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
