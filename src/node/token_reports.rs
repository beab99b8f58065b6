//! Which uses of tokens this member reports through the log, and when again. Time is an argument: the member's own
//! monotonic clock.
//!
//! A token is reported at most once in a quarter of a lifetime. A use in the quarter after a report needs none of its
//! own: the leader lets a token live for one lifetime and a quarter from the report on. A report whose fate stays unknown
//! is made again: twice is as good as once.

use crate::state::TokenKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Tokens in one report: 48 kB, and ten thousand tokens a second at one report in a tick of 100 ms.
const TOKENS_PER_REPORT_MAX: usize = 1024;

/// Uses that were seen and uses that were reported.
#[derive(Debug)]
pub(super) struct Reports {
    /// How long a report covers further uses.
    quiet: Duration,
    /// How long a report may be on its way before it is made again.
    patience: Duration,
    /// Used, to be reported.
    unreported: BTreeSet<TokenKey>,
    /// When each token was last reported, if its quiet time is not over.
    reported: BTreeMap<TokenKey, Duration>,
    /// The same in the order of time, with entries that no longer count.
    order: VecDeque<(Duration, TokenKey)>,
    on_its_way: Option<Report>,
}

#[derive(Debug)]
struct Report {
    sent: Duration,
    tokens: Vec<TokenKey>,
}

impl Reports {
    /// Reports for tokens that live for `lifetime`.
    pub(super) fn new(lifetime: Duration) -> Reports {
        Reports {
            quiet: lifetime / 4,
            // A client that uses its token once in a lifetime has a quarter left when its use was lost on the way.
            patience: lifetime / 8,
            unreported: BTreeSet::new(),
            reported: BTreeMap::new(),
            order: VecDeque::new(),
            on_its_way: None,
        }
    }

    /// These tokens have been used, by now.
    pub(super) fn used(&mut self, now: Duration, tokens: impl IntoIterator<Item = TokenKey>) {
        while let Some((at, key)) = self.order.front().copied()
            && at + self.quiet <= now
        {
            self.order.pop_front();
            if self.reported.get(&key) == Some(&at) {
                self.reported.remove(&key);
            }
        }
        let covered = |key: &TokenKey| self.reported.contains_key(key);
        let uncovered = tokens.into_iter().filter(|key| !covered(key));
        self.unreported.extend(uncovered);
    }

    /// What to report now: nothing while an earlier report is on its way. Tokens that are gone are left out.
    pub(super) fn next(
        &mut self,
        now: Duration,
        lives: impl Fn(&TokenKey) -> bool,
    ) -> Option<Vec<TokenKey>> {
        if self.on_its_way.is_some() {
            return None;
        }
        let mut tokens = Vec::new();
        while tokens.len() < TOKENS_PER_REPORT_MAX
            && let Some(key) = self.unreported.pop_first()
        {
            if lives(&key) {
                tokens.push(key);
            }
        }
        if tokens.is_empty() {
            return None;
        }
        for key in &tokens {
            self.reported.insert(*key, now);
            self.order.push_back((now, *key));
        }
        self.on_its_way = Some(Report {
            sent: now,
            tokens: tokens.clone(),
        });
        Some(tokens)
    }

    /// Whether the report has been on its way for so long that it counts as lost.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        let report = self.on_its_way.as_ref();
        report.is_some_and(|report| report.sent + self.patience <= now)
    }

    /// The report stands in the log.
    pub(super) fn arrived(&mut self) {
        self.on_its_way = None;
    }

    /// Nobody knows what became of the report: what it covered is to be reported again.
    pub(super) fn lost(&mut self) {
        for key in self.on_its_way.take().into_iter().flat_map(|r| r.tokens) {
            self.reported.remove(&key);
            self.unreported.insert(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(8);

    fn key(index: u64) -> TokenKey {
        TokenKey {
            index,
            prefix_hash: [1; 32],
        }
    }

    /// Indices of the tokens that are reported at a time, in milliseconds.
    fn next(reports: &mut Reports, ms: u64) -> Vec<u64> {
        let tokens = reports.next(Duration::from_millis(ms), |_| true);
        let tokens = tokens.into_iter().flatten();
        tokens.map(|key| key.index).collect()
    }

    fn used(reports: &mut Reports, ms: u64, indices: &[u64]) {
        let tokens = indices.iter().map(|index| key(*index));
        reports.used(Duration::from_millis(ms), tokens);
    }

    #[test]
    fn a_token_is_reported_once_in_a_quarter_lifetime() {
        let mut reports = Reports::new(LIFETIME);
        used(&mut reports, 0, &[2, 1]);
        assert_eq!(next(&mut reports, 0), [1, 2]);
        reports.arrived();
        used(&mut reports, 1_999, &[1, 3]);
        assert_eq!(next(&mut reports, 1_999), [3]);
        reports.arrived();
        used(&mut reports, 2_000, &[1, 3]);
        assert_eq!(next(&mut reports, 2_000), [1]);
        reports.arrived();
        used(&mut reports, 3_999, &[1, 2, 3]);
        assert_eq!(next(&mut reports, 3_999), [2, 3]);
    }

    #[test]
    fn uses_wait_while_a_report_is_on_its_way() {
        let mut reports = Reports::new(LIFETIME);
        used(&mut reports, 0, &[1]);
        assert_eq!(next(&mut reports, 0), [1]);
        used(&mut reports, 100, &[2]);
        assert_eq!(next(&mut reports, 100), []);
        reports.arrived();
        assert_eq!(next(&mut reports, 200), [2]);
    }

    #[test]
    fn a_report_that_is_lost_is_made_again_with_what_came_meanwhile() {
        let mut reports = Reports::new(LIFETIME);
        used(&mut reports, 0, &[1]);
        assert_eq!(next(&mut reports, 0), [1]);
        used(&mut reports, 500, &[1, 2]);
        assert!(!reports.is_overdue(Duration::from_millis(999)));
        assert!(reports.is_overdue(Duration::from_millis(1_000)));
        reports.lost();
        assert_eq!(next(&mut reports, 1_000), [1, 2]);
        reports.arrived();
        // The quiet time of the first report, which is over, is not that of the second.
        used(&mut reports, 2_500, &[1]);
        assert_eq!(next(&mut reports, 2_500), []);
    }

    #[test]
    fn a_report_has_a_limit_and_leaves_out_what_is_gone() {
        let mut reports = Reports::new(LIFETIME);
        let many: Vec<u64> = (0..=1024).collect();
        used(&mut reports, 0, &many);
        assert_eq!(next(&mut reports, 0).len(), TOKENS_PER_REPORT_MAX);
        reports.arrived();
        assert!(reports.next(Duration::ZERO, |_| false).is_none());
        assert_eq!(next(&mut reports, 0), [], "what is gone is forgotten");
    }

    #[test]
    fn nothing_is_remembered_beyond_the_quiet_time() {
        let mut reports = Reports::new(LIFETIME);
        for round in 0..10 {
            let ms = round * 2_000;
            used(&mut reports, ms, &[round, 100]);
            assert_eq!(next(&mut reports, ms), [round, 100]);
            reports.arrived();
        }
        assert_eq!((reports.reported.len(), reports.order.len()), (2, 2));
    }
}
