//! The rules that keep the layers apart, as a test: what ARCHITECTURE.md states as absences is looked for here in the
//! sources themselves. A rule that is broken is reported with file and line.

use std::fs;
use std::path::{Path, PathBuf};

/// A file this long opens by saying why; see `opens_with_its_reason`.
const LINES_MAX: usize = 600;

struct Source {
    path: String,
    text: String,
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut queue: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(path) = queue.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder of the project can be listed");
            queue.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source can be read");
            let path = path.strip_prefix(root).expect("it lies below the root");
            found.push(Source {
                path: path.display().to_string(),
                text,
            });
        }
    }
    assert!(
        !found.is_empty(),
        "no sources below {folders:?}: the rule would check nothing"
    );
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Lines of code that hold one of `words`, without comments and without this file.
fn offenders(folders: &[&str], words: &[&str], except: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for source in sources(folders) {
        if source.path == "tests/it/tidy.rs"
            || except.iter().any(|path| source.path.starts_with(path))
        {
            continue;
        }
        for (number, line) in source.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if words.iter().any(|word| code.contains(word)) {
                lines.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    lines
}

fn assert_none(rule: &str, offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

#[test]
fn state_is_pure() {
    let words = [
        "tokio",
        "tonic",
        "raft::",
        "redb",
        "hyper",
        "std::time",
        "std::thread",
        "std::fs",
        "std::env",
        "getrandom",
        "async ",
        ".await",
        "Mutex",
        "RwLock",
        "HashMap",
        "HashSet",
        "crate::api",
        "crate::node",
        "crate::storage",
        "crate::platform",
        "crate::credential",
        "crate::pb",
    ];
    assert_none("src/state is pure", offenders(&["src/state"], &words, &[]));
}

#[test]
fn judge_shares_nothing_with_the_server() {
    let words = [
        "gatehouse::",
        "gatehouse_sim",
        "madsim",
        "tokio",
        "tonic",
        "raft::",
        "redb::",
    ];
    assert_none(
        "the judge reads histories and nothing else",
        offenders(&["sim/judge"], &words, &[]),
    );
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("sim/judge/Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("the judge has a manifest");
    for word in [
        "madsim",
        "tokio",
        "tonic",
        "gatehouse.workspace",
        "gatehouse-sim",
    ] {
        assert!(!manifest.contains(word), "the judge needs no {word}");
    }
}

/// The judge's modules stand in layers: `(module, those of the judge that it may name)`. A name that is not listed may be
/// used by nobody.
const JUDGE: [(&str, &[&str]); 16] = [
    ("text", &[]),
    ("numbered", &[]),
    ("random", &[]),
    ("input_file", &[]),
    ("verdict", &[]),
    ("history", &["text"]),
    ("sequence", &["history", "numbered", "text"]),
    (
        "history_file",
        &["history", "input_file", "sequence", "text"],
    ),
    ("words", &["history"]),
    ("model", &["history", "text"]),
    ("noncommittal", &["history", "model"]),
    ("sameness", &["history"]),
    (
        "checker",
        &[
            "history",
            "model",
            "noncommittal",
            "numbered",
            "sameness",
            "sequence",
            "text",
            "verdict",
            "words",
        ],
    ),
    (
        "search",
        &[
            "history",
            "history_file",
            "model",
            "noncommittal",
            "random",
            "sameness",
            "text",
            "verdict",
            "words",
        ],
    ),
    ("judgement", &["checker", "history", "search", "verdict"]),
    ("marks", &["history", "model", "text"]),
];

#[test]
fn the_judge_has_no_circle_of_modules() {
    for (at, (module, may)) in JUDGE.iter().enumerate() {
        let above = |name: &&str| JUDGE[..at].iter().any(|(known, _)| known == name);
        assert!(
            may.iter().all(above),
            "{module} may name what stands behind it"
        );
        let mut found = Vec::new();
        for source in sources(&["sim/judge/src"]) {
            let path = source.path.trim_start_matches("sim/judge/src/");
            let is_of = |path: &str| {
                path == format!("{module}.rs") || path.starts_with(&format!("{module}/"))
            };
            // Tests may ask the whole judge.
            if !is_of(path) || path.contains("tests") || path.ends_with("mutations.rs") {
                continue;
            }
            let code = source
                .text
                .lines()
                .take_while(|line| *line != "mod tests {");
            for (number, line) in code.enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                for name in code.split("crate::").skip(1) {
                    let name = name
                        .split(|c: char| !c.is_alphanumeric() && c != '_')
                        .next();
                    if name.is_some_and(|name| name != *module && !may.contains(&name)) {
                        found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
                    }
                }
            }
        }
        assert_none("a module of the judge names what stands behind it", found);
    }
}

#[test]
fn one_file_names_status_codes() {
    let except = [
        "src/api/status.rs",
        "src/pb/",
        "src/platform",
        "src/node/tests",
        "src/api/tests",
    ];
    let found = offenders(&["src"], &["tonic::Code", " Code::"], &except);
    assert_none("only src/api/status.rs gives errors their gRPC code", found);
}

#[test]
fn protobuf_stops_at_the_edges() {
    let except = [
        "src/api",
        "src/node",
        "src/storage",
        "src/pb.rs",
        "src/platform",
        "src/lib.rs",
        "src/server.rs",
    ];
    assert_none(
        "protobuf types stop at api, node and storage",
        offenders(&["src"], &["crate::pb"], &except),
    );
}

#[test]
fn time_and_chance_come_from_the_platform() {
    let words = [
        "SystemTime",
        "std::time::Instant",
        "thread_rng",
        "rand::random",
        "getrandom::",
    ];
    let mut found = offenders(&["src"], &words, &["src/platform"]);
    // `tokio::time::Instant` is simulated and may be named; the standard library's may not, however it is imported.
    found.extend(
        offenders(&["src"], &["use std::time::{"], &["src/platform"])
            .into_iter()
            .filter(|line| line.contains("Instant")),
    );
    assert_none("only src/platform asks for time or randomness", found);
}

#[test]
fn every_select_is_biased() {
    let mut found = Vec::new();
    for source in sources(&["src", "sim"]) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            if line.contains("select! {") || line.trim_end().ends_with("select!(") {
                let next = lines.get(number + 1).copied().unwrap_or_default();
                if !line.contains("biased;") && !next.contains("biased;") {
                    found.push(format!("{}:{}", source.path, number + 1));
                }
            }
        }
    }
    assert_none(
        "an unbiased select differs between two runs of one seed",
        found,
    );
}

#[test]
fn order_never_depends_on_a_hasher() {
    let words = ["HashMap", "HashSet", "ahash", "RandomState"];
    assert_none(
        "BTreeMap and BTreeSet only",
        offenders(&["src", "sim"], &words, &["src/pb.rs"]),
    );
}

#[test]
fn nothing_is_left_unfinished() {
    let words = ["todo!(", "unimplemented!(", "#[ignore", "dbg!("];
    assert_none(
        "a stub is a defect",
        offenders(&["src", "sim", "tests", "benches", "proto"], &words, &[]),
    );
    let marks = ["FIX".to_owned() + "ME", "XX".to_owned() + "X"];
    let mut found = Vec::new();
    for source in sources(&["src", "sim", "tests", "proto"]) {
        for (number, line) in source.text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark.as_str())) {
                found.push(format!("{}:{}", source.path, number + 1));
            }
        }
    }
    assert_none(
        "a mark that something is left to do belongs in an issue",
        found,
    );
}

#[test]
fn every_file_says_what_it_is_for() {
    let found = sources(&["src", "sim", "tests", "proto"])
        .into_iter()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| source.path)
        .collect();
    assert_none("each file opens with a header", found);
}

#[test]
fn files_are_short() {
    let found = sources(&["src", "sim", "tests", "proto"])
        .into_iter()
        .filter(|source| {
            source.text.lines().count() > LINES_MAX && !opens_with_its_reason(&source.text)
        })
        .map(|source| format!("{}: {} lines", source.path, source.text.lines().count()))
        .collect();
    assert_none("a file of more than 600 lines opens by saying why", found);
}

fn opens_with_its_reason(text: &str) -> bool {
    text.lines()
        .take_while(|line| line.starts_with("//!"))
        .any(|line| line.contains("long because"))
}

#[test]
fn the_simulator_speaks_in_words() {
    // A struct in its debug form is no sentence, and changes with every field. A type's debug form may still be a key
    // (`problem.rs`), the name of a gRPC code (`outcome.rs`), or talk of tests (`order.rs`).
    let except = [
        "sim/judge/src/search/problem.rs",
        "sim/judge/src/search/order.rs",
        "sim/src/calls/outcome.rs",
    ];
    let mut found = Vec::new();
    for source in sources(&["sim"]) {
        if except.contains(&source.path.as_str()) || source.path.contains("tests") {
            continue;
        }
        let code = source.text.lines();
        let code = code.take_while(|line| *line != "mod tests {");
        for (number, line) in code.enumerate() {
            if line.contains(":?}") {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert_none("what people read is no debug form", found);
}

#[test]
fn passwords_have_no_display() {
    // A secret type that can be printed will be printed.
    let found = offenders(
        &["src"],
        &[
            "impl fmt::Display for Secret",
            "impl std::fmt::Display for Secret",
            "impl fmt::Display for PasswordHash",
            "impl std::fmt::Display for PasswordHash",
        ],
        &[],
    );
    assert_none("secrets cannot be displayed", found);
}
