//! A recorded history, damaged in every way that a file gets damaged: cut, swapped, doubled, with lost lines and flipped
//! bits. Whatever was done to its order is an error with its place, and nothing makes the reader or the judge panic.

use super::*;
use crate::judgement::judge;
use crate::verdict::VerdictKind;

/// The history of a short run of one member, set up with auth, as the simulator wrote it: one client logs in, puts and gets.
fn recorded() -> Vec<u8> {
    let bytes = include_bytes!("testdata/short.jsonl").to_vec();
    let history = read(Path::new("h"), bytes.as_slice(), &|_| None).unwrap();
    assert_eq!(judge(&history).kind, VerdictKind::Ok);
    bytes
}

/// Reads the file; an error must name its line and column.
fn reads(bytes: &[u8]) -> Option<History> {
    match read(Path::new("h"), bytes, &|_| None) {
        Ok(history) => Some(history),
        Err(error) => {
            let text = error.to_string();
            let mut parts = text.splitn(4, ':');
            assert_eq!(parts.next(), Some("h"), "{text}");
            for place in parts.by_ref().take(2) {
                assert!(place.parse::<usize>().unwrap() > 0, "{text}");
            }
            assert!(parts.next().unwrap().len() > 10, "{text}");
            None
        }
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The time that a line says.
fn time(line: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(line).unwrap();
    value.get("at_us").and_then(serde_json::Value::as_u64)
}

#[test]
fn a_file_that_was_cut_anywhere_is_refused() {
    let whole = recorded();
    for length in 0..whole.len() {
        assert!(
            reads(&whole[..length]).is_none(),
            "cut after {length} bytes"
        );
    }
}

#[test]
fn a_file_with_swapped_lines_is_refused_where_their_times_differ() {
    let whole = recorded();
    let right = lines(&whole);
    let mut refused = 0;
    for one in 0..right.len() {
        for other in one + 1..right.len() {
            let mut swapped = right.clone();
            swapped.swap(one, other);
            let read = reads(&swapped.concat());
            // Events of one moment may stand in any order that makes sense.
            let may_be_right = time(right[one]).is_some() && time(right[one]) == time(right[other]);
            assert!(read.is_none() || may_be_right, "lines {one} and {other}");
            if let Some(history) = &read {
                // What is left to the judge is whether the cluster did right.
                assert!(
                    crate::judgement::is_sound(history),
                    "lines {one} and {other}"
                );
            }
            refused += u64::from(read.is_none());
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_file_with_a_line_too_many_or_too_few_is_refused() {
    let whole = recorded();
    let right = lines(&whole);
    for at in 0..right.len() {
        let mut doubled = right.clone();
        doubled.insert(at, right[at]);
        assert!(reads(&doubled.concat()).is_none(), "line {at} twice");
        let mut lost = right.clone();
        lost.remove(at);
        assert!(reads(&lost.concat()).is_none(), "without line {at}");
    }
}

#[test]
fn flipped_bits_and_foreign_bytes_never_lead_to_a_panic() {
    let whole = recorded();
    let mut refused = 0;
    for at in 0..whole.len() {
        let bit = 1 << (at % 7);
        for byte in [whole[at] ^ bit, 0, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            match reads(&damaged) {
                None => refused += 1,
                Some(history) => {
                    assert!(byte != 0 && byte != 0xff, "byte {at} is not text");
                    assert!(crate::judgement::is_sound(&history), "byte {at}");
                    let _any = judge(&history);
                }
            }
        }
    }
    assert!(refused > 2 * whole.len(), "{refused}");
}
