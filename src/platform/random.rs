//! Randomness from the operating system; in a simulation the runtime answers it from the seed.

/// `N` unpredictable bytes, fit for secrets.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .expect("the system's generator works once the kernel has started it, which is before any process runs");
    bytes
}

/// An unpredictable number, for identifiers that must not repeat.
pub fn random_u64() -> u64 {
    u64::from_le_bytes(random_bytes())
}
