//! Reads of a member's own state, held against an order that was found: each must show one of the states that the order
//! passes through up to the read's end, and a member must not go back behind what it has answered. Another order might do
//! where this one does not, and a member that restarts may go back, so a read that does not fit proves nothing.

use super::calls::{Call, Told};
use super::state::{Scope, State, Step};
use std::collections::BTreeMap;

/// A local read that was placed: when it ended, and after how many calls of the order it stands.
type Stands = (usize, usize);

/// The first local read that fits nowhere in the order.
pub(super) fn misfit(calls: &[Call<'_>], order: &[usize]) -> Option<usize> {
    let mut states = vec![State::default()];
    for id in order {
        let last = states.last()?;
        let next = match last.step(&calls[*id], Scope::Whole) {
            Step::New(next) => next,
            Step::Same | Step::Wrong => last.clone(),
        };
        states.push(next);
    }
    // The latest sending among the first so many calls.
    let mut reached = vec![0];
    for id in order {
        let so_far = reached.last().copied().unwrap_or(0);
        reached.push(calls[*id].sent.max(so_far));
    }
    let mut by_member: BTreeMap<u64, Vec<Stands>> = BTreeMap::new();
    // A member has applied what it answers before it does.
    for (place, id) in (1..).zip(order) {
        let call = &calls[*id];
        if matches!(call.told, Told::Done(_) | Told::Refused(_)) {
            let answered = by_member.entry(call.member).or_default();
            answered.push((call.ended, place));
        }
    }
    for (id, call) in calls.iter().enumerate() {
        if !call.is_local() || !matches!(call.told, Told::Done(_) | Told::Refused(_)) {
            continue;
        }
        let earlier = by_member.entry(call.member).or_default();
        let before = earlier.iter().filter(|(ended, _)| *ended < call.sent);
        let from = before.map(|(_, place)| *place).max().unwrap_or(0);
        let upto = reached.partition_point(|sent| *sent < call.ended);
        let fits = |place: &usize| !matches!(states[*place].step(call, Scope::Whole), Step::Wrong);
        match (from..upto).find(fits) {
            Some(place) => earlier.push((call.ended, place)),
            None => return Some(id),
        }
    }
    None
}
