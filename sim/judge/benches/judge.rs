//! Whether the judge can take a big history: makes one of a million calls, judges it on one thread, writes it to a file
//! and reads it again, and fails if that takes too long or the process too much memory.
//!
//! `cargo bench -p gatehouse-judge --bench judge` prints the figures; a number of calls may follow `--`.

mod memory;

use gatehouse_judge::history::History;
use gatehouse_judge::history_file::{read_history, write_history};
use gatehouse_judge::judge;
use gatehouse_judge::synthetic;
use gatehouse_judge::verdict::VerdictKind;
use memory::peak_kib;
use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

/// Calls unless the command line says otherwise.
const CALLS: u64 = 1_000_000;

/// Most seconds of one processor that judging a million calls may take.
const SECONDS_MAX: f64 = 5.0;

/// The same for reading their file of some 700 megabytes: it is parsed and checked line by line.
const READ_SECONDS_MAX: f64 = 10.0;

/// Most memory that the process may ever hold, the history included, for a million calls.
const PEAK_KIB_MAX: u64 = 1 << 20;

#[expect(
    clippy::print_stdout,
    reason = "the figures are what this program is for"
)]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let calls: u64 = asked.unwrap_or(CALLS);
    let start = Instant::now();
    let history = synthetic::history(calls, 1);
    let made = start.elapsed().as_secs_f64();
    let events = history.events.len();
    let before = peak_kib()?;
    println!(
        "made {calls} calls, {events} events in {made:.2} s; peak {} MiB",
        before >> 10
    );

    let (start, on_processor) = (Instant::now(), processor_seconds()?);
    let verdict = judge(&history);
    let (elapsed, seconds) = (
        start.elapsed().as_secs_f64(),
        processor_seconds()? - on_processor,
    );
    let peak = peak_kib()?;
    let rate = f64::from(u32::try_from(calls)?) / seconds;
    println!(
        "judged in {seconds:.2} s of one processor ({elapsed:.2} s passed) = {rate:.0} calls/s; peak {} MiB",
        peak >> 10
    );
    let read_seconds = read_again(history)?;
    let peak = peak_kib()?;
    let right = verdict.kind == VerdictKind::Ok;
    if !right {
        println!("the verdict is not ok: {}", verdict.sentence);
    }
    // A smaller history must keep the smaller limit; a larger one shows where it ends.
    let share = f64::from(u32::try_from(calls)?) / f64::from(u32::try_from(CALLS)?);
    let fast = seconds <= SECONDS_MAX * share.max(0.1)
        && read_seconds <= READ_SECONDS_MAX * share.max(0.1);
    if !fast {
        println!(
            "too slow: {SECONDS_MAX} s and {READ_SECONDS_MAX} s for {CALLS} calls are the limits"
        );
    }
    let small = calls > CALLS || peak <= PEAK_KIB_MAX;
    if !small {
        println!(
            "too large: {} MiB for {CALLS} calls is the limit",
            PEAK_KIB_MAX >> 10
        );
    }
    Ok(if right && fast && small {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes the history to a file and reads that; gives how many seconds of one processor the reading took.
#[expect(
    clippy::print_stdout,
    reason = "the figures are what this program is for"
)]
fn read_again(history: History) -> Result<f64, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("history.jsonl");
    let events = history.events.len();
    write_history(&file, &history)?;
    drop(history);
    let on_processor = processor_seconds()?;
    let again = read_history(&file)?;
    let seconds = processor_seconds()? - on_processor;
    println!(
        "read {} events, {} MB, in {seconds:.2} s of one processor; peak {} MiB",
        again.events.len(),
        std::fs::metadata(&file)?.len() / 1_000_000,
        peak_kib()? >> 10
    );
    if again.events.len() != events {
        return Err(format!("{events} events were written").into());
    }
    Ok(seconds)
}

/// How long this thread has been on a processor: what others do on the machine does not count.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos: u64 = stat.split(' ').next().unwrap_or_default().parse()?;
    Ok(std::time::Duration::from_nanos(nanos).as_secs_f64())
}
