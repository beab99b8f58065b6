//! The simulator's command line.

mod args;
mod closed_stdout;
mod commands;
mod output;
mod progress;
mod settings;
mod store;

use args::{Args, Command, Seeds};
use clap::Parser as _;
use commands::{Exit, Failure, bugs, check, fuzz, replay, run, twice};
use settings::Settings;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    gatehouse_sim::log::report_panics();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(answer) => return ExitCode::from(tell(&answer)),
    };
    if closed_stdout::was_closed() {
        return ExitCode::from(report(&closed()));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let ended = execute(args, &mut out).and_then(|exit| Ok(out.flush().map(|()| exit)?));
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => ExitCode::from(report(&failure)),
    }
}

/// Says why there is no result; gives the exit code.
fn report(failure: &Failure) -> u8 {
    // Whoever read the results has gone: nobody is to be told, but what was not said may have been a violation, so this
    // is no success.
    if !matches!(failure, Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe) {
        // Nothing can be done about a stderr that is gone.
        let _ = writeln!(io::stderr(), "gatehouse-sim: {failure}");
    }
    Exit::Usage as u8
}

fn closed() -> Failure {
    Failure::Usage("stdout is closed, so that no result could be told".to_owned())
}

/// Prints what clap answers by itself: help and version to stdout, what it refuses to stderr; gives the exit code.
fn tell(answer: &clap::Error) -> u8 {
    if answer.use_stderr() {
        // As above.
        let _ = answer.print();
        return Exit::Usage as u8;
    }
    if closed_stdout::was_closed() {
        return report(&closed());
    }
    match answer.print().and_then(|()| io::stdout().flush()) {
        Ok(()) => Exit::Expected as u8,
        Err(error) => report(&Failure::Io(error)),
    }
}

fn execute(args: Args, out: &mut impl Write) -> Result<Exit, Failure> {
    if args.common.report.is_some()
        && let Some(name) = args.command.as_ref().and_then(Command::without_histories)
    {
        let what = format!("{name} keeps no histories: --report belongs to run, fuzz and replay");
        return Err(Failure::Usage(what));
    }
    let settings = Settings::new(&args.common).map_err(Failure::Usage)?;
    match args.command {
        None => run::execute(&[], &Seeds::default(), &settings, out),
        Some(Command::Run {
            files,
            all: _,
            seeds,
        }) => run::execute(&files, &seeds, &settings, out),
        Some(Command::Fuzz { seeds, profile }) => fuzz::execute(profile, &seeds, &settings, out),
        Some(Command::Replay {
            what,
            scenario,
            profile,
            seed,
            verbose,
        }) => replay::execute(
            replay::Replay {
                what,
                scenario,
                profile,
                seed,
                verbose,
            },
            settings,
            out,
        ),
        Some(Command::Twice {
            files,
            all: _,
            seeds,
            profile,
        }) => twice::execute(&files, profile, &seeds, &settings, out),
        Some(Command::Bugs { slugs, seeds }) => bugs::execute(&slugs, &seeds, &settings, out),
        Some(Command::Check { history }) => check::execute(&history, &settings, out),
    }
}
