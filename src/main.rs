//! The server's program. Exit codes: 0 stopped as asked, 1 failed, 2 wrong use.

#[cfg(any(real, test))]
mod args;

#[cfg(real)]
mod program;

#[cfg(real)]
fn main() -> std::process::ExitCode {
    program::run()
}

/// A simulation build has no real clock, disk or network to serve with.
#[cfg(madsim)]
fn main() -> std::process::ExitCode {
    eprintln!("this is a simulation build; run the real server with: cargo serve -- --name NAME …");
    std::process::ExitCode::from(2)
}
