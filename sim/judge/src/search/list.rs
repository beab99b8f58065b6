//! The calls that still wait for a place, as a linked list in arrays: taking one out and putting it back, in the opposite
//! order, costs nothing worth counting (Knuth's dancing links; so do Lowe's linearizability testers).

/// Stands before the first call and after the last.
const NONE: usize = usize::MAX;

/// A list of some of the numbers below a bound.
#[derive(Debug)]
pub(super) struct List {
    after: Vec<usize>,
    before: Vec<usize>,
    member: Vec<bool>,
    first: usize,
}

impl List {
    /// The list of `ids`, each below `bound` and there once.
    pub(super) fn of(ids: &[usize], bound: usize) -> List {
        let mut list = List {
            after: vec![NONE; bound],
            before: vec![NONE; bound],
            member: vec![false; bound],
            first: ids.first().copied().unwrap_or(NONE),
        };
        for pair in ids.windows(2) {
            list.after[pair[0]] = pair[1];
            list.before[pair[1]] = pair[0];
        }
        for id in ids {
            list.member[*id] = true;
        }
        list
    }

    /// Whether it was made with this number, in the list now or not.
    pub(super) fn holds(&self, id: usize) -> bool {
        self.member[id]
    }

    /// The first.
    pub(super) fn first(&self) -> Option<usize> {
        some(self.first)
    }

    /// The one after `id`.
    pub(super) fn after(&self, id: usize) -> Option<usize> {
        some(self.after[id])
    }

    /// Takes `id` out; it keeps knowing its neighbours.
    pub(super) fn remove(&mut self, id: usize) {
        let (before, after) = (self.before[id], self.after[id]);
        self.join(before, after);
    }

    /// Puts back the one that was taken out last.
    pub(super) fn restore(&mut self, id: usize) {
        let (before, after) = (self.before[id], self.after[id]);
        self.join(before, id);
        if let Some(after) = some(after) {
            self.before[after] = id;
        }
    }

    fn join(&mut self, before: usize, after: usize) {
        match some(before) {
            Some(before) => self.after[before] = after,
            None => self.first = after,
        }
        if let Some(after) = some(after) {
            self.before[after] = before;
        }
    }
}

fn some(id: usize) -> Option<usize> {
    (id != NONE).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::List;

    fn numbers(list: &List) -> Vec<usize> {
        std::iter::successors(list.first(), |id| list.after(*id)).collect()
    }

    #[test]
    fn what_is_taken_out_can_be_put_back() {
        let mut list = List::of(&[4, 2, 7, 0], 9);
        for (taken, left) in [(4, [2, 7, 0].as_slice()), (7, &[2, 0]), (0, &[2]), (2, &[])] {
            list.remove(taken);
            assert_eq!(numbers(&list), left);
        }
        for (put, then) in [
            (2, [2].as_slice()),
            (0, &[2, 0]),
            (7, &[2, 7, 0]),
            (4, &[4, 2, 7, 0]),
        ] {
            list.restore(put);
            assert_eq!(numbers(&list), then);
        }
        assert!(list.holds(7));
        assert!(!list.holds(1));
    }
}
