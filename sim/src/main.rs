//! The simulator's command line.

mod args;
mod commands;
mod output;
mod settings;
mod store;

use args::{Args, Command, Seeds};
use clap::Parser as _;
use commands::{Exit, Failure, bugs, check, replay, run, twice};
use settings::Settings;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    gatehouse_sim::log::report_panics();
    // clap itself exits with 2 for what it refuses, as do we.
    let args = Args::parse();
    let mut out = BufWriter::new(io::stdout().lock());
    let ended = execute(args, &mut out).and_then(|exit| Ok(out.flush().map(|()| exit)?));
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        // Whoever read the results has gone. What was not said may have been a violation, so this is no success.
        Err(Failure::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::from(Exit::Usage as u8)
        }
        Err(failure) => {
            // Nothing can be done about a stderr that is gone.
            let _ = writeln!(io::stderr(), "gatehouse-sim: {failure}");
            ExitCode::from(Exit::Usage as u8)
        }
    }
}

fn execute(args: Args, out: &mut impl Write) -> Result<Exit, Failure> {
    let settings = Settings::new(&args.common).map_err(Failure::Usage)?;
    match args.command {
        None => run::execute(&[], &Seeds::default(), &settings, out),
        Some(Command::Run {
            files,
            all: _,
            seeds,
        }) => run::execute(&files, &seeds, &settings, out),
        Some(Command::Replay {
            what,
            scenario,
            seed,
            verbose,
        }) => replay::execute(
            replay::Replay {
                what,
                scenario,
                seed,
                verbose,
            },
            settings,
            out,
        ),
        Some(Command::Twice { files, seeds, .. }) => twice::execute(&files, &seeds, &settings, out),
        Some(Command::Bugs { slugs, seeds }) => bugs::execute(&slugs, &seeds, &settings, out),
        Some(Command::Check { history }) => check::execute(&history, &settings, out),
    }
}
