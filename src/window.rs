//! Named windows: the moments between two steps in which a race can slip in. A simulation seed can stretch each of them
//! and counts how often it was passed; in a real build [`pass`] is an empty future that the optimiser removes.

/// A yield point, named after the two steps it lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Window {
    /// Login: the password has been compared, the `Authenticate` entry is not yet proposed.
    PasswordCheckedToProposed,
    /// Request: the token is resolved, the entry is not yet proposed.
    TokenResolvedToProposed,
    /// Linearizable read: the barrier has been passed, permission is not yet decided.
    ReadIndexToCheck,
    /// Read: permission has been decided, the keys are not yet read. Without a planted bug both come from one view, so that
    /// nothing can slip in.
    CheckToRead,
    /// Member: a batch is durable, its view is not yet published.
    CommitToPublish,
    /// Leader: a part of a snapshot has been taken, the next one is not yet sent.
    SnapshotPartToNext,
}

impl Window {
    /// Every window, in the order of the coverage table.
    pub const ALL: [Window; 6] = [
        Window::PasswordCheckedToProposed,
        Window::TokenResolvedToProposed,
        Window::ReadIndexToCheck,
        Window::CheckToRead,
        Window::CommitToPublish,
        Window::SnapshotPartToNext,
    ];

    /// The name in plans and reports.
    pub fn name(self) -> &'static str {
        match self {
            Window::PasswordCheckedToProposed => "password-checked-to-proposed",
            Window::TokenResolvedToProposed => "token-resolved-to-proposed",
            Window::ReadIndexToCheck => "read-index-to-check",
            Window::CheckToRead => "check-to-read",
            Window::CommitToPublish => "commit-to-publish",
            Window::SnapshotPartToNext => "snapshot-part-to-next",
        }
    }
}

/// Passes `window` on member `member_id`, for as long as the simulation stretches it.
#[cfg(not(madsim))]
#[inline(always)]
pub(crate) async fn pass(_window: Window, _member_id: u64) {}

#[cfg(madsim)]
pub(crate) use simulated::pass;
#[cfg(madsim)]
pub use simulated::{Stretch, stretch};

#[cfg(madsim)]
mod simulated {
    use super::Window;
    use std::cell::RefCell;
    use std::time::Duration;

    /// Decides how long a window stays open: called once for each passage, on the simulation's own thread.
    pub type Stretch = Box<dyn FnMut(Window, u64) -> Duration>;

    thread_local! {
        static STRETCH: RefCell<Option<Stretch>> = const { RefCell::new(None) };
    }

    /// Installs what decides about windows in the simulation that runs on this thread.
    pub fn stretch(decide: Option<Stretch>) {
        STRETCH.set(decide);
    }

    pub(crate) async fn pass(window: Window, member_id: u64) {
        let open = STRETCH.with_borrow_mut(|decide| match decide {
            Some(decide) => decide(window, member_id),
            None => Duration::ZERO,
        });
        if !open.is_zero() {
            tokio::time::sleep(open).await;
        }
    }
}
