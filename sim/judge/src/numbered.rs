//! A map from numbers that mostly follow each other (calls, log indices) to what is known of them. In a sound history it
//! is a list; a number that is far out, which only a hostile file has, costs a tree node and never an allocation of its
//! own size.

use std::collections::BTreeMap;

/// How many places the list may have beyond twice what it holds.
const SLACK: u64 = 1024;

/// Values by number, in order of the numbers.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T> {
    /// Values of the numbers below its length.
    near: Vec<Option<T>>,
    /// Values of all other numbers.
    far: BTreeMap<u64, T>,
    /// How many values there are.
    count: u64,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered {
            near: Vec::new(),
            far: BTreeMap::new(),
            count: 0,
        }
    }
}

impl<T> Numbered<T> {
    /// The value of a number.
    pub(crate) fn get(&self, number: &u64) -> Option<&T> {
        match self.place(*number) {
            Some(place) => self.near[place].as_ref(),
            None => self.far.get(number),
        }
    }

    /// The value of a number, to change it.
    pub(crate) fn get_mut(&mut self, number: &u64) -> Option<&mut T> {
        match self.place(*number) {
            Some(place) => self.near[place].as_mut(),
            None => self.far.get_mut(number),
        }
    }

    /// Whether the number has a value.
    pub(crate) fn contains_key(&self, number: &u64) -> bool {
        self.get(number).is_some()
    }

    /// Whether no number has a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sets the value of a number, and gives the one it had.
    pub(crate) fn insert(&mut self, number: u64, value: T) -> Option<T> {
        self.reach(number);
        let old = match self.place(number) {
            Some(place) => self.near[place].replace(value),
            None => self.far.insert(number, value),
        };
        self.count += u64::from(old.is_none());
        old
    }

    /// All values with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let near = (0..).zip(&self.near);
        let near = near.filter_map(|(number, value)| value.as_ref().map(|value| (number, value)));
        near.chain(self.far.iter().map(|(number, value)| (*number, value)))
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }

    fn place(&self, number: u64) -> Option<usize> {
        let place = usize::try_from(number).ok()?;
        (place < self.near.len()).then_some(place)
    }

    /// Makes the list long enough for a number, unless that would leave it mostly empty.
    fn reach(&mut self, number: u64) {
        let Some(length) = usize::try_from(number).ok().and_then(|n| n.checked_add(1)) else {
            return;
        };
        if length <= self.near.len() || number >= 2 * self.count + SLACK {
            return;
        }
        self.near.resize_with(length, || None);
        while let Some(first) = self.far.first_entry() {
            if *first.key() > number {
                break;
            }
            let (number, value) = first.remove_entry();
            let place = usize::try_from(number).expect("not above an index into the list");
            self.near[place] = Some(value);
        }
    }
}

impl<T> std::ops::Index<&u64> for Numbered<T> {
    type Output = T;

    /// The value of a number that is known to have one.
    fn index(&self, number: &u64) -> &T {
        self.get(number).expect("the number has a value")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts the numbers, in this order, and compares with a plain map after each.
    fn check(numbers: impl IntoIterator<Item = u64>) -> Numbered<u64> {
        let (mut ours, mut plain) = (Numbered::default(), BTreeMap::new());
        assert!(ours.is_empty());
        for (value, number) in (0..).zip(numbers) {
            assert_eq!(ours.get(&number), plain.get(&number));
            assert_eq!(ours.insert(number, value), plain.insert(number, value));
            assert!(ours.contains_key(&number));
            *ours.get_mut(&number).unwrap() += 1;
            *plain.get_mut(&number).unwrap() += 1;
            assert_eq!(ours[&number], plain[&number]);
            assert!(!ours.is_empty());
        }
        let pairs: Vec<_> = plain
            .iter()
            .map(|(number, value)| (*number, value))
            .collect();
        assert_eq!(ours.iter().collect::<Vec<_>>(), pairs);
        assert_eq!(ours.values().count(), plain.len());
        ours
    }

    #[test]
    fn it_is_a_map_in_order_of_numbers() {
        check(1..5000);
        check((1..5000).rev());
        check([7, 7, u64::MAX, 0, u64::MAX, 1 << 40, 3]);
        // Far out at first, and in reach once there are enough.
        check([4000, 3000, 5000].into_iter().chain(0..2500));
        let mixed = (0..5000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51);
        check(mixed);
    }

    #[test]
    fn a_number_far_out_takes_no_memory_of_its_size() {
        let few = check([u64::MAX, 1 << 50, 1 << 30, 1]);
        assert!(few.near.len() <= 2);
        let many = check((0..1000).map(|number| number * 1000));
        assert!(many.near.len() <= 4000);
    }
}
