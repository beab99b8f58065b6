//! The checksum on every row. redb checks its pages when it opens a file and never again, so a page that rots while the
//! member runs would be served as it is.
//!
//! A stored row is the row and 8 bytes more, big-endian: XXH3 of the row, seeded with XXH3 of the key as redb stores it,
//! seeded with XXH3 of the table's name. So a row is worth nothing in another place either.

use super::StorageError;
use redb::{TableDefinition, TableHandle as _};
use std::fmt::Write as _;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const CHECKSUM_BYTES: usize = 8;

/// A table whose rows are sealed.
pub(super) type SealedTable<K> = TableDefinition<'static, K, &'static [u8]>;

/// A key that an error can name.
pub(super) trait RowKey: redb::Key + 'static {
    /// The key for humans.
    fn name(key: &Self::SelfType<'_>) -> String;
}

impl RowKey for &'static str {
    fn name(key: &&str) -> String {
        format!("`{key}`")
    }
}

impl RowKey for u64 {
    fn name(key: &u64) -> String {
        key.to_string()
    }
}

impl RowKey for (i64, i64) {
    fn name((main, sub): &(i64, i64)) -> String {
        format!("{main}.{sub}")
    }
}

impl RowKey for &'static [u8] {
    fn name(key: &&[u8]) -> String {
        key.iter().fold(String::new(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        })
    }
}

/// `row` as it is stored under `key` of `table`.
pub(super) fn seal<K: RowKey>(
    table: SealedTable<K>,
    key: &K::SelfType<'_>,
    mut row: Vec<u8>,
) -> Vec<u8> {
    let checksum = checksum(table, key, &row);
    row.extend_from_slice(&checksum.to_be_bytes());
    row
}

/// The row in what is stored under `key` of `table`.
///
/// # Errors
/// [`StorageError::Corrupt`], naming table and key, when it is not what was sealed there.
pub(super) fn unseal<'r, K: RowKey>(
    table: SealedTable<K>,
    key: &K::SelfType<'_>,
    stored: &'r [u8],
) -> Result<&'r [u8], StorageError> {
    let parts = stored.split_last_chunk::<CHECKSUM_BYTES>();
    match parts {
        Some((row, sum)) if u64::from_be_bytes(*sum) == checksum(table, key, row) => Ok(row),
        Some(_) | None => Err(StorageError::corrupt(format!(
            "row {} of table `{}` does not match its checksum",
            K::name(key),
            table.name()
        ))),
    }
}

fn checksum<K: RowKey>(table: SealedTable<K>, key: &K::SelfType<'_>, row: &[u8]) -> u64 {
    let table = xxh3_64(table.name().as_bytes());
    let place = xxh3_64_with_seed(K::as_bytes(key).as_ref(), table);
    xxh3_64_with_seed(row, place)
}

#[cfg(test)]
mod tests {
    use super::super::tables::{KV, LOG, ROLES, USERS};
    use super::*;

    #[test]
    fn a_row_is_good_in_its_own_place_only() {
        let stored = seal(USERS, &"alice", b"row".to_vec());
        assert_eq!(unseal(USERS, &"alice", &stored).unwrap(), b"row");
        for elsewhere in [
            unseal(USERS, &"bob", &stored),
            unseal(ROLES, &"alice", &stored),
        ] {
            assert!(matches!(elsewhere, Err(StorageError::Corrupt { .. })));
        }
    }

    #[test]
    fn any_changed_bit_is_noticed_and_the_place_is_named_but_not_the_row() {
        let stored = seal(KV, &(7, 2), b"secret".to_vec());
        for bit in 0..stored.len() * 8 {
            let mut rotten = stored.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            let error = unseal(KV, &(7, 2), &rotten).unwrap_err().to_string();
            assert_eq!(
                error,
                "the store is corrupt: row 7.2 of table `kv` does not match its checksum"
            );
        }
    }

    #[test]
    fn a_row_that_is_too_short_is_corrupt() {
        for stored in [&[][..], &[0; 7], &[0; 8]] {
            assert!(unseal(LOG, &1, stored).is_err());
        }
    }
}
