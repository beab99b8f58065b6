//! The search says what trying every order says.

use super::super::{Budget, Ground, Proof, Solved, calls, solve, solve_by_parts};
use super::{brute, small};
use crate::history::History;
use crate::random::Random;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;

/// More than enough for a dozen calls.
pub(super) const AMPLE: Budget = Budget {
    steps: 1_000_000,
    states: 100_000,
};

/// The history of a seed, as it was made or with one thing changed.
fn history(seed: u64, mutated: bool) -> History {
    let right = small::make(seed);
    if !mutated {
        return right;
    }
    let copy = right.clone();
    small::mutate(right, &mut Random(!seed)).unwrap_or(copy)
}

/// Whether there is an order, if the search and trying every order say the same.
fn agreed(history: &History, by_parts: bool) -> Result<bool, String> {
    let calls = calls::read(history).expect("the generator knows its refusals");
    let solved = if by_parts {
        match Ground::new(&calls, |_| true) {
            Ok(ground) => solve_by_parts(&calls, ground, AMPLE),
            Err(contradiction) => Solved::Nothing(Proof::Contradiction(contradiction)),
        }
    } else {
        solve(&calls, |_| true, AMPLE)
    };
    let expected = brute::has_order(history);
    match solved {
        Solved::Order(_) if expected => Ok(true),
        Solved::Nothing(_) if !expected => Ok(false),
        other => Err(format!("an order exists: {expected}, but {other:?}")),
    }
}

#[test]
fn random_small_histories_are_settled_as_by_trying_every_order() {
    let (possible, impossible) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new_with_rng(
        Config {
            cases: 100_000,
            failure_persistence: None,
            ..Config::default()
        },
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    // Many mutations leave a history that is right all the same.
    let cases = (any::<u64>(), 0..4_u8);
    let outcome = runner.run(&cases, |(seed, kind)| {
        let mutated = kind > 0;
        // The parts' help is dear, and small histories rarely need it: it is tried on some of them.
        let settled = agreed(&history(seed, mutated), seed % 4 == 0);
        let has_order = settled.map_err(TestCaseError::fail)?;
        prop_assert!(has_order || mutated, "a right history has an order");
        let counter = if has_order { &possible } else { &impossible };
        counter.set(counter.get() + 1);
        Ok(())
    });
    outcome.unwrap();
    let (possible, impossible) = (possible.get(), impossible.get());
    assert!(
        possible > 30_000 && impossible > 30_000,
        "{possible} with an order, {impossible} without"
    );
}
