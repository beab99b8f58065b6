//! Generated plans make sense, and cover what they are after.

use super::*;
use crate::plan::FaultKind;
use std::collections::BTreeSet;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=2_000;

#[test]
fn every_plan_makes_sense_and_survives_being_written_and_read() {
    for profile in Profile::ALL {
        for seed in SEEDS {
            let plan = plan(profile, seed);
            assert_eq!(plan.check(), Ok(()), "{} {seed}", profile.name());
            let text = toml::to_string(&plan).unwrap();
            assert_eq!(toml::from_str::<Plan>(&text).unwrap(), plan, "{text}");
        }
    }
}

#[test]
fn a_seed_is_one_plan_and_no_two_are_the_same() {
    for profile in Profile::ALL {
        let texts: BTreeSet<String> = SEEDS
            .map(|seed| {
                let mut drawn = plan(profile, seed);
                assert_eq!(drawn, plan(profile, seed));
                (drawn.why, drawn.seeds) = Default::default();
                toml::to_string(&drawn).unwrap()
            })
            .collect();
        assert_eq!(texts.len() as u64, *SEEDS.end());
    }
}

#[test]
fn every_kind_of_fault_is_drawn_by_some_seed() {
    let kinds_of = |profile| -> BTreeSet<String> {
        SEEDS
            .flat_map(|seed| plan(profile, seed).faults)
            .map(|fault| kind(&fault.kind))
            .collect()
    };
    let of_disks = [
        "kill",
        "power-cut",
        "disk-error",
        "disk-full",
        "disk-stall",
        "disk-slow",
        "disk-rot",
        "cut-off",
        "cut-peers",
    ];
    let disk = kinds_of(Profile::Disk);
    assert_eq!(disk, of_disks.map(str::to_owned).into());
    let all = kinds_of(Profile::Default);
    // `restart`, `resume` and `heal` are the ends of others.
    assert_eq!(all.len(), 17, "{all:?}");
}

fn kind(kind: &FaultKind) -> String {
    let table = toml::Table::try_from(kind).unwrap();
    table["kind"].as_str().unwrap().to_owned()
}
