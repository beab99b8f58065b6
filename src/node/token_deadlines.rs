//! When tokens that nobody uses are due to expire, as the leader sees it. Time is an argument: the leader's own monotonic
//! clock.
//!
//! A token is due one lifetime and a quarter after this leader applied its last report of use, or its login; a leader
//! that begins gives every token the full time again. No deadline is kept for a single token: the state holds tokens in
//! the order of their last entries, entries are applied in that order, and so a few remembered moments ("at this time I
//! had applied up to here") say which tokens are due.

use std::collections::VecDeque;
use std::time::Duration;

/// Moments remembered in one lifetime. A token may live that much longer: a lifetime by this number.
const MOMENTS_PER_LIFETIME: u32 = 256;

/// What a leader remembers of when it applied what.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// How long a token lives after its last entry.
    life: Duration,
    /// Shortest time between moments.
    spacing: Duration,
    /// A leader that has not looked for this long stood still, and has not read what others sent to it meanwhile.
    still: Duration,
    /// The term in which this member leads, if it does.
    leads: Option<u64>,
    /// At this time, everything up to this index had been applied. Both grow.
    moments: VecDeque<(Duration, u64)>,
    /// Tokens whose last entry stands here or before are due; 0 for none.
    due: u64,
    looked: Duration,
}

impl Deadlines {
    /// Deadlines of tokens that live for `lifetime`, at a member that does not lead.
    pub(super) fn new(lifetime: Duration) -> Deadlines {
        Deadlines {
            life: lifetime + lifetime / 4,
            spacing: lifetime / MOMENTS_PER_LIFETIME,
            still: lifetime / 4,
            leads: None,
            moments: VecDeque::new(),
            due: 0,
            looked: Duration::ZERO,
        }
    }

    /// Takes note of the term in which this member leads, if it does; true if that is news. Every token then gets its full
    /// time.
    pub(super) fn lead(&mut self, term: Option<u64>) -> bool {
        let changed = self.leads != term;
        if changed {
            self.leads = term;
            self.moments.clear();
            self.due = 0;
        }
        changed
    }

    /// Takes note that everything up to `index` has been applied by now.
    pub(super) fn applied(&mut self, now: Duration, index: u64) {
        let known = self.moments.back().map_or(self.due, |(_, known)| *known);
        if self.leads.is_none() || index <= known {
            return;
        }
        // The last moment moves until it is far enough from the one before.
        let before_last = self.moments.iter().nth_back(1);
        if before_last.is_some_and(|(when, _)| *when + self.spacing > now) {
            self.moments.pop_back();
        }
        self.moments.push_back((now, index));
    }

    /// Up to which log index tokens are due, if this member leads and any can be.
    pub(super) fn look(&mut self, now: Duration) -> Option<u64> {
        while let Some((when, index)) = self.moments.front().copied()
            && when + self.life <= now
        {
            self.moments.pop_front();
            self.due = index;
        }
        let stood_still = self.looked + self.still < now;
        self.looked = now;
        (self.due > 0 && !stood_still).then_some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1¼ of it is 10 s.
    const LIFETIME: Duration = Duration::from_secs(8);

    /// Looks every 100 ms up to a time, in milliseconds; gives what is due then.
    fn look(deadlines: &mut Deadlines, until_ms: u64) -> Option<u64> {
        let start = u64::try_from(deadlines.looked.as_millis()).unwrap();
        let mut due = None;
        for ms in (start..until_ms).step_by(100).chain([until_ms]) {
            due = deadlines.look(Duration::from_millis(ms));
        }
        due
    }

    fn applied(deadlines: &mut Deadlines, ms: u64, index: u64) {
        deadlines.applied(Duration::from_millis(ms), index);
    }

    #[test]
    fn what_was_applied_a_lifetime_and_a_quarter_ago_is_due() {
        let mut deadlines = Deadlines::new(LIFETIME);
        assert!(deadlines.lead(Some(2)));
        applied(&mut deadlines, 1_000, 7);
        applied(&mut deadlines, 1_500, 9);
        applied(&mut deadlines, 1_700, 9);
        assert_eq!(look(&mut deadlines, 10_999), None);
        assert_eq!(look(&mut deadlines, 11_000), Some(7));
        assert_eq!(look(&mut deadlines, 11_499), Some(7));
        assert_eq!(look(&mut deadlines, 11_500), Some(9));
        assert_eq!(look(&mut deadlines, 99_000), Some(9));
    }

    #[test]
    fn a_new_leader_gives_the_full_time_again() {
        let mut deadlines = Deadlines::new(LIFETIME);
        deadlines.lead(Some(2));
        applied(&mut deadlines, 0, 7);
        assert_eq!(look(&mut deadlines, 10_000), Some(7));
        assert!(!deadlines.lead(Some(2)), "the same term is no news");
        assert_eq!(look(&mut deadlines, 10_100), Some(7));
        assert!(deadlines.lead(Some(4)));
        applied(&mut deadlines, 10_200, 7);
        assert_eq!(look(&mut deadlines, 20_100), None);
        assert_eq!(look(&mut deadlines, 20_200), Some(7));
    }

    #[test]
    fn whoever_does_not_lead_finds_nothing_due() {
        let mut deadlines = Deadlines::new(LIFETIME);
        applied(&mut deadlines, 0, 7);
        assert_eq!(look(&mut deadlines, 60_000), None);
        deadlines.lead(Some(2));
        applied(&mut deadlines, 60_000, 7);
        deadlines.lead(None);
        assert_eq!(look(&mut deadlines, 90_000), None);
    }

    #[test]
    fn a_leader_that_stood_still_reads_its_letters_first() {
        let mut deadlines = Deadlines::new(LIFETIME);
        deadlines.lead(Some(2));
        applied(&mut deadlines, 0, 7);
        assert_eq!(look(&mut deadlines, 9_000), None);
        assert_eq!(deadlines.look(Duration::from_millis(12_000)), None);
        assert_eq!(deadlines.look(Duration::from_millis(12_100)), Some(7));
    }

    #[test]
    fn moments_are_few_and_never_make_a_token_due_early() {
        let mut deadlines = Deadlines::new(LIFETIME);
        deadlines.lead(Some(2));
        // An entry in every millisecond, whose index is the time.
        for ms in 1..=30_000 {
            applied(&mut deadlines, ms, ms);
            let Some(due) = deadlines.look(Duration::from_millis(ms)) else {
                assert!(ms < 10_000 + 2);
                continue;
            };
            let exact = ms - 10_000;
            // 8 s by 256 is 31 ms, and the last moment may have moved once that far.
            assert!((exact.saturating_sub(32)..=exact).contains(&due), "{due}");
        }
        assert!(
            deadlines.moments.len() <= 330,
            "{}",
            deadlines.moments.len()
        );
    }
}
