//! What the search leaves out, infers and gives up must never cost it an order: it could have gone along the one in which
//! a make-believe cluster decided the calls.

use super::super::forced::Forced;
use super::super::order::{Budget, Search};
use super::super::problem::{Ground, Problem};
use super::super::slice::Slice;
use super::super::state::Scope;
use super::super::{Settled, calls, settle};
use crate::search::workload::{Size, make, make_with_order};

const BUDGET: Budget = Budget {
    steps: 2_000_000,
    states: 100_000,
};

/// Claims that nothing keeps the search from the order that was.
fn can_be_followed(seed: u64, size: Size) {
    let (history, order) = make_with_order(seed, size);
    let calls = calls::read(&history).unwrap();
    let mut ground = Ground::new(&calls, |_| true).unwrap();
    let slices = Slice::all(&calls);
    let forced = Forced::find(&ground, &slices);
    ground.adopt(&forced);
    let parts: Vec<Problem<'_, '_, '_>> = slices
        .iter()
        .map(|slice| Problem::new(&ground, Scope::Part(slice)))
        .collect();
    let whole = Problem::new(&ground, Scope::Whole);
    let place = |number: &u64| calls.iter().position(|call| call.number == *number);
    let order: Vec<usize> = order.iter().filter_map(place).collect();
    let followed = Search::new(&whole, &parts, BUDGET).follow(&order);
    assert_eq!(followed, Ok(()), "seed {seed}");
}

#[test]
fn the_order_that_was_can_be_followed() {
    for seed in 1..=12 {
        for unknown_percent in [0, 20, 40] {
            let size = Size {
                clients: 8,
                calls: 250,
                unknown_percent,
                wrong: false,
            };
            can_be_followed(seed, size);
        }
    }
}

#[test]
fn right_histories_are_never_called_impossible() {
    let mut ordered = 0;
    for seed in 1..=30 {
        let size = Size {
            clients: 6,
            calls: 150,
            unknown_percent: 25,
            wrong: false,
        };
        match settle(&make(seed, size), BUDGET) {
            Settled::Ordered => ordered += 1,
            Settled::Open { .. } => {}
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(ordered >= 25, "{ordered}");
}

#[test]
fn a_wrong_decision_is_found_and_explained() {
    let mut found = 0;
    for seed in 1..=10 {
        let size = Size {
            clients: 8,
            calls: 300,
            unknown_percent: 25,
            wrong: true,
        };
        if let Settled::Impossible(explanation) = settle(&make(seed, size), BUDGET) {
            assert!(!explanation.calls.is_empty());
            // A long list is cut.
            let listed = explanation.calls.len().min(40);
            assert!(
                explanation.lines.len() > listed,
                "seed {seed}: {explanation:#?}"
            );
            found += 1;
        }
    }
    assert!(found >= 5, "{found}");
}
