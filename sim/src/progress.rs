//! How far many runs have come, on stderr: a bar on a terminal, a plain line now and then elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often a line is printed: often enough to see that something happens, too seldom to fill a file.
const LINE: Duration = Duration::from_secs(10);

/// Shows how many of the runs are done.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// When the last line was printed; `None` where none are.
    line: Option<Instant>,
}

impl Progress {
    /// Says at once what is coming: so many runs, `jobs` of them at a time. Beside a log it says nothing, because each would
    /// tear the other; nor about a single run, which is over before anybody asks.
    pub(crate) fn new(runs: usize, jobs: u32, beside_log: bool) -> Progress {
        let is_silent = beside_log || runs < 2;
        let is_terminal = io::stderr().is_terminal();
        let target = if is_silent || !is_terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(runs as u64), target);
        let bar = match ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        bar.tick();
        let line = (!is_silent && !is_terminal).then(Instant::now);
        if line.is_some() {
            say(&format!("{runs} runs, {jobs} at a time"));
        }
        Progress { bar, line }
    }

    /// One more is done.
    pub(crate) fn advance(&mut self) {
        self.bar.inc(1);
        if let Some(last) = &mut self.line
            && last.elapsed() >= LINE
        {
            *last = Instant::now();
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
            let left = self.bar.eta().as_secs();
            say(&format!("{done}/{all} runs, {left} s left"));
        }
    }

    /// Makes room for what `print` writes to the same terminal.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What cannot be written is left out: nothing depends on it.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
