//! The log of a run, on virtual time. It goes to stderr, belongs to the run's own thread, and changes nothing: the trace
//! hash is the same with and without it.

use madsim::time::TimeHandle;
use std::fmt;
use std::io::Write;
use tracing::Dispatch;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;

/// Prints the virtual time since the start of the run.
struct VirtualTime;

impl FormatTime for VirtualTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        match TimeHandle::try_current() {
            Some(time) => write!(writer, "[{:>12.6}]", time.elapsed().as_secs_f64()),
            None => write!(writer, "[   outside  ]"),
        }
    }
}

/// Checks what `--log-level` or `RUST_LOG` says: a level, or directives such as `gatehouse=debug,raft=info`.
///
/// # Errors
/// What is wrong with it.
pub fn check(directives: &str) -> Result<(), String> {
    targets(directives).map(drop)
}

fn targets(directives: &str) -> Result<Targets, String> {
    directives
        .parse()
        .map_err(|error: tracing_subscriber::filter::ParseError| error.to_string())
}

/// A subscriber that writes to stderr. Make it outside the simulation's thread: its own tables must not take part in
/// the order in which that thread seeds hash tables.
pub fn to_stderr(directives: &str) -> Dispatch {
    to(directives, || Lossy(std::io::stderr()))
}

/// Drops what cannot be written: a log that nobody reads any more must not change what happens.
struct Lossy<W>(W);

impl<W: Write> Write for Lossy<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

/// A subscriber that writes to `writer`.
pub fn to<W>(directives: &str, writer: W) -> Dispatch
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer()
        .with_timer(VirtualTime)
        .with_ansi(false)
        .with_writer(writer);
    // What `check` would have refused shows nothing.
    let targets = targets(directives).unwrap_or_default();
    Dispatch::new(tracing_subscriber::registry().with(lines).with(targets))
}

/// How the simulated runtime's panic begins when the run's time is over.
pub(crate) const TIME_IS_OVER: &str = "time limit exceeded";

/// How it begins when everybody waits and nothing can happen any more.
pub(crate) const NOTHING_CAN_HAPPEN: &str = "no events";

/// Whether the simulated runtime itself ended the run.
fn is_the_runtimes(panic: &str) -> bool {
    panic.starts_with(TIME_IS_OVER) || panic.starts_with(NOTHING_CAN_HAPPEN)
}

/// Replaces the panic message by one line with the virtual time: inside a run, file and line of a panic say less than the
/// moment, and the whole report follows with the verdict.
pub fn report_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match TimeHandle::try_current() {
        // The runtime's way of saying that a run is not over in time, or never will be: the verdict says it better.
        Some(_) if panic.payload_as_str().is_some_and(is_the_runtimes) => {}
        Some(time) => {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("run");
            let at = panic
                .location()
                .map(ToString::to_string)
                .unwrap_or_default();
            let text = panic.payload_as_str().unwrap_or("no message");
            // Nothing can be done about a stderr that is gone.
            let _ = writeln!(
                std::io::stderr(),
                "{name}: panic at {:.6} s virtual time, {at}: {text}",
                time.elapsed().as_secs_f64()
            );
        }
        None => usual(panic),
    }));
}
