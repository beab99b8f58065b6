//! A part of a snapshot as it travels: rows as protobuf, and the checksum that chains it to the parts before.

use crate::pb::gatehousepb as pb;
use crate::storage::{Row, RowTable};
use xxhash_rust::xxh3::Xxh3;

/// Checksum before the first part.
pub(super) const CHECKSUM_START: u64 = 0;

/// The checksum after `rows`, given the one before them: it says what all rows so far are, and in which order.
pub(super) fn checksum(before: u64, rows: &[Row]) -> u64 {
    let mut hash = Xxh3::with_seed(before);
    for row in rows {
        hash.update(&[row.table as u8]);
        for bytes in [&row.key, &row.value] {
            // With its length, or a byte could move from the key to the value.
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
    }
    hash.digest()
}

pub(super) fn rows_to_pb(rows: Vec<Row>) -> Vec<pb::SnapshotRow> {
    let row = |row: Row| pb::SnapshotRow {
        table: row.table as i32,
        key: row.key,
        value: row.value,
    };
    rows.into_iter().map(row).collect()
}

/// The rows, unless one of them belongs to no table that this version knows.
pub(super) fn rows_from_pb(rows: Vec<pb::SnapshotRow>) -> Option<Vec<Row>> {
    let row = |row: pb::SnapshotRow| {
        let known = RowTable::ALL.into_iter();
        let table = known.clone().find(|table| *table as i32 == row.table)?;
        Some(Row {
            table,
            key: row.key,
            value: row.value,
        })
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn row(table: RowTable, key: &'static str, value: &'static str) -> Row {
        Row {
            table,
            key: Bytes::from_static(key.as_bytes()),
            value: Bytes::from_static(value.as_bytes()),
        }
    }

    #[test]
    fn rows_survive_the_way() {
        let rows: Vec<_> = RowTable::ALL
            .into_iter()
            .map(|table| row(table, "k", "v"))
            .collect();
        assert_eq!(rows_from_pb(rows_to_pb(rows.clone())), Some(rows));
    }

    #[test]
    fn a_row_of_an_unknown_table_is_refused() {
        for table in [-1, 0, 6] {
            let stranger = pb::SnapshotRow {
                table,
                ..pb::SnapshotRow::default()
            };
            assert_eq!(rows_from_pb(vec![stranger]), None);
        }
    }

    #[test]
    fn the_checksum_tells_rows_their_order_and_what_came_before_apart() {
        let (a, b) = (
            row(RowTable::Users, "a", "1"),
            row(RowTable::Users, "b", "2"),
        );
        let of = |before, rows: &[Row]| checksum(before, rows);
        let one = of(CHECKSUM_START, &[a.clone(), b.clone()]);
        assert_eq!(one, of(CHECKSUM_START, &[a.clone(), b.clone()]));
        for other in [
            of(CHECKSUM_START, &[b.clone(), a.clone()]),
            of(CHECKSUM_START, std::slice::from_ref(&a)),
            of(1, &[a, b]),
            of(
                CHECKSUM_START,
                &[
                    row(RowTable::Users, "a1", ""),
                    row(RowTable::Users, "b", "2"),
                ],
            ),
            of(
                CHECKSUM_START,
                &[
                    row(RowTable::Roles, "a", "1"),
                    row(RowTable::Users, "b", "2"),
                ],
            ),
        ] {
            assert_ne!(one, other);
        }
    }
}
