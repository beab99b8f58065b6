//! Passwords: plans and histories know ids, members get bytes.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How every password of a simulation begins, so that a search can prove that none is in a log, history or report.
pub const PASSWORD_MARKER: &str = "pw-7f3c-";

/// The password that `id` stands for in the run of `seed`.
pub(crate) fn password(seed: u64, id: &str) -> String {
    format!(
        "{PASSWORD_MARKER}{:016x}",
        xxh3_64_with_seed(id.as_bytes(), seed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_depends_on_seed_and_id_alone() {
        assert_eq!(password(1, "old"), password(1, "old"));
        assert_ne!(password(1, "old"), password(1, "new"));
        assert_ne!(password(1, "old"), password(2, "old"));
        assert!(password(1, "old").starts_with(PASSWORD_MARKER));
    }
}
