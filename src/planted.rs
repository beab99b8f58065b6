//! The bugs that can be switched on, each one skipped or swapped step. Only simulation builds contain them: in a real
//! build [`planted`] is a constant `false` and the optimiser removes every trace.
//!
//! A switch is set for one thread, because one thread is one simulation. Names are stable: they appear on the command
//! line (`--bug authn-changepw-toctou/a`), in reports and in stored plans.

/// One switch. Its documentation says which step it skips or swaps, and which property must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// Apply mints a token although the user's epoch moved since the password was compared. Noticed by P6.
    AuthnChangepwToctouA,
    /// Login compares the password with this member's own state, without a barrier. Noticed by the refusal half of P5.
    AuthnChangepwToctouB,
    /// Login reads the user's epoch after comparing the password instead of before. Noticed by P6.
    AuthnChangepwToctouC,
}

impl Bug {
    /// Every switch, in the order of the kill table.
    pub const ALL: [Bug; 3] = [
        Bug::AuthnChangepwToctouA,
        Bug::AuthnChangepwToctouB,
        Bug::AuthnChangepwToctouC,
    ];

    /// The name on the command line and in reports: `slug` or `slug/x` for a sub-switch.
    pub fn slug(self) -> &'static str {
        match self {
            Bug::AuthnChangepwToctouA => "authn-changepw-toctou/a",
            Bug::AuthnChangepwToctouB => "authn-changepw-toctou/b",
            Bug::AuthnChangepwToctouC => "authn-changepw-toctou/c",
        }
    }

    /// The switches that a name selects: one for `slug/x`, all of a bug's for `slug`, none for an unknown name.
    pub fn named(name: &str) -> Vec<Bug> {
        let selects = |bug: &Bug| {
            bug.slug() == name
                || bug
                    .slug()
                    .split('/')
                    .next()
                    .is_some_and(|slug| slug == name)
        };
        Bug::ALL.into_iter().filter(selects).collect()
    }
}

/// Whether `bug` is switched on in this simulation. Constant `false` in a real build.
#[cfg(not(madsim))]
#[inline(always)]
pub(crate) const fn planted(_bug: Bug) -> bool {
    false
}

#[cfg(madsim)]
pub use simulated::plant;
#[cfg(madsim)]
pub(crate) use simulated::planted;

#[cfg(madsim)]
mod simulated {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    pub(crate) fn planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }

    /// Switches `bug` on (or all off) for the simulation that runs on this thread.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }
}
